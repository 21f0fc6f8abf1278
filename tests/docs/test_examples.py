"""Every example in the README and the docs runs and prints the output on the page."""

import doctest
import os
import shlex
import shutil
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from crowdrank import models
from crowdrank.cli import app
from crowdrank.errors import CrowdrankWarning, DataWarning
from tests.docs.pages import PAGES, ROOT, blocks, name_of

EXAMPLE = ROOT / "examples" / "cities"
SHELLS = ("bash", "console")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a reader would be: votes.csv and what belongs to it at hand, and a terminal of the usual width."""
    for file in EXAMPLE.glob("*.csv"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # trials in this process, which knows the compiled loops already
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run_from_top_to_bottom(page, folder, monkeypatch):
    # a module of its own, because dataclasses look theirs up by name
    module, printed = ModuleType("page"), ""
    monkeypatch.setitem(sys.modules, "page", module)
    with patch.dict(models.REGISTRY), warnings.catch_warnings():
        warnings.simplefilter("error", CrowdrankWarning)
        warnings.simplefilter("ignore", DataWarning)
        for block in blocks(page):
            where = f"{name_of(page)}, line {block.line}"
            if "no-run" in block.words:
                printed = ""
            elif block.language == "python":
                printed = run_python(block, where, vars(module))
            elif block.language in SHELLS:
                printed = "".join(run_command(line, where) for line in commands(block.text))
            elif block.language == "text" and block.follows:
                assert same(block.text, printed), f"{where}: the page shows\n{block.text}\nand it printed\n{printed}"


def run_python(block, where, names):
    out = StringIO()
    # as many lines ahead as on the page, so that an error names the page's own line
    code = compile("\n" * (block.line - 1) + block.text, where, "exec")
    with redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def commands(text):
    lines = [line.removeprefix("$ ") for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("crowdrank ")]


def run_command(line, where):
    result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    assert result.exit_code == 0, f"{where}: {line}\n{result.output}{result.exception!r}"
    return result.stdout


def same(shown, printed):
    """Spaces do not count, and three dots stand for anything."""
    return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


@pytest.mark.parametrize(
    "text",
    ["python\n1 / 0\n```", "bash\ncrowdrank rank nowhere.csv\n```", "python\nprint(1)\n```\n\n```text\n2\n```"],
    ids=["code that raises", "a command that fails", "output that differs"],
)
def test_an_example_that_fails_is_noticed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"```{text}\n")
    failed = pytest.raises((ZeroDivisionError, AssertionError), match=r"division by zero|page\.md, line \d")
    with failed, patch("tests.docs.pages.ROOT", tmp_path):
        test_examples_run_from_top_to_bottom(page, tmp_path, monkeypatch)
