"""The ledger of what was asked."""

import numpy as np
import pytest

from crowdrank.active import Asked, Question, Rules
from crowdrank.active.history import packed
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.online import CrowdBT

BELIEFS = CrowdBT().start(("a", "b", "c"), ("ann", "bob"))


def question(left="a", right="b", annotator="ann"):
    return Question(left=left, right=right, annotator=annotator, probability=1.0, policy="random")


def test_a_question_is_awaited_until_it_is_settled():
    asked = Asked(BELIEFS)
    asked.note(question("b", "a"))
    assert dict(asked.waiting) == {(0, 1, 0): 1}
    assert asked.awaited().tolist() == [packed(0, 1)]
    asked.settle(question("a", "b"))
    assert not asked.waiting
    assert asked.awaited().tolist() == []
    assert asked.had_by(0).tolist() == [packed(1, 0)]
    assert asked.had_by(1).tolist() == []
    assert asked.seen.tolist() == [1, 1, 0]
    assert asked.load.tolist() == [1, 0]


def test_a_question_withdrawn_was_never_asked():
    asked = Asked(BELIEFS)
    asked.note(question())
    asked.settle(question(), withdrawn=True)
    assert asked.seen.tolist() == [0, 0, 0]
    assert asked.had_by(0).tolist() == []
    assert asked.spent == 0


def test_what_nobody_awaits_cannot_be_settled():
    with pytest.raises(DataError, match="'ann'"):
        Asked(BELIEFS).settle(question())


def test_judgments_made_before_count():
    votes = Comparisons.of(["a", "a", "b"], ["b", "b", "c"], ["a", "b", "tie"], annotator=["ann", "ann", "bob"])
    asked = Asked(BELIEFS, Rules(price={"ann": 3.0}), votes)
    assert asked.seen.tolist() == [2, 3, 1]
    assert asked.load.tolist() == [2, 1]
    assert asked.spent == 7
    assert asked.had_by(0).tolist() == [packed(1, 0)]


def test_newcomers_join_the_ledger():
    asked = Asked(BELIEFS, Rules(own={"zoe": ["d"]}))
    asked.note(question())
    grown = CrowdBT().update(BELIEFS, Comparison("d", "a", "d", "zoe"))
    asked.follow(grown)
    assert asked.seen.tolist() == [1, 1, 0, 0]
    assert len(asked.prices) == 3
    assert asked.own == {2: pytest.approx(np.array([3]))}


def test_what_is_excluded_is_what_is_kept_from_each():
    asked = Asked(BELIEFS, Rules(own={"bob": ["c"]}))
    asked.note(question("a", "b", "ann"))
    asked.note(question("b", "c", "ann"))
    asked.settle(question("a", "b", "ann"))
    excluded = asked.excluded()
    allowed = {(i, j, k): bool(excluded.allows(k, i, j)) for k in (0, 1) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert [triplet for triplet, fine in allowed.items() if fine] == [(0, 2, 0), (0, 1, 1)]
    assert asked.awaited().tolist() == [packed(1, 2)]


@pytest.mark.parametrize("wrong", [{"price": 0.0}, {"price": {"ann": -1}}, {"quota": -1}, {"quota": {"ann": -2}}])
def test_rules_make_sense(wrong):
    with pytest.raises(SettingError, match=r"Prices|Quotas"):
        Rules(**wrong)
