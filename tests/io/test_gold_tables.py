"""Gold tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowdrank.errors import FormatError, UnknownNameError
from crowdrank.io import read_gold


def test_larger_is_better() -> None:
    gold = read_gold({"item": ["x", "y"], "label": ["3", "1"]})
    assert (gold.item.tolist(), gold.value.tolist(), gold.query) == (["x", "y"], [3.0, 1.0], None)


@pytest.mark.parametrize("name", ["rank", "true_rank", "Position", "place", "group"])
def test_ranks_are_turned_round(name: str) -> None:
    assert read_gold({"item": ["x", "y"], name: [1, 2]}).value.tolist() == [-1.0, -2.0]
    assert read_gold({"item": ["x", "y"], name: [1, 2]}, {"value": name}).value.tolist() == [-1.0, -2.0]


def test_any_column_can_be_told_to_be_a_value_or_a_rank() -> None:
    table = {"item": ["x", "y"], "staff": [1, 2], "peers": [3, 4]}
    with pytest.raises(FormatError, match="which of 'staff', 'peers' is the value"):
        read_gold(table)
    assert read_gold(table, {"value": "peers"}).value.tolist() == [3.0, 4.0]
    assert read_gold(table, {"rank": "peers"}).value.tolist() == [-3.0, -4.0]
    with pytest.raises(UnknownNameError, match="role"):
        read_gold(table, {"winner": "peers"})


def test_the_only_column_left_is_the_value() -> None:
    assert read_gold({"item": ["x"], "pagerank": [0.5]}).value.tolist() == [0.5]


def test_queries_are_kept() -> None:
    gold = read_gold({"topic": ["s", "t"], "docno": ["x", "x"], "relevance": [0, 2]})
    assert gold.query is not None
    assert gold.query.tolist() == ["s", "t"]


def test_items_without_a_value_are_left_out() -> None:
    assert read_gold({"item": ["x", "y", "z"], "label": ["1", None, ""]}).item.tolist() == ["x"]


def test_gold_that_contradicts_itself_is_refused() -> None:
    assert len(read_gold({"item": ["x", "x"], "label": [1, 1]}).item) == 1
    with pytest.raises(FormatError, match="item 'x' has more than one value"):
        read_gold({"item": ["x", "x"], "label": [1, 2]})


def test_gold_must_be_numbers_about_items(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("item,label\nx,1\ny,good\n")
    with pytest.raises(FormatError, match=r"gold\.csv: Line 3, column 'label': the value must be a finite number"):
        read_gold(tmp_path / "gold.csv")
    with pytest.raises(FormatError, match="no column for the item"):
        read_gold({"label": [1]})
    with pytest.raises(FormatError, match="no rows"):
        read_gold({"item": [], "label": []})
