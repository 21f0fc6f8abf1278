import math

import pytest

from crowdrank.active import Question, QuestionHistory, Rules
from crowdrank.active.collection import Budget
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import CrowdBT

NAMES = ("ann", "bob", "cy")


def history_after(*load, **rules):
    """A history with these numbers of questions per annotator."""
    people = [name for name, times in zip(NAMES, load, strict=False) for _ in range(times)]
    votes = Comparisons.of(["a"] * len(people), ["b"] * len(people), ["a"] * len(people), annotator=people)
    return QuestionHistory(CrowdBT().start("abcd", NAMES), Rules(**rules), votes if people else None)


def test_without_limits_there_is_always_something_left():
    assert Budget().remaining(history_after(5)) == math.inf
    assert not Budget().exhausted(history_after(5))
    assert Budget().limit_reached(history_after(5)) == ""


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (Budget(votes=10), 4),
        (Budget(votes=6), 0),
        (Budget(votes=5), -1),
        (Budget(per_annotator=3), 3),
        (Budget(votes=8, per_annotator=3), 2),
        (Budget(money=10), 4),
        (Budget(money=10, per_annotator=3), 3),
        (Budget(money=6.5), 0),
    ],
)
def test_the_strictest_limit_determines_what_remains(budget, left):
    history = history_after(3, 2, 1)
    assert budget.remaining(history) == left
    assert budget.exhausted(history) == (left < 1)
    assert bool(budget.limit_reached(history)) == (left < 1)


def test_money_buys_the_cheapest_answers_first():
    prices = {"ann": 1.0, "bob": 2.0, "cy": 5.0}
    assert Budget(money=7, per_annotator=3).remaining(history_after(price=prices)) == 3 + 2
    assert Budget(money=7, per_annotator=2).remaining(history_after(price=prices)) == 2 + 2
    assert Budget(money=11, per_annotator=2).remaining(history_after(price=prices)) == 2 + 2 + 1


def test_ten_answers_at_ten_cents_cost_one():
    assert Budget(money=1).remaining(history_after(price=0.1)) == 10
    assert Budget(money=1).remaining(history_after(3, price=0.1)) == 7


def test_only_available_annotators_count():
    history = history_after(2, available=["ann"], price={"ann": 3.0})
    assert Budget(money=10).remaining(history) == 1
    assert Budget(per_annotator=2).limit_reached(history).startswith("Every available annotator has reached")
    assert Budget().limit_reached(history_after(available=[])) == "No annotator is available now."


def test_quotas_of_the_rules_bind_too():
    assert Budget(per_annotator=5).remaining(history_after(1, quota={"ann": 2, "bob": 0})) == 1 + 0 + 5
    assert Budget().limit_reached(history_after(1, 1, 1, quota=1)).endswith("their maximum number of questions.")


def test_a_question_counts_from_when_it_is_asked_unless_it_is_withdrawn():
    history, budget = history_after(), Budget(votes=1)
    question = Question(left="a", right="b", annotator="ann", probability=1, policy="random")
    history.add(question)
    assert budget.exhausted(history)
    history.resolve(question, withdrawn=True)
    assert not budget.exhausted(history)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(votes=6), "All 6 questions of the budget were asked."),
        (Budget(money=6.5), "6.00 of 6.50 is spent, and the cheapest answer costs 1.00."),
        (
            Budget(per_annotator=1),
            "Every available annotator has reached their maximum number of questions (1 by the budget, or fewer by "
            "the rules).",
        ),
    ],
)
def test_the_limit_that_was_reached_is_described(budget, words):
    assert budget.limit_reached(history_after(3, 2, 1)) == words


@pytest.mark.parametrize("limits", [{"votes": -1}, {"money": math.inf}, {"per_annotator": math.nan}])
def test_a_limit_is_a_number_from_zero_on(limits):
    with pytest.raises(SettingError, match=f"{next(iter(limits))} must be zero or more"):
        Budget(**limits)
