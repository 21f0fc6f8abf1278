"""Writing judgments: everything that a format can store is read back unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import FormatError
from crowdrank.io import list_formats, read_with_report, write

WRITERS = {known.name: known.writer for known in list_formats() if known.writer is not None}
PAIRS = {"left": ["x", "y, z", "tie"], "right": ["y, z", 'q "r"', "x"], "winner": ["x", 'q "r"', "x"]}
FULL = Comparisons.of(
    **PAIRS,
    annotator=["ann", "bob", "ann"],
    query=["s", "s", "t"],
    weight=[1.0, 2.5, 1.0],
    time=[1.7e9, 1.7e9 + 1.5, 1.7e9 + 9],
    duration=[1.5, 2.0, 30.0],
)
TIED = Comparisons.of(["x", "y", "x"], ["y", "z", "z"], ["x", "tie", "z"], annotator=["ann", "bob", "ann"])
BARE = Comparisons.of(["x", "y", "x", "left"], ["y", "z", "z", "right"], ["x", "y", "z", "right"])
GRADES = Ratings.of(["d1", "d2", "d1"], [2, 0, 1.5], query=["t1", "t1", "t2"])
LISTS = Rankings.of_lists([[["b"], ["a", "c"]], [["c"], ["b"]], [["a"], ["b"], ["c"]]])
WEIGHED = replace(LISTS, weight=np.array([3.0, 1.0, 2.0]))
RUNS = Rankings.of(
    item=["a", "b", "c", "b", "a", "a", "b"],
    rank=[1, 2, 2, 1, 2, 1, 2],
    query=["q1"] * 5 + ["q2"] * 2,
    annotator=["s1"] * 3 + ["s2"] * 2 + ["s1"] * 2,
)

# Columns that each format preserves besides the winner.
HELD: dict[str, list[tuple[Any, set[str]]]] = {
    "tidy": [(j, {"query", "annotator", "weight", "time", "duration"}) for j in (FULL, TIED, GRADES, RUNS, WEIGHED)],
    "evalica": [(FULL, {"query", "annotator", "weight"}), (TIED, {"annotator"}), (BARE, set())],
    "crowd-kit": [(FULL, {"query", "annotator", "weight"})],
    "comparative-judgement": [(FULL, {"query", "annotator", "weight", "duration"})],
    "lmsys": [(FULL, {"query", "annotator", "weight", "time"}), (TIED, {"annotator"}), (BARE, set())],
    "label-studio": [(FULL, {"query", "annotator", "time", "duration"}), (TIED, {"annotator"})],
    "pwcmp": [(FULL, {"query", "annotator"})],
    "asap": [(BARE, set())],
    "preflib": [(WEIGHED, {"weight"}), (LISTS, set())],
    "trec-run": [(RUNS, {"query", "annotator"})],
    "trec-qrels": [(GRADES, {"query"})],
}
CASES = [(name, n) for name, cases in HELD.items() for n in range(len(cases))]


def rows(judgments: Any, columns: set[str], positions_known: bool = True) -> list[tuple[Any, ...]]:
    """All judgments, in a canonical order."""
    frame = judgments.to_frame()
    if isinstance(judgments, Rankings):
        frame = frame.with_columns(weight=pl.Series(judgments.weights[judgments.list_of_row]))
    if isinstance(judgments, Comparisons) and not positions_known:
        loser = pl.when(pl.col("winner") == pl.col("left")).then("right").otherwise("left")
        frame = frame.with_columns(loser=loser).drop("left", "right")
    said = [c for c in frame.columns if c in columns | {"left", "right", "winner", "loser", "item", "grade", "rank"}]
    return sorted(frame.select(said).rows())


def test_every_writer_is_tried() -> None:
    assert set(HELD) == set(WRITERS)


@pytest.mark.parametrize(("name", "number"), CASES)
def test_what_a_format_can_hold_comes_back(name: str, number: int, tmp_path: Path) -> None:
    judgments, columns = HELD[name][number]
    for suffix in WRITERS[name].suffixes:
        path = tmp_path / f"votes{suffix}"
        write(judgments, path, name)
        found, report = read_with_report(path)
        assert report.format == name
        assert (report.malformed_count, report.skips, report.set_aside) == (0, 0, {})
        positions_known = getattr(found, "positions_known", True)
        assert rows(found, columns, positions_known) == rows(judgments, columns, positions_known)


def test_what_a_format_cannot_hold_is_told(tmp_path: Path) -> None:
    assert write(TIED, tmp_path / "v.csv", "crowd-kit") == ["1 tie was left out: crowd-kit has none."]
    assert write(TIED, tmp_path / "v.csv", "asap") == [
        "Each tie was written as half a win for both items.",
        "Left out, because asap has no column for it: annotator.",
    ]
    assert write(FULL, tmp_path / "v.csv", "evalica") == [
        "Left out, because evalica has no column for it: time, duration."
    ]
    spaced = Rankings.of(item=["a b", "c"], rank=[1, 2], annotator=["s", "s"])
    assert write(spaced, tmp_path / "v.txt", "trec-run")[0].startswith("Spaces in names were replaced by underscores")


def test_other_kinds_are_made_what_the_format_holds_by_a_rule_that_is_told(tmp_path: Path) -> None:
    said = write(RUNS, tmp_path / "v.csv", "evalica")
    rule = "every two items of a list, except those tied on its last place"
    assert said == [f"Rankings were converted to comparisons: {rule}."]
    assert len(read_with_report(tmp_path / "v.csv")[0]) == 4


@pytest.mark.parametrize(
    ("judgments", "name", "path", "message"),
    [
        (TIED, "gavel", "v.csv", "gavel can be read but not written. Formats that can be written: preflib"),
        (TIED, "evalica", "v.soi", "evalica files end in .csv, .tsv, .jsonl, .parquet, got '.soi'"),
        (RUNS, "preflib", "v.toi", "one election, and the judgments have 2 queries"),
        (replace(LISTS, weight=np.array([0.5, 1, 1])), "preflib", "v.toi", "needs whole numbers"),
        (FULL, "asap", "v.csv", "cannot hold the queries"),
        (BARE, "crowd-kit", "v.csv", "have no annotators"),
        (TIED, "evalica", "nowhere/v.csv", "cannot be written"),
        (RUNS, "trec-run", "nowhere/v.txt", "cannot be written"),
    ],
)
def test_what_cannot_be_written_says_why(tmp_path: Path, judgments: Any, name: str, path: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        write(judgments, tmp_path / path, name)


def test_preflib_names_the_kind_of_its_orders(tmp_path: Path) -> None:
    write(LISTS, tmp_path / "v.toi", "preflib")
    assert "# DATA TYPE: toi\n" in (tmp_path / "v.toi").read_text()
    write(Rankings.of_lists([[["b"], ["a"]], [["a"], ["b"]]]), tmp_path / "v.soc", "preflib")
    assert "# DATA TYPE: soc\n" in (tmp_path / "v.soc").read_text()
