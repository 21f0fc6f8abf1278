import json

import numpy as np
import pytest

from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.online import Beliefs, CrowdBT, Elo, Roll, TrueSkill


def test_a_roll_keeps_its_codes_when_others_join():
    roll = Roll.of(["b", "a"]).with_new(["c", "a", "c"])
    assert roll.labels == ("b", "a", "c")
    assert [roll.index(label) for label in "bac"] == [0, 1, 2]
    assert roll.with_new(["a", "b"]) is roll


def test_a_roll_takes_numbers_and_text_for_the_same_name():
    assert Roll.of([1, 2]).with_new(["1", 3, "3"]).labels == ("1", "2", "3")


def test_a_roll_tells_queries_apart():
    roll = Roll.of(["a", "b"], "x").with_new(["a"], "y")
    assert len(roll) == 3
    assert (roll.index("a", "x"), roll.index("a", "y")) == (0, 2)
    assert roll.query.tolist() == [0, 0, 1]
    assert roll.find("b", "y") is None


def test_a_roll_of_the_items_of_a_table_stands_in_their_order():
    votes = Comparisons.of(["b", "a"], ["c", "b"], ["b", "a"], query=["y", "x"])
    roll = Roll.of(votes.items)
    assert list(zip(roll.queries, roll.labels, strict=True)) == [("x", "a"), ("x", "b"), ("y", "b"), ("y", "c")]
    assert roll.codes(roll).tolist() == [0, 1, 2, 3]


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="No item named 'Tokio'; did you mean 'Tokyo'"):
        Roll.of(["Tokyo", "Lima"]).index("Tokio")


def test_beliefs_say_how_much_they_have_seen():
    beliefs = CrowdBT().start(["a", "b"], ["ann"])
    assert repr(beliefs) == "<Beliefs of 2 items and 1 annotators after 0 judgments>"


def test_what_a_model_does_not_keep_is_an_error_that_teaches():
    with pytest.raises(DataError, match="no variance of items, only mean: CrowdBT, TrueSkill and Glicko2 keep it"):
        _ = Elo().start(["a"]).variance
    for name in ("truths", "lies", "quality"):
        with pytest.raises(DataError, match="of annotators, only their names: CrowdBT keeps it"):
            getattr(TrueSkill().start(["a"], ["ann"]), name)
    with pytest.raises(DataError, match="no volatility of items, only mean, variance: Glicko2 keeps it"):
        _ = TrueSkill().start(["a"]).volatility


def test_columns_must_be_as_long_as_their_names():
    with pytest.raises(DataError, match="mean: 1 values for 2 names"):
        Beliefs(items=Roll.of("ab"), annotators=Roll.of(()), of_items={"mean": np.zeros(1)}, of_annotators={})


@pytest.mark.parametrize(
    "content",
    ["", "[1]", "{}", '{"crowdrank_ranking": 1}', '{"crowdrank_beliefs": 1}'],
)
def test_what_are_no_beliefs_is_not_loaded(content, tmp_path):
    path = tmp_path / "beliefs.json"
    path.write_text(content)
    with pytest.raises(FormatError, match="beliefs.json does not hold beliefs saved by crowdrank"):
        Beliefs.load(path)
    with pytest.raises(FormatError, match="does not hold beliefs"):
        Beliefs.load(tmp_path / "nowhere.json")


def test_files_that_were_cut_short_or_come_from_later_are_not_loaded(tmp_path):
    path = tmp_path / "beliefs.json"
    model = CrowdBT()
    model.update(model.start(), Comparison("a", "b", "a", "ann")).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"crowdrank_beliefs": 7}))
    with pytest.raises(FormatError, match="version 7 of the format; this crowdrank reads 1"):
        Beliefs.load(path)
    path.write_text(json.dumps(content | {"item": ["a"], "query": [""]}))
    with pytest.raises(FormatError, match="does not hold beliefs"):
        Beliefs.load(path)
