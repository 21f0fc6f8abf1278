"""The models in the guide work: written to files as on the page, they pass the conformance tests."""

import ast
import os
import re
import subprocess
import sys

import pytest

from crowdrank import models
from crowdrank.models import by_name
from tests.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "guides" / "adding-a-model.md"
NAMES = {"Colley": "colley", "LapseBT": "lapse-bt"}
REGISTER = """\
from crowdrank.models import REGISTRY
from {module} import {cls}

REGISTRY["{name}"] = {cls}
"""


def code_of(cls):
    (code,) = (block.text for block in blocks(PAGE) if f"class {cls}(" in block.text)
    return code


def write_model(folder, cls):
    """The file of a model as on the page, and a plugin of pytest that registers it."""
    name = NAMES[cls]
    file = folder / f"{name.replace('-', '_')}.py"
    file.write_text(code_of(cls), encoding="utf-8")
    plugin = REGISTER.format(module=file.stem, cls=cls, name=name)
    (folder / "register_model.py").write_text(plugin, encoding="utf-8")
    return file


@pytest.fixture(params=NAMES)
def model_file(request, tmp_path):
    return write_model(tmp_path, request.param)


def conformance(model_file, *arguments):
    """The conformance tests of this one model, in a Python where it is registered."""
    places = (str(model_file.parent), os.environ.get("PYTHONPATH", ""))
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "register_model",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-rN",
            "tests/conformance",
            "-k",
            model_file.stem.replace("_", "-"),
            *arguments,
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_model_of_the_guide_keeps_every_promise(model_file):
    run = conformance(model_file, "-vv", "--color=no")
    assert run.returncode == 0, run.stdout
    kept = re.findall(r"::(test_\w+)\[.*(?:colley|lapse-bt)\] PASSED", run.stdout)
    assert {"test_names_every_item", "test_counts_weight_as_repetition", "test_gives_finite_scores"} <= set(kept)
    assert len(set(kept)) > 15


def test_a_model_that_breaks_a_promise_is_noticed(tmp_path):
    model_file = write_model(tmp_path, "Colley")
    code = model_file.read_text(encoding="utf-8")
    assert code.count("counts.net_wins") == 1
    model_file.write_text(code.replace("counts.net_wins", "counts.net_wins**2"), encoding="utf-8")
    run = conformance(model_file, "-k", "colley and reverses", "--color=no")
    assert run.returncode == 1, run.stdout


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_the_model_of_the_guide_is_written_as_the_rest(model_file, command):
    pytest.importorskip("ruff", reason="the linter comes with what the tests need")
    settings = ["--no-cache", "--config", ROOT / "pyproject.toml", model_file]
    run = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *settings], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("cls", NAMES)
def test_the_line_of_the_guide_belongs_in_the_registry(cls):
    page = PAGE.read_text(encoding="utf-8")
    line = re.search(rf'^    (\("{NAMES[cls]}", .*\)),$', page, re.MULTILINE)
    name, module, named = ast.literal_eval(line[1])
    assert f"src/crowdrank/models/{module.replace('.', '/')}.py" in page
    assert named == cls
    assert all(len(entry) == 3 and by_name(entry[0]).__name__ == entry[2] for entry in models._MODELS)
    assert name not in models.REGISTRY
