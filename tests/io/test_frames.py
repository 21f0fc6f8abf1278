"""Frames of every kind, dicts of columns, and Parquet."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdrank.data import Comparisons
from crowdrank.errors import FormatError
from crowdrank.io import MalformedRow, read, read_with_report

VOTES = {"worker": ["ann", "bob"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "tie"]}


@pytest.mark.parametrize(
    ("frame", "frame_backend"),
    [
        (pl.DataFrame(VOTES), "polars"),
        (pl.LazyFrame(VOTES), "polars"),
        (pd.DataFrame(VOTES), "pandas"),
        (pa.table(VOTES), "pyarrow"),
        (VOTES, "polars"),
        ({name: np.array(cells) for name, cells in VOTES.items()}, "polars"),
        ({name: pd.Series(cells) for name, cells in VOTES.items()}, "polars"),
        ({name: pl.Series(cells) for name, cells in VOTES.items()}, "polars"),
    ],
)
def test_frames_of_every_kind_are_remembered(frame: Any, frame_backend: str) -> None:
    found = read(frame)
    assert found.frame_backend == frame_backend
    assert found.outcome.tolist() == [1, 0]
    assert found.annotators.tolist() == ["ann", "bob"]


def test_pandas_needs_no_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("pyarrow")

    monkeypatch.setattr(pl, "from_pandas", refuse)
    frame = pd.DataFrame(VOTES | {"time": pd.to_datetime(["2020-01-01", None])})
    found = read(frame)
    assert found.outcome.tolist() == [1, 0]
    assert found.time[0] == 1_577_836_800.0


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame])
def test_numbers_are_labels(make: Any) -> None:
    found = read(make({"left": [1, 2], "right": [3, 3], "winner": [1, 3]}))
    assert found.items.labels.tolist() == ["1", "2", "3"]
    assert found.outcome.tolist() == [1, -1]


def test_floats_made_by_a_missing_value_are_whole_labels() -> None:
    frame = pd.DataFrame({"left": [1.0, 2.0, np.nan], "right": [3, 3, 3], "winner": [1.0, 3.0, 3.0]})
    found, report = read_with_report(frame)
    assert found.items.labels.tolist() == ["1", "2", "3"]
    assert report.malformed == (MalformedRow(3, "left", "the left is missing"),)
    assert report.unit == "row"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, "b", None, 2.0], dtype=object),
        pd.Categorical(["p", "q", "p", None]),
        pd.Series([b"p", b"\xff", b"q", None]),
        pd.array([1, None, 3, 4], dtype="Int64"),
        pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-03"]),
        pd.period_range("2020", periods=4),
        pd.interval_range(0, 4),
        pd.Series([True, False, None, True], dtype=object),
        pd.Series([[1], {"a": 1}, None, "x"]),
        pl.Series(["p", "q", None, "p"], dtype=pl.Categorical),
        pl.Series(["1.50", "2", None, "3"]).cast(pl.Decimal(10, 2)),
        pl.Series([dt.timedelta(1)] * 4),
        pl.Series([dt.time(1)] * 4),
        pl.Series([b"p", b"\xff", b"q", None]),
        pl.Series([[1], [2], None, [3]]),
        pl.Series([{"a": 1}] * 4),
        pl.Series([None] * 4),
        pl.Series([object()] * 4, dtype=pl.Object),
        pl.Series([2**64 - 1] * 4, dtype=pl.UInt64),
        [1, "b", None, float("nan")],
        ["\ud800", "b", "c", "d"],
        np.array([1 + 2j] * 4),
        np.zeros((4, 2)),
    ],
)
@pytest.mark.parametrize("role", ["annotator", "query", "weight", "time", "duration", "left", "winner"])
def test_any_type_in_any_role_is_read_or_refused_in_words(column: Any, role: str) -> None:
    table: dict[str, Any] = {"left": ["x"] * 4, "right": ["y"] * 4, "winner": ["x", "y", "tie", "x"], role: column}
    tables: list[Any] = [table]
    if not isinstance(column, pl.Series | np.ndarray | list):
        tables.append(pd.DataFrame(table))
    for source in tables:
        try:
            found, report = read_with_report(source)
        except FormatError:
            continue
        assert isinstance(found, Comparisons)
        assert report.kept == len(found) > 0


def test_columns_of_different_length_are_named() -> None:
    with pytest.raises(FormatError, match="left has 1, right has 2"):
        read({"left": ["x"], "right": ["y", "z"], "winner": ["x"]})
    with pytest.raises(FormatError, match="column 'left' must be a list or an array, got str"):
        read({"left": "x", "right": ["y"], "winner": ["x"]})


def test_doubled_columns_of_a_frame_are_refused() -> None:
    frame = pd.DataFrame([["x", "y", "x", "z"]], columns=["left", "right", "winner", "left"])
    with pytest.raises(FormatError, match="left"):
        read(frame)


def test_names_that_are_no_text_are_matched_as_text() -> None:
    frame = pd.DataFrame([["x", "y", "x"]], columns=["left", "right", 2024])
    assert len(read(frame, columns={"winner": "2024"})) == 1


@pytest.mark.parametrize("source", [None, 3, [1, 2], [{"left": "x"}], object(), b"votes.csv", pl.Series([1])])
def test_what_holds_no_judgments_is_refused(source: Any) -> None:
    with pytest.raises(
        FormatError, match="Cannot read judgments from .*Pass the path of a file, a data frame or a dict of columns"
    ):
        read(source)


@pytest.mark.parametrize("source", [{}, pl.DataFrame(), pd.DataFrame(), {"left": [], "right": [], "winner": []}])
def test_nothing_at_all_is_refused(source: Any) -> None:
    with pytest.raises(FormatError):
        read(source)


def test_parquet_reads_only_what_it_needs(tmp_path: Path) -> None:
    frame = pl.DataFrame(VOTES | {"chat": [[{"role": "user"}], []], " time ": [dt.datetime(2020, 1, 1), None]})
    frame.write_parquet(tmp_path / "votes.parquet")
    found, report = read_with_report(tmp_path / "votes.parquet")
    assert found.outcome.tolist() == [1, 0]
    assert report.columns["time"] == "time"
    with pytest.raises(FormatError, match=r"votes.parquet: column 'chat' holds lists"):
        read(tmp_path / "votes.parquet", columns={"annotator": "chat"})


@pytest.mark.parametrize("name", ["*", "^left$", "^.*$", "", " ", "$", "pl.col('left')"])
def test_names_are_never_patterns(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"left": ["x"], "right": ["y"], "winner": ["x"], name: [7.0]})
    frame.write_parquet(tmp_path / "votes.parquet")
    frame.write_csv(tmp_path / "votes.csv")
    for source in (frame, frame.to_pandas(), tmp_path / "votes.parquet", tmp_path / "votes.csv"):
        assert read(source).features == {}
        if name.strip():
            found = read(source, features=[name], columns={"annotator": name})
            assert found.features[name].tolist() == [7.0]
            assert found.annotators.tolist() in (["7"], ["7.0"])


def test_nulls_in_parquet_are_missing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"left": ["x", None, "x"], "right": ["y"] * 3, "winner": ["x", "y", "y"]})
    frame.write_parquet(tmp_path / "votes.parquet")
    _, report = read_with_report(tmp_path / "votes.parquet")
    assert report.malformed == (MalformedRow(2, "left", "the left is missing"),)
    assert report.unit == "row"


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"left,right,winner\n"])
def test_what_is_no_parquet_says_so(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "votes.parquet").write_bytes(data)
    with pytest.raises(FormatError, match=r"votes\.parquet: cannot be read as Parquet"):
        read(tmp_path / "votes.parquet")


def test_a_damaged_parquet_says_so(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    pl.DataFrame({n: c * 2000 for n, c in VOTES.items()}).write_parquet(path)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    with pytest.raises(FormatError):
        read(path)


def test_judgments_survive_the_round_trip_through_every_format(tmp_path: Path) -> None:
    from crowdrank.io import write_table

    table = VOTES | {"query": ["s", "t"], "weight": [1.0, 2.5], "duration": [3.0, 4.0], "time": [1e9, 1e9 + 0.5]}
    before = read(table)
    for suffix in ("csv", "tsv", "jsonl", "ndjson", "json", "parquet"):
        write_table(before.to_frame(), tmp_path / f"votes.{suffix}")
        after = read(tmp_path / f"votes.{suffix}")
        assert after.to_frame().equals(before.to_frame()), suffix
