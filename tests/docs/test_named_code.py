"""Every file and module of crowdrank that the documentation names exists."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from tools import notebooks

from tests.docs.pages import PAGES, ROOT, name_of

# The changelog is about the past.
TEXTS = [
    *PAGES,
    *notebooks.tutorials(),
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "paper/paper.md")),
    *sorted((ROOT / "papers").rglob("*.md")),
]
MADE_BY_THE_READER = {"colley", "lapse_bt"}  # the models of the guide on adding one

_MODULE = re.compile(r"(?<![\w./@-])crowdrank((?:\.[A-Za-z_]\w*)+)(?![\w/])")
_FILE = re.compile(r"(?<![\w/.-])((?:[\w-]+/)*[\w-]+\.py)\b")
_FOLDER = re.compile(r"(?<![\w/.-])((?:src|tests|tools|benchmarks|papers|examples|conda|paper)/[\w/-]+)(?![\w./*-])")
_SUFFIXES = {"csv", "db", "html", "json", "md", "py", "toml", "yaml", "zip"}


def missing_modules(text: str) -> list[str]:
    """Names such as crowdrank.active.plan that cannot be imported."""
    names = {found[1].strip(".") for found in _MODULE.finditer(text)}
    return sorted(name for name in names if name.rpartition(".")[2] not in _SUFFIXES and not _exists(name))


def _exists(name: str) -> bool:
    thing, path = importlib.import_module("crowdrank"), "crowdrank"
    for part in name.split("."):
        path += f".{part}"
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(path)
            except ImportError:
                return False
    return True


def missing_files(text: str, folder: Path) -> list[str]:
    """Python files that are nowhere below the root, and folders that are not there."""
    files = {found[1] for found in _FILE.finditer(text) if Path(found[1]).stem not in MADE_BY_THE_READER}
    folders = {found[1] for found in _FOLDER.finditer(text)}
    return sorted(
        [file for file in files if not any(path.endswith(f"/{file}") for path in _python_files())]
        + [name for name in folders if not (ROOT / name).exists() and not (folder / name).exists()]
    )


@cache
def _python_files() -> list[str]:
    parts = ("src", "tests", "tools", "benchmarks", "papers", "examples")
    return [f"/{path.relative_to(ROOT).as_posix()}" for part in parts for path in (ROOT / part).rglob("*.py")]


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_modules_and_files_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    assert missing_modules(text) == []
    assert missing_files(text, page.parent) == []


def test_names_that_are_gone_are_noticed():
    assert missing_modules("`crowdrank.active.plan`, crowdrank.gone.x and crowdrank.db") == ["gone.x"]
    said = "`src/crowdrank/models/gone.py`, `pipeline/gone.py`, `likelihood.py`, papers/gone, colley.py"
    assert missing_files(said, ROOT) == ["papers/gone", "pipeline/gone.py", "src/crowdrank/models/gone.py"]
