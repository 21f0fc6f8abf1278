"""Run the command as a user would, without the cost of a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from crowdrank.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def crowdrank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `crowdrank` with these arguments; returns its output and exit code."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["crowdrank", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """A small file of comparisons: mostly a above b above c."""
    rows = ["ann,a,b,a", "ann,b,c,b", "ann,a,c,a", "bob,a,b,b", "bob,c,b,b", "bob,a,c,a", "cat,a,b,tie", "cat,b,c,c"]
    path = tmp_path / "votes.csv"
    path.write_text("worker,left,right,winner\n" + "\n".join(rows) + "\n")
    return path
