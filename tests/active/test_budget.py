import math

import pytest

from crowdrank.active import Asked, Question, Rules
from crowdrank.active.budget import Budget
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import CrowdBT

NAMES = ("ann", "bob", "cy")


def ledger(*load, **rules):
    """So many questions were put to each."""
    people = [name for name, times in zip(NAMES, load, strict=False) for _ in range(times)]
    votes = Comparisons.of(["a"] * len(people), ["b"] * len(people), ["a"] * len(people), annotator=people)
    return Asked(CrowdBT().start("abcd", NAMES), Rules(**rules), votes if people else None)


def test_without_limits_there_is_always_something_left():
    assert Budget().left(ledger(5)) == math.inf
    assert not Budget().exhausted(ledger(5))
    assert Budget().limit(ledger(5)) == ""


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (Budget(votes=10), 4),
        (Budget(votes=6), 0),
        (Budget(votes=5), -1),
        (Budget(per_person=3), 3),
        (Budget(votes=8, per_person=3), 2),
        (Budget(money=10), 4),
        (Budget(money=10, per_person=3), 3),
        (Budget(money=6.5), 0),
    ],
)
def test_what_is_left_is_what_the_strictest_limit_leaves(budget, left):
    asked = ledger(3, 2, 1)
    assert budget.left(asked) == left
    assert budget.exhausted(asked) == (left < 1)
    assert bool(budget.limit(asked)) == (left < 1)


def test_money_buys_the_cheapest_answers_first():
    prices = {"ann": 1.0, "bob": 2.0, "cy": 5.0}
    assert Budget(money=7, per_person=3).left(ledger(price=prices)) == 3 + 2
    assert Budget(money=7, per_person=2).left(ledger(price=prices)) == 2 + 2
    assert Budget(money=11, per_person=2).left(ledger(price=prices)) == 2 + 2 + 1


def test_ten_answers_at_ten_cents_cost_one():
    assert Budget(money=1).left(ledger(price=0.1)) == 10
    assert Budget(money=1).left(ledger(3, price=0.1)) == 7


def test_only_who_can_be_asked_counts():
    asked = ledger(2, available=["ann"], price={"ann": 3.0})
    assert Budget(money=10).left(asked) == 1
    assert Budget(per_person=2).limit(asked).startswith("Everyone who can be asked has had")
    assert Budget().limit(ledger(available=[])) == "Nobody can be asked now."


def test_quotas_of_the_rules_bind_too():
    assert Budget(per_person=5).left(ledger(1, quota={"ann": 2, "bob": 0})) == 1 + 0 + 5
    assert Budget().limit(ledger(1, 1, 1, quota=1)).endswith("as many questions as they may get.")


def test_a_question_counts_as_soon_as_it_is_put_and_not_when_it_is_withdrawn():
    asked, budget = ledger(), Budget(votes=1)
    question = Question(left="a", right="b", annotator="ann", probability=1, policy="random")
    asked.note(question)
    assert budget.exhausted(asked)
    asked.settle(question, withdrawn=True)
    assert not budget.exhausted(asked)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(votes=6), "All 6 questions of the budget were put."),
        (Budget(money=6.5), "6.00 of 6.50 is spent, and the cheapest answer costs 1.00."),
        (
            Budget(per_person=1),
            "Everyone who can be asked has had as many questions as they may get: 1 by the budget, or fewer by the "
            "rules.",
        ),
    ],
)
def test_the_limit_that_was_hit_is_told_in_words(budget, words):
    assert budget.limit(ledger(3, 2, 1)) == words


@pytest.mark.parametrize("limits", [{"votes": -1}, {"money": math.inf}, {"per_person": math.nan}])
def test_a_limit_is_a_number_from_zero_on(limits):
    with pytest.raises(SettingError, match=f"{next(iter(limits))} must be zero or more"):
        Budget(**limits)
