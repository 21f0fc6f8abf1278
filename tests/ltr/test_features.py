"""Features of items, and their join with lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdrank.data import Rankings
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError
from crowdrank.ltr import Features


def two_queries() -> Features:
    return Features.of(
        [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], item=["b", "a", "a"], query=["p", "p", "q"], grade=[0, 1, np.nan]
    )


def test_rows_are_sorted_by_query_and_label() -> None:
    found = two_queries()
    assert found.items.labels.tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(found.values, [[2, 20], [1, 10], [3, 30]])
    np.testing.assert_array_equal(found.grades, [1, 0, np.nan])
    assert found.names == ("f1", "f2")
    assert not found.values.flags.writeable


def test_rows_follow_the_items_of_the_lists() -> None:
    lists = Rankings.of(item=["b", "a"], rank=[1, 2], query=["p", "p"])
    np.testing.assert_array_equal(two_queries().values[two_queries().rows_of(lists.items)], [[2, 20], [1, 10]])


def test_features_without_queries_apply_to_every_query() -> None:
    plain = Features.of([[1.0], [2.0]], item=["a", "b"])
    lists = Rankings.of(item=["a", "b", "b"], rank=[1, 2, 1], query=["p", "p", "q"])
    np.testing.assert_array_equal(plain.values[plain.rows_of(lists.items)], [[1], [2], [2]])


def test_an_item_without_features_is_named() -> None:
    lists = Rankings.of(item=["a", "zoe"], rank=[1, 2], query=["q", "q"])
    with pytest.raises(DataError, match=r"No features for 1 of 2 items: zoe \(q\)\."):
        two_queries().rows_of(lists.items)


def test_features_with_queries_need_lists_with_queries() -> None:
    with pytest.raises(DataError, match="name the query column of both"):
        two_queries().rows_of(Rankings.of(item=["a", "b"], rank=[1, 2]).items)


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_a_missing_value_is_refused_with_its_row_and_column(hole: float) -> None:
    with pytest.raises(DataError, match=r"the matrix: row 2: feature 'f1' of item b must be a finite number"):
        Features.of([[1.0, 2.0], [hole, 4.0]], item=["a", "b"])
    filled = Features.of([[1.0, 2.0], [hole, 4.0]], item=["a", "b"], missing="zero")
    np.testing.assert_array_equal(filled.values, [[1, 2], [0, 4]])
    with pytest.raises(SettingError, match="missing must be"):
        Features.of([[1.0]], item=["a"], missing="mean")  # type: ignore[arg-type]


def test_a_repeated_row_is_accepted_and_a_conflicting_one_refused() -> None:
    assert len(Features.of([[1.0], [1.0]], item=["a", "a"])) == 1
    with pytest.raises(DataError, match="row 2: item a already has other features, in row 1"):
        Features.of([[1.0], [2.0]], item=["a", "a"])


def test_columns_without_numbers_are_ignored_with_a_warning() -> None:
    with pytest.warns(DataWarning, match="Ignored columns that are not numeric: style"):
        Features.of({"item": ["a"], "style": ["bold"], "x": [1]})


def test_column_names_can_be_given_and_the_kind_of_frame_is_kept() -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "topic": [1, 1], "x": [1.0, 2.0]})
    found = Features.of(frame, item="who", query="topic")
    assert found.native == "pandas"
    assert found.items.queries.tolist() == ["1"]
    assert found.names == ("x",)


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ([1.0, 2.0], {"item": ["a", "b"]}, "Features must be a matrix"),
        (np.zeros((0, 3)), {"item": []}, "Features must be a matrix"),
        ([["x"]], {"item": ["a"]}, "Features must be numbers"),
        ([[1.0]], {"item": ["a", "b"]}, "item: got 2 labels for 1 rows"),
        ([[1.0]], {"item": ["a"], "grade": [1, 2]}, "grade: got 2 values for 1 rows"),
    ],
)
def test_an_invalid_matrix_is_refused(source: object, more: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Features.of(source, **more)  # type: ignore[arg-type]


def test_columns_are_selected_by_name() -> None:
    found = Features.of([[1.0, 2.0, 3.0]], item=["a"], names=["x", "y", "z"])
    np.testing.assert_array_equal(found.columns(("z", "x")), [[3, 1]])
    with pytest.raises(UnknownNameError, match="No feature named 'yy'; did you mean 'y'"):
        found.columns(("yy",))
    with pytest.raises(SettingError, match="names must be 3 different names"):
        Features.of([[1.0, 2.0, 3.0]], item=["a"], names=["x", "x", "z"])


def test_a_subset_of_rows_keeps_its_queries() -> None:
    part = two_queries().take(np.array([2]))
    assert part.items.queries.tolist() == ["q"]
    assert two_queries().of_queries(np.array(["p"], dtype=object)).items.labels.tolist() == ["a", "b"]


def test_a_file_gives_the_same_features_as_its_frame(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query": ["p", "p"], "item": ["a", "b"], "relevance": [1, 0], "x": [0.5, 0.25]})
    frame.write_csv(tmp_path / "items.csv")
    a, b = Features.of(frame), Features.of(tmp_path / "items.csv")
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.grades, b.grades)
