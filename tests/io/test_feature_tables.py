"""Features of items, from tables of all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crowdrank.errors import FormatError, UnknownNameError
from crowdrank.io.feature_tables import read_features


def table(**more: Any) -> dict[str, Any]:
    return {"query": ["p", "p", "q"], "doc": ["a", "b", "a"], "label": [0, 1, 2], "length": [3, 5, 8], **more}


def test_columns_of_numbers_are_features_and_the_rest_is_told() -> None:
    found = read_features(table(split=["train"] * 3, odds=["0.5", "1", "2e3"]))
    assert found.names == ("length", "odds")
    np.testing.assert_array_equal(found.values, [[3, 0.5], [5, 1], [8, 2000]])
    assert found.left_out == ("split",)
    assert found.grade is not None
    assert found.grade.tolist() == [0, 1, 2]
    assert any("'label' was read as the relevance grade" in note for note in found.notes)


def test_roles_can_be_told() -> None:
    found = read_features(table(), columns={"grade": None, "query": None})
    assert found.names == ("label", "length")
    assert found.grade is None
    assert found.query is None


def test_features_can_be_chosen() -> None:
    assert read_features(table(odds=[1, 2, 3]), features=["odds"]).names == ("odds",)
    with pytest.raises(UnknownNameError):
        read_features(table(), features=["lenght"])
    with pytest.raises(FormatError, match="'split' contains no numbers"):
        read_features(table(split=["x"] * 3), features=["split"])


def test_files_and_frames_are_read_alike(tmp_path: Path) -> None:
    frame = pl.DataFrame(table())
    frame.write_csv(tmp_path / "items.csv")
    frame.write_parquet(tmp_path / "items.parquet")
    for source in (frame, frame.to_pandas(), tmp_path / "items.csv", str(tmp_path / "items.parquet")):
        found = read_features(source)
        np.testing.assert_array_equal(found.values, [[3], [5], [8]])
        assert found.item.tolist() == ["a", "b", "a"]
    assert read_features(frame.to_pandas()).frame_backend == "pandas"


def test_a_row_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item,length\n\na,1\nb,none\n")
    found = read_features(path)
    assert np.isnan(found.values[1, 0])
    assert found.where(1) == "line 4"


def test_a_letor_file_has_features_by_number(tmp_path: Path) -> None:
    path = tmp_path / "train.letor"
    path.write_text("1 qid:1 1:0.5 2:7 # a\n0 qid:1 1:0.25 # b\n")
    found = read_features(path, features=["f2"])
    assert found.names == ("f2",)
    np.testing.assert_array_equal(found.values, [[7], [0]])
    with pytest.raises(FormatError, match="features of a LETOR file are called f1 to f2, got 'f3'"):
        read_features(path, features=["f3"])
    with pytest.raises(FormatError, match="have no names. Leave columns out"):
        read_features(path, columns={"item": "doc"})


def test_a_table_without_items_or_features_is_refused() -> None:
    with pytest.raises(FormatError, match="no column for the item"):
        read_features({"x": [1, 2]})
    with pytest.raises(FormatError, match="no column contains numbers that could be features"):
        read_features({"item": ["a", "b"], "style": ["x", "y"]})
