"""Expected information gain of a question, and the best question."""

import numpy as np
import pytest

from crowdrank.active import gain_formulas as formula
from crowdrank.active import information_gain
from crowdrank.active.information_gain import all_gains, best_pair, best_triplet, expected_gain
from crowdrank.active.questions import EVERYONE, Exclusions
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.online.beliefs import Beliefs, Vocabulary


def believed(items=6, annotators=3, queries=None, seed=0):
    rng = np.random.default_rng(seed)
    queries = ("",) * items if queries is None else queries
    return Beliefs(
        items=Vocabulary(tuple(f"i{n}" for n in range(items)), queries),
        annotators=Vocabulary.of(f"a{n}" for n in range(annotators)),
        item_columns={"mean": rng.normal(size=items), "variance": rng.uniform(0.1, 1, items)},
        annotator_columns={"alpha": rng.uniform(2, 9, annotators), "beta": rng.uniform(1, 3, annotators)},
    )


def test_the_gain_is_the_same_by_label_and_by_code():
    beliefs = believed()
    value = expected_gain(beliefs, "i1", "i4", "a2", 5.0)
    lead = beliefs.mean[1] - beliefs.mean[4]
    assert value == expected_gain(beliefs, 1, 4, 2, 5.0)
    assert value == formula.expected_gain(
        lead, beliefs.variance[1], beliefs.variance[4], beliefs.alpha[2], beliefs.beta[2], 5.0
    )


def test_items_are_named_within_their_query():
    beliefs = believed(4, queries=("x", "x", "y", "y"))
    assert expected_gain(beliefs, "i2", "i3", "a0", query="y") > 0
    with pytest.raises(UnknownNameError):
        expected_gain(beliefs, "i2", "i3", "a0", query="x")


def test_an_item_is_not_compared_with_itself_nor_across_queries():
    beliefs = believed(4, queries=("x", "x", "y", "y"))
    for pair in ((0, 0), (0, 2)):
        with pytest.raises(DataError, match="cannot be compared"):
            expected_gain(beliefs, *pair, 0)


def test_names_and_settings_are_checked():
    beliefs = believed()
    with pytest.raises(UnknownNameError, match="i1"):
        expected_gain(beliefs, "i11", "i2", "a0")
    with pytest.raises(UnknownNameError, match="annotator"):
        best_pair(beliefs, 7)
    with pytest.raises(SettingError, match="exploration"):
        best_pair(beliefs, 0, -1.0)
    with pytest.raises(SettingError, match="Prices"):
        best_triplet(beliefs, prices=np.zeros(3))
    with pytest.raises(DataError, match="quality"):
        best_pair(beliefs.replace(annotator_columns={"other": np.ones(3)}), 0)


def test_all_gains_are_those_of_single_questions():
    beliefs = believed(5, queries=("x", "x", "y", "y", "y"))
    gains = all_gains(beliefs, exploration=2.0)
    assert gains.shape == (3, 5, 5)
    assert np.isnan(gains).sum() == 3 * (5 + 2 * 2 * 3)
    assert gains[1, 4, 2] == gains[1, 2, 4] == pytest.approx(expected_gain(beliefs, 2, 4, 1, 2.0), rel=1e-14)
    np.testing.assert_array_equal(all_gains(beliefs, "a1", 2.0), gains[1])


@pytest.mark.parametrize("limit", [0, information_gain.EXHAUSTIVE_UP_TO])
def test_the_best_is_the_largest_whether_searched_for_or_all_are_scored(monkeypatch, limit):
    monkeypatch.setattr(information_gain, "EXHAUSTIVE_UP_TO", limit)
    beliefs = believed(30, 4, queries=("x",) * 12 + ("y",) * 17 + ("z",))
    gains, prices = all_gains(beliefs), np.array([1.0, 2.0, 0.7, 1.0])
    found = best_triplet(beliefs)
    assert found.gain == pytest.approx(np.nanmax(gains), rel=1e-12)
    assert gains[found.annotator, found.left, found.right] == pytest.approx(found.gain, rel=1e-12)
    found = best_pair(beliefs, "a1")
    assert (found.annotator, found.gain) == (1, pytest.approx(np.nanmax(gains[1]), rel=1e-12))
    found = best_triplet(beliefs, annotators=np.array([1, 2]), prices=prices)
    dear = gains / prices[:, None, None]
    assert found.gain / prices[found.annotator] == pytest.approx(np.nanmax(dear[1:3]), rel=1e-12)
    exclusions = Exclusions(30).with_pairs(EVERYONE, found.left, found.right)
    second = best_triplet(beliefs, annotators=np.array([1, 2]), prices=prices, excluded=exclusions)
    assert {second.left, second.right} != {found.left, found.right}


@pytest.mark.parametrize("limit", [0, information_gain.EXHAUSTIVE_UP_TO])
def test_none_is_best_where_every_pair_is_excluded(monkeypatch, limit):
    monkeypatch.setattr(information_gain, "EXHAUSTIVE_UP_TO", limit)
    beliefs = believed(3)
    assert best_pair(beliefs, 0, excluded=Exclusions(3).with_items(0, [0, 1])) is None
    assert best_pair(beliefs, 1, excluded=Exclusions(3).with_items(0, [0, 1])) is not None
    assert best_triplet(beliefs, annotators=np.zeros(0, int)) is None


def test_two_hundred_items_need_no_compiler(monkeypatch):
    def compile_nothing(*_):
        raise AssertionError("searched")

    monkeypatch.setattr(information_gain, "build_tree", compile_nothing)
    assert best_pair(believed(200), "a0") is not None
