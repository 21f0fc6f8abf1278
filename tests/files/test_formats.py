"""The registry of formats."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from crowdrank.files import formats, read_with_report
from crowdrank.files.formats import FORMATS, Format
from crowdrank.files.tables import Table, table_of


def test_tidy_comes_last_and_takes_anything() -> None:
    assert FORMATS[-1].name == "tidy"
    assert FORMATS[-1].recognises((), pl.DataFrame())


def test_every_format_describes_itself() -> None:
    assert all(found.name and found.description.endswith(".") for found in FORMATS)
    assert len({found.name for found in FORMATS}) == len(FORMATS)


def test_a_format_translates_a_table_into_tidy_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def translate(table: Table) -> Table:
        frame = table.load(table.columns, None)
        winner = pl.when(pl.col("is_A_selected") == 1).then(pl.lit("left")).otherwise(pl.lit("right"))
        return replace(table_of(frame.with_columns(winner=winner), table.name), native=table.native)

    one_hot = Format("one-hot", "For this test.", lambda columns, sample: "is_A_selected" in sample.columns, translate)
    monkeypatch.setattr(formats, "FORMATS", (one_hot, *FORMATS))
    table = {"observer": ["o", "o"], "condition_A": ["x", "x"], "condition_B": ["y", "y"], "is_A_selected": [1, 0]}
    found, report = read_with_report(table)
    assert report.format == "one-hot"
    assert found.outcome.tolist() == [1, -1]
