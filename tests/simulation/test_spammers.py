import numpy as np
import pytest

from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.simulation import factor_crowd, with_spammers


@pytest.mark.parametrize(("side", "outcomes"), [("left", {1}), ("right", {-1}), ("random", {1, -1})])
def test_spammers_take_tasks_of_the_crowd_and_answer_without_looking(side, outcomes):
    before = factor_crowd(seed=1).judgments
    after = with_spammers(before, 30, side, seed=2)
    spam = np.array([name.startswith("spammer") for name in after.annotators])[after.annotator]
    added = after.take(np.flatnonzero(spam))
    assert len(added) == 30 * 40
    assert set(added.outcome) == outcomes
    shown = set(zip(before.left, before.right, before.features["factor1"], strict=True))
    assert set(zip(added.left, added.right, added.features["factor1"], strict=True)) <= shown


def test_the_others_stay_as_they_were():
    before = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"], annotator=["zoe", "ann"])
    after = with_spammers(before, 2)
    assert after.annotators.tolist() == ["ann", "spammer1", "spammer2", "zoe"]
    assert after.take(np.arange(2)).to_frame().equals(before.to_frame())


def test_names_already_taken_are_not_taken_again():
    before = Comparisons.of(["a"], ["b"], ["a"], annotator=["spammer1"])
    assert with_spammers(before, 1).annotators.tolist() == ["spammer1", "spammer_1"]


def test_none_added_changes_nothing():
    before = factor_crowd().judgments
    assert with_spammers(before, 0) is before


def test_spammers_cannot_join_the_unnamed():
    with pytest.raises(SettingError, match="no annotators"):
        with_spammers(Comparisons.of(["a"], ["b"], ["a"]), 1)
    with pytest.raises(SettingError, match="count must be at least 0, got -1"):
        with_spammers(factor_crowd().judgments, -1)
