"""Numbers, timestamps and durations."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl
import pytest

from crowdrank.io import read, read_with_report
from crowdrank.io.rows import parse_labels, parse_numbers, parse_timestamps

NEW_YEAR = 1_577_836_800.0


def vote(**columns: Any) -> dict[str, Any]:
    height = len(next(iter(columns.values())))
    return {"left": ["x"] * height, "right": ["y"] * height, "winner": ["x"] * height, **columns}


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01",
        "2020-01-01T00:00",
        "2020-01-01 00:00:00",
        "2020-01-01T00:00:00Z",
        "2020-01-01 00:00:00 UTC",
        "2020-01-01T01:00:00+01:00",
        "2020-01-01T00:00:00.000+0000",
        "2019-12-31T19:00-05:00",
        "1577836800",
        "1577836800.0",
        "1577836800000",
        "1577836800000000",
        "1577836800000000000",
    ],
)
def test_moments_are_seconds_since_1970(text: str) -> None:
    assert parse_timestamps(pl.Series([text])).tolist() == [NEW_YEAR]


def test_fractions_of_seconds_survive() -> None:
    assert parse_timestamps(pl.Series(["2020-01-01T00:00:00.25", "2020-01-01"])).tolist() == [NEW_YEAR + 0.25, NEW_YEAR]


@pytest.mark.parametrize(
    "value",
    [
        dt.date(2020, 1, 1),
        dt.datetime(2020, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        int(NEW_YEAR),
        dt.datetime(2020, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    ],
)
def test_moments_may_be_dates_already(value: Any) -> None:
    assert parse_timestamps(pl.Series([value])).tolist() == [NEW_YEAR]


def test_a_clock_may_start_anywhere() -> None:
    assert parse_timestamps(pl.Series(["3", "1.5", "2"])).tolist() == [3.0, 1.5, 2.0]


def test_rows_without_a_time_are_kept_and_noted() -> None:
    found, report = read_with_report(vote(time=["2020-01-01", "soon", None]))
    np.testing.assert_array_equal(found.time, [NEW_YEAR, np.nan, np.nan])
    assert report.notes == ("'time': no time in 2 of 3 rows.",)


def test_a_column_without_any_time_is_left_out_with_a_note() -> None:
    found, report = read_with_report(vote(created_at=["soon", "later"]))
    assert found.time is None
    assert report.notes == ("'created_at' contains no time that can be read; it was ignored.",)


@pytest.mark.parametrize(
    "name", ["duration", "seconds", "time_taken", "timeTaken", "Response Time (s)", "work_seconds"]
)
def test_durations_are_seconds(name: str) -> None:
    assert read(vote(**{name: ["1.5", "2"]})).duration.tolist() == [1.5, 2.0]


@pytest.mark.parametrize("name", ["response_ms", "duration_ms", "Response Time (ms)", "time_taken_milliseconds"])
def test_milliseconds_become_seconds(name: str) -> None:
    assert read(vote(**{name: ["1500", "2000"]})).duration.tolist() == [1.5, 2.0]


def test_durations_of_hours_earn_a_note() -> None:
    _, report = read_with_report(vote(time_taken=["8431", "12000"]))
    assert "milliseconds" in report.notes[0]


def test_durations_may_be_timedeltas() -> None:
    assert parse_numbers(pl.Series([dt.timedelta(seconds=2.5)])).tolist() == [2.5]


def test_whole_floats_are_labels_without_a_point() -> None:
    assert parse_labels(pl.Series([3.0, None, float("nan"), 2.5, -7.0]), False).to_list() == [
        "3",
        None,
        None,
        "2.5",
        "-7",
    ]


def test_empty_text_is_missing_and_spaces_count_only_where_they_may() -> None:
    column = pl.Series([" a ", "", "  "])
    assert parse_labels(column, True).to_list() == ["a", None, None]
    assert parse_labels(column, False).to_list() == [" a ", None, "  "]
