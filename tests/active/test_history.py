"""The question history."""

import numpy as np
import pytest

from crowdrank.active import Question, QuestionHistory, Rules
from crowdrank.active.questions import pack_pair
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.online import CrowdBT

BELIEFS = CrowdBT().start(("a", "b", "c"), ("ann", "bob"))


def question(left="a", right="b", annotator="ann"):
    return Question(left=left, right=right, annotator=annotator, probability=1.0, policy="random")


def test_a_question_is_pending_until_it_is_resolved():
    history = QuestionHistory(BELIEFS)
    history.add(question("b", "a"))
    assert dict(history.pending) == {(0, 1, 0): 1}
    assert history.pending_pairs().tolist() == [pack_pair(0, 1)]
    history.resolve(question("a", "b"))
    assert not history.pending
    assert history.pending_pairs().tolist() == []
    assert history.asked_pairs(0).tolist() == [pack_pair(1, 0)]
    assert history.asked_pairs(1).tolist() == []
    assert history.item_counts.tolist() == [1, 1, 0]
    assert history.annotator_counts.tolist() == [1, 0]


def test_a_withdrawn_question_does_not_count():
    history = QuestionHistory(BELIEFS)
    history.add(question())
    history.resolve(question(), withdrawn=True)
    assert history.item_counts.tolist() == [0, 0, 0]
    assert history.asked_pairs(0).tolist() == []
    assert history.spent == 0


def test_a_question_that_is_not_pending_cannot_be_resolved():
    with pytest.raises(DataError, match="'ann'"):
        QuestionHistory(BELIEFS).resolve(question())


def test_earlier_judgments_count():
    votes = Comparisons.of(["a", "a", "b"], ["b", "b", "c"], ["a", "b", "tie"], annotator=["ann", "ann", "bob"])
    history = QuestionHistory(BELIEFS, Rules(price={"ann": 3.0}), votes)
    assert history.item_counts.tolist() == [2, 3, 1]
    assert history.annotator_counts.tolist() == [2, 1]
    assert history.spent == 7
    assert history.asked_pairs(0).tolist() == [pack_pair(1, 0)]


def test_new_items_and_annotators_are_added():
    history = QuestionHistory(BELIEFS, Rules(own={"zoe": ["d"]}))
    history.add(question())
    grown = CrowdBT().update(BELIEFS, Comparison("d", "a", "d", "zoe"))
    history.extend(grown)
    assert history.item_counts.tolist() == [1, 1, 0, 0]
    assert len(history.prices) == 3
    assert history.own_items == {2: pytest.approx(np.array([3]))}


def test_exclusions_are_asked_pairs_and_own_items():
    history = QuestionHistory(BELIEFS, Rules(own={"bob": ["c"]}))
    history.add(question("a", "b", "ann"))
    history.add(question("b", "c", "ann"))
    history.resolve(question("a", "b", "ann"))
    excluded = history.exclusions()
    allowed = {(i, j, k): bool(excluded.allows(k, i, j)) for k in (0, 1) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert [triplet for triplet, fine in allowed.items() if fine] == [(0, 2, 0), (0, 1, 1)]
    assert history.pending_pairs().tolist() == [pack_pair(1, 2)]


@pytest.mark.parametrize("wrong", [{"price": 0.0}, {"price": {"ann": -1}}, {"quota": -1}, {"quota": {"ann": -2}}])
def test_rules_make_sense(wrong):
    with pytest.raises(SettingError, match=r"Prices|Quotas"):
        Rules(**wrong)
