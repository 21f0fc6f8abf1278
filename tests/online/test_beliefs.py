import json

import numpy as np
import pytest

from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.online import Beliefs, CrowdBT, Elo, TrueSkill, Vocabulary


def test_a_vocabulary_keeps_its_codes_when_labels_are_added():
    vocabulary = Vocabulary.of(["b", "a"]).with_labels(["c", "a", "c"])
    assert vocabulary.labels == ("b", "a", "c")
    assert [vocabulary.index(label) for label in "bac"] == [0, 1, 2]
    assert vocabulary.with_labels(["a", "b"]) is vocabulary


def test_numbers_and_text_are_the_same_label():
    assert Vocabulary.of([1, 2]).with_labels(["1", 3, "3"]).labels == ("1", "2", "3")


def test_a_label_may_occur_in_several_queries():
    vocabulary = Vocabulary.of(["a", "b"], "x").with_labels(["a"], "y")
    assert len(vocabulary) == 3
    assert (vocabulary.index("a", "x"), vocabulary.index("a", "y")) == (0, 2)
    assert vocabulary.query.tolist() == [0, 0, 1]
    assert vocabulary.find("b", "y") is None


def test_a_vocabulary_keeps_the_order_of_the_items_of_a_table():
    votes = Comparisons.of(["b", "a"], ["c", "b"], ["b", "a"], query=["y", "x"])
    vocabulary = Vocabulary.of(votes.items)
    assert list(zip(vocabulary.queries, vocabulary.labels, strict=True)) == [
        ("x", "a"),
        ("x", "b"),
        ("y", "b"),
        ("y", "c"),
    ]
    assert vocabulary.codes(vocabulary).tolist() == [0, 1, 2, 3]


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="No item named 'Tokio'; did you mean 'Tokyo'"):
        Vocabulary.of(["Tokyo", "Lima"]).index("Tokio")


def test_beliefs_say_how_much_they_have_seen():
    beliefs = CrowdBT().start(["a", "b"], ["ann"])
    assert repr(beliefs) == "<Beliefs of 2 items and 1 annotators after 0 judgments>"


def test_a_missing_column_is_an_error_that_names_the_models_that_keep_it():
    with pytest.raises(DataError, match="no variance of items, only mean: CrowdBT, TrueSkill and Glicko2 keep it"):
        _ = Elo().start(["a"]).variance
    for name in ("alpha", "beta", "quality"):
        with pytest.raises(DataError, match="of annotators, only their names: CrowdBT keeps it"):
            getattr(TrueSkill().start(["a"], ["ann"]), name)
    with pytest.raises(DataError, match="no volatility of items, only mean, variance: Glicko2 keeps it"):
        _ = TrueSkill().start(["a"]).volatility


def test_columns_must_be_as_long_as_their_names():
    with pytest.raises(DataError, match="mean: 1 values for 2 names"):
        Beliefs(
            items=Vocabulary.of("ab"),
            annotators=Vocabulary.of(()),
            item_columns={"mean": np.zeros(1)},
            annotator_columns={},
        )


@pytest.mark.parametrize(
    "content",
    ["", "[1]", "{}", '{"crowdrank_ranking": 1}', '{"crowdrank_beliefs": 3}'],
)
def test_a_file_without_beliefs_is_not_loaded(content, tmp_path):
    path = tmp_path / "beliefs.json"
    path.write_text(content)
    with pytest.raises(FormatError, match="beliefs.json does not contain beliefs saved by crowdrank"):
        Beliefs.load(path)
    with pytest.raises(FormatError, match="does not contain beliefs"):
        Beliefs.load(tmp_path / "nowhere.json")


def test_files_that_were_cut_short_or_come_from_later_are_not_loaded(tmp_path):
    path = tmp_path / "beliefs.json"
    model = CrowdBT()
    model.update(model.start(), Comparison("a", "b", "a", "ann")).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"crowdrank_beliefs": 7}))
    with pytest.raises(FormatError, match="version 7 of the format, but this crowdrank reads version 3"):
        Beliefs.load(path)
    path.write_text(json.dumps(content | {"item": ["a"], "query": [""]}))
    with pytest.raises(FormatError, match="does not contain beliefs"):
        Beliefs.load(path)
