"""Columns about items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crowdrank import Comparisons
from crowdrank.data import Items
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.io import as_labels, find_side_columns, read_items


def table(**more: Any) -> dict[str, Any]:
    return {"item": ["x", "y", "z"], **more}


def test_every_other_column_is_kept_by_its_name() -> None:
    found = read_items(table(length=["1", "2.5", ""], style=["bold", None, "normalize_name"]))
    assert found.item.tolist() == ["x", "y", "z"]
    assert found.query is None
    np.testing.assert_array_equal(found.columns["length"], [1.0, 2.5, np.nan])
    assert found.columns["style"].tolist() == ["bold", "", "normalize_name"]


def test_files_and_frames_are_read_alike(tmp_path: Path) -> None:
    frame = pl.DataFrame(table(length=[1, 2, 3]))
    frame.write_csv(tmp_path / "items.csv")
    frame.write_parquet(tmp_path / "items.parquet")
    for source in (frame, frame.to_dict(as_series=False), tmp_path / "items.csv", str(tmp_path / "items.parquet")):
        assert read_items(source).columns["length"].tolist() == [1.0, 2.0, 3.0]


def test_columns_go_along_the_items_of_the_judgments() -> None:
    found = read_items(table(length=[1, 2, 3]))
    votes = Comparisons.of(["z"], ["x"], ["x"])
    assert found.align(votes.items, "length").tolist() == [1.0, 3.0]
    assert found.align(votes.items, "Length").tolist() == [1.0, 3.0]
    assert "LENGTH" in found
    assert "width" not in found
    with pytest.raises(UnknownNameError, match="did you mean 'length'"):
        found.align(votes.items, "lenght")


def test_items_are_found_within_their_queries() -> None:
    found = read_items({"topic": ["p", "q", "q"], "doc": ["x", "x", "y"], "length": [1, 2, 3]})
    votes = Comparisons.of(["y", "y"], ["x", "x"], ["x", "y"], query=["q", "q"])
    assert found.align(votes.items, "length").tolist() == [2.0, 3.0]


def test_items_without_queries_hold_in_all_of_them() -> None:
    found = read_items(table(length=[1, 2, 3]))
    votes = Comparisons.of(["y", "z"], ["x", "x"], ["x", "z"], query=["p", "q"])
    assert votes.items.labels.tolist() == ["x", "y", "x", "z"]
    assert found.align(votes.items, "length").tolist() == [1.0, 2.0, 1.0, 3.0]


def test_judgments_without_queries_need_items_that_are_the_same_in_all() -> None:
    found = read_items({"query": ["p", "q"], "item": ["x", "x"], "style": ["bold", "bold"], "length": [1, 2]})
    assert found.align(Items.of(["x"]), "style").tolist() == ["bold"]
    with pytest.raises(DataError, match="item 'x' has different values in several queries"):
        found.align(Items.of(["x"]), "length")


def test_items_that_are_missing_are_counted_and_named() -> None:
    votes = Comparisons.of(list("abcdx"), list("bcday"), list("abcdx"))
    with pytest.raises(DataError, match="no row for 4 of 6 items, such as a, b, c"):
        read_items(table(length=[1, 2, 3])).align(votes.items, "length")


def test_an_item_told_twice_must_be_told_the_same() -> None:
    assert len(read_items({"item": ["x", "x"], "length": [1, 1], "style": [None, None]}).item) == 1
    assert len(read_items({"item": ["x", "x"], "query": ["p", "q"], "length": [1, 2]}).item) == 2
    with pytest.raises(FormatError, match=r"item 'x' has more than one length: 1\.0 and 2\.0"):
        read_items({"item": ["x", "x"], "length": [1, 2]})
    with pytest.raises(FormatError, match="item 'x' has more than one style"):
        read_items({"item": ["x", "x"], "style": ["bold", None]})


def test_roles_can_be_told() -> None:
    source = {"page": ["x", "y"], "system": ["g", "h"], "topic": ["new", "old"]}
    found = read_items(source, {"item": "page", "query": None})
    assert list(found.columns) == ["system", "topic"]
    assert found.align(Items.of(["y", "x"]), "topic").tolist() == ["old", "new"]
    with pytest.raises(UnknownNameError, match="role"):
        read_items(source, {"value": "page"})
    with pytest.raises(FormatError, match="no column for the item"):
        read_items({"page": ["x"]})


def test_rows_without_an_item_are_refused(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,length\nx,1\n,2\n")
    with pytest.raises(FormatError, match=r"items\.csv: Line 3, column 'item': the item is missing"):
        read_items(tmp_path / "items.csv")


def test_lists_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"item": "x", "tags": ["a", "b"], "length": 1}\n')
    assert list(read_items(tmp_path / "items.jsonl").columns) == ["length"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("left_engine", "right_engine"),
        ("Engine Left", "Engine Right"),
        ("engine_a", "engine_b"),
        ("engine1", "engine2"),
    ],
)
def test_columns_of_the_two_sides_are_found(first: str, second: str) -> None:
    source = {"left": ["x"], "right": ["y"], "winner": ["x"], first: ["g"], second: ["h"]}
    assert find_side_columns(source, "engine") == (first, second)


def test_columns_of_sides_that_are_not_there_are_described() -> None:
    with pytest.raises(FormatError, match="no columns for the engine of the left and the right item"):
        find_side_columns({"left": ["x"], "right": ["y"], "left_engine": ["g"]}, "engine")


def test_numbers_make_labels_without_a_point() -> None:
    assert as_labels(np.array([1.0, 20240101.0, 2.5, np.nan])).tolist() == ["1", "20240101", "2.5", ""]
    assert as_labels(np.array(["g", ""], dtype=object)).tolist() == ["g", ""]
