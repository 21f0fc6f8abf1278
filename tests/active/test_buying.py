"""Which answers to buy next, by expected gain per price."""

from __future__ import annotations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.active import choose_answers
from crowdrank.errors import DataError, UnknownNameError
from tests.models.jury.simulated import jury, share_right


def test_chosen_gold_answers_tell_more_than_random_ones():
    chosen_right, random_right = [], []
    for seed in range(4):
        votes, truth = jury(good=3, bad=9, orders=("first",), seed=seed)
        queries = [str(query) for query in votes.items.queries]
        chosen = [str(one.query) for one in choose_answers(votes, "gold", 3)]
        random = np.random.default_rng(seed).choice(queries, 3, replace=False).tolist()
        for found, into in ((chosen, chosen_right), (random, random_right)):
            known = cr.SideInformation(gold=_gold(found, queries, truth))
            into.append(share_right(cr.Jury().fit(votes, side_information=known), truth))
    assert np.mean(chosen_right) > 0.85
    assert np.mean(chosen_right) >= np.mean(random_right)


def _gold(chosen, queries, truth):
    ahead = [truth[queries.index(query)] > 0 for query in chosen]
    better = ["first" if first else "second" for first in ahead]
    worse = ["second" if first else "first" for first in ahead]
    return cr.Comparisons.of(better, worse, better, query=chosen)


def test_known_pairs_are_not_asked_again():
    votes, truth = jury(good=3, bad=9, orders=("first",))
    queries = [str(query) for query in votes.items.queries]
    first = [str(one.query) for one in choose_answers(votes, "gold", 5)]
    more = [str(one.query) for one in choose_answers(votes, "gold", 5, gold=_gold(first, queries, truth))]
    assert len(set(first)) == 5
    assert not set(first) & set(more)


def test_gold_is_asked_until_nothing_is_left():
    votes, _ = jury(good=3, bad=9, orders=("first",))
    found = choose_answers(votes, "gold", 10_000)
    assert len(found) == len(votes.items.queries)


@pytest.fixture
def mixed():
    """Two people with few votes and two language models with many, on eight items."""
    rng = np.random.default_rng(3)
    scores = np.linspace(1.2, -1.2, 8)
    rows = []
    for name, count, own in (("ann", 30, 0), ("bob", 30, 0), ("gpt", 600, 0.3), ("llama", 600, 0.5)):
        seen = scores + rng.normal(0, own, 8) if own else scores
        for _ in range(count):
            i, j = rng.choice(8, 2, replace=False)
            won = rng.random() < 1 / (1 + np.exp(seen[j] - seen[i]))
            rows.append((f"i{i}", f"i{j}", f"i{i}" if won else f"i{j}", name))
    left, right, winner, who = zip(*rows, strict=True)
    people = {name: cr.AnnotatorDetails(kind="llm" if name in ("gpt", "llama") else "human") for name in set(who)}
    return cr.Comparisons.of(left, right, winner, annotator=who), people


def test_votes_of_people_are_asked_about_close_items(mixed):
    votes, people = mixed
    found = choose_answers(votes, "human", 5, people=people)
    assert [one.annotator for one in found] == ["human"] * 5
    gaps = [abs(int(one.left[1:]) - int(one.right[1:])) for one in found]
    assert max(gaps) <= 4  # i0 and i7 are far apart: nothing to learn
    assert all(one.gain > 0 for one in found)


def test_prices_decide_between_sources(mixed):
    votes, people = mixed
    newcomer = {"dan": cr.AnnotatorDetails(kind="human", price=1.0)}
    for price, name in ((1000.0, "dan"), (0.001, "human")):
        priced = {**people, **newcomer, "human": cr.AnnotatorDetails(kind="human", price=price)}
        found = choose_answers(votes, ["human", "dan"], 3, people=priced)
        assert [one.annotator for one in found] == [name] * 3


def test_more_votes_of_a_judge_are_worth_less_than_those_of_people(mixed):
    votes, people = mixed
    some = votes.take(~((votes.annotators[votes.annotator] == "gpt") & (votes.left + votes.right == 7)))
    of_gpt, of_people = (choose_answers(some, name, 1, people=people)[0] for name in ("gpt", "human"))
    assert 0 < of_gpt.gain < of_people.gain


def test_an_annotator_is_not_asked_the_same_pair_twice():
    rows = [("a", "b", "a"), ("b", "c", "b"), ("c", "d", "c")]
    left, right, winner = zip(*(rows * 3), strict=True)
    votes = cr.Comparisons.of(left, right, winner, annotator=[name for name in "xyz" for _ in rows])
    found = [frozenset((one.left, one.right)) for one in choose_answers(votes, "x", 10)]
    assert len(found) == len(set(found)) == 3
    assert not set(found) & {frozenset("ab"), frozenset("bc"), frozenset("cd")}


def test_what_cannot_be_asked_is_refused():
    votes, _ = jury(good=3, bad=9)
    people = {str(name): cr.AnnotatorDetails(kind="llm") for name in votes.annotators}
    with pytest.raises(DataError, match="No human has judged these items"):
        choose_answers(votes, "human", 3, people=people)
    with pytest.raises(UnknownNameError, match="good0"):
        choose_answers(votes, "good00", 3)
