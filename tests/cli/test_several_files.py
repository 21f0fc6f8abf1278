"""Several files, patterns and standard input, on every command that reads judgments."""

from __future__ import annotations

import io
import sys

import pytest

HEAD = "annotator,left,right,winner,engine_left,engine_right\n"
PEOPLE = ("ann", "bob", "cy", "dee", "eli", "flo")
FIRST = HEAD + "".join(f"{who},x,y,x,g,h\n{who},y,z,y,h,h\n" for who in PEOPLE)
SECOND = HEAD + "".join(f"{who},x,z,x,g,h\n{who},y,x,x,h,g\n" for who in PEOPLE)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "first.csv").write_text(FIRST)
    (tmp_path / "second.csv").write_text(SECOND)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["rank", "--uncertainty", "none"],
        ["annotators", "--no-verdicts"],
        ["compare", "--models", "win-rate,borda"],
        ["explain", "--item", "x", "--above", "y"],
        ["check", "--simulations", "2"],
        ["judges"],
        ["next", "--count", "1", "--annotator", "ann"],
    ],
)
@pytest.mark.parametrize("by_pattern", [False, True])
def test_a_command_reads_several_files(crowdrank, folder, command, by_pattern):
    files = [folder / "*.csv"] if by_pattern else [folder / "first.csv", folder / "second.csv"]
    done = crowdrank(command[0], *files, *command[1:])
    assert done.code == 0, done.err
    said = {"judges": "6 judges, 3 pairs", "next": "3 items, 6 annotators, 24 judgments"}.get(command[0], "")
    assert said in done.out
    if command[0] in ("rank", "annotators", "compare"):
        assert "24 comparisons of 3 items by 6 annotators" in done.out


def test_several_files_are_converted_to_one(crowdrank, folder):
    done = crowdrank("convert", folder / "first.csv", folder / "second.csv", folder / "all.csv")
    assert done.code == 0, done.err
    assert "24 rows read, 24 kept." in done.out
    assert len((folder / "all.csv").read_text().splitlines()) == 25


def test_systems_are_compared_from_standard_input(crowdrank, monkeypatch):
    """The names of the columns and the judgments are both read from it, though its content can be read once."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FIRST.encode())))
    done = crowdrank("rank", "-", "--system", "engine", "--uncertainty", "none")
    assert done.code == 0, done.err
    assert "system" in done.out
    assert "12 comparisons of 3 items" in done.out
