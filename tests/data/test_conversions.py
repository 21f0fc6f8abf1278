"""Conversions between kinds of judgments, against plain loops."""

from collections import Counter, defaultdict
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.data.conversions import pairs_within, rankings_to_links
from crowdrank.errors import DataError
from crowdrank.models import MeanRating, WinRate
from crowdrank.models.base import diagnose
from tests.strategies import comparisons, rankings, ratings

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def answers(votes):
    """Each answer as (annotator, better, worse), or a tie as a set of two."""
    found = Counter()
    for n in range(len(votes)):
        who = None if votes.annotator is None else votes.annotators[votes.annotator[n]]
        a, b = int(votes.left[n]), int(votes.right[n])
        outcome = votes.outcome[n]
        said = frozenset((a, b)) if outcome == 0 else (a, b) if outcome > 0 else (b, a)
        found[who, said] += votes.weights[n]
    return found


def from_lists(lists, pairs, ties):
    found = Counter()
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        who = None if lists.annotator is None else lists.annotators[lists.annotator[n]]
        for (a, p), (b, q) in combinations(zip(lists.item[rows].tolist(), lists.place[rows], strict=True), 2):
            if pairs == "adjacent" and abs(int(p) - int(q)) > 1:
                continue
            if p == q and ties == "keep":
                found[who, frozenset((a, b))] += lists.weights[n]
            elif p != q:
                found[who, (a, b) if p < q else (b, a)] += lists.weights[n]
    return found


@pytest.mark.parametrize("pairs", ["all", "adjacent"])
@pytest.mark.parametrize("ties", ["drop", "keep"])
@quick
@given(lists=rankings())
def test_lists_become_their_pairs(pairs, ties, lists):
    made = lists.to_comparisons(pairs, ties)
    assert answers(made) == from_lists(lists, pairs, ties)
    assert made.items is lists.items
    assert not made.positions_known


def test_weights_of_lists_go_to_their_pairs():
    lists = Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"], ["c"]]], weight=[2.0, 3.0])
    assert lists.to_comparisons().weight.tolist() == [2.0, 3.0, 3.0, 3.0]


def test_lists_that_order_nothing_have_no_pairs():
    with pytest.raises(DataError, match="any two items"):
        Rankings.of_lists([[["a"]], [["b", "c"]]]).to_comparisons()
    assert Rankings.of_lists([[["b", "c"]]]).to_comparisons(ties="keep").ties == 1


@quick
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_pairs_within_are_all_pairs_of_each_group(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    first, second = pairs_within(offsets)
    expected = [pair for a, b in pairwise(offsets) for pair in combinations(range(a, b), 2)]
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected


def lists_by_value(rows):
    """{(query, annotator): {item: value}} to {…: places}."""
    made = {}
    for key, values in rows.items():
        grades = sorted(set(values.values()), reverse=True)
        made[key] = tuple(tuple(sorted(i for i, v in values.items() if v == g)) for g in grades)
    return made


def places_of(lists):
    found = {}
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        who = None if lists.annotator is None else int(lists.annotator[n])
        key = (int(lists.items.query[item[0]]), who)
        assert key not in found
        found[key] = tuple(tuple(sorted(item[place == p].tolist())) for p in range(place[-1] + 1))
    return found


@quick
@given(votes=comparisons())
def test_comparisons_become_each_annotators_list_by_wins_less_losses(votes):
    net = defaultdict(lambda: defaultdict(float))
    for n in range(len(votes)):
        key = (int(votes.items.query[votes.left[n]]), int(votes.annotator[n]))
        net[key][int(votes.left[n])] += votes.outcome[n] * votes.weights[n]
        net[key][int(votes.right[n])] -= votes.outcome[n] * votes.weights[n]
    assert places_of(votes.to_rankings()) == lists_by_value(net)


def test_comparisons_of_nobody_become_one_list():
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    lists = votes.to_rankings()
    assert lists.annotator is None
    assert places_of(lists) == {(0, None): ((0,), (1,), (2,))}


@quick
@given(grades=ratings())
def test_grades_become_each_annotators_list(grades):
    rows = defaultdict(dict)
    for item, grade, who in zip(grades.item, grades.grade, grades.annotator, strict=True):
        rows[0, int(who)][int(item)] = grade
    assert places_of(grades.to_rankings()) == lists_by_value(rows)


def test_an_item_graded_twice_counts_by_its_mean():
    grades = Ratings.of(["a", "a", "b", "c"], [1, 4, 2, 3], annotator=["x"] * 4)
    assert places_of(grades.to_rankings()) == {(0, 0): ((2,), (0,), (1,))}


def test_grades_of_an_item_graded_twice_count_by_weight():
    grades = Ratings.of(["a", "a", "b"], [1, 4, 3], annotator=["x"] * 3, weight=[1, 3, 1])
    assert places_of(grades.to_rankings()) == {(0, 0): ((0,), (1,))}


def test_a_list_grades_by_the_share_put_below():
    lists = Rankings.of_lists([[["a"], ["b", "c"], ["d"], ["e"]], [["b"]]], annotator=["x", "y"])
    grades = lists.to_ratings()
    assert dict(zip(grades.items.labels[grades.item[:5]], grades.grade[:5], strict=True)) == {
        "a": 1.0,
        "b": 0.625,
        "c": 0.625,
        "d": 0.25,
        "e": 0.0,
    }
    assert grades.grade[5] == 0.5
    assert grades.annotator.tolist() == [0] * 5 + [1]


def test_a_comparison_is_two_grades():
    votes = Comparisons.of(
        ["a", "b", "a"], ["b", "c", "c"], ["a", "c", "tie"], annotator=["x", "y", "y"], weight=[1, 2, 3]
    )
    grades = votes.to_ratings()
    won = dict(zip(votes.items.labels, np.bincount(grades.item, grades.grade * grades.weights), strict=True))
    assert won == {"a": 2.5, "b": 0.0, "c": 3.5}
    assert grades.annotator.tolist() == [0, 1, 1] * 2
    np.testing.assert_allclose(MeanRating(prior_count=0).fit(grades).scores, WinRate().fit(votes).scores)


def test_components_of_grades_are_items_without_a_common_annotator():
    grades = Ratings.of(["a", "b", "c", "d", "c"], [1, 2, 3, 4, 5], annotator=["x", "x", "y", "y", "z"])
    diagnostics = diagnose(grades)
    assert [group.tolist() for group in diagnostics.disconnected_components] == [[0, 1], [2, 3]]
    assert diagnostics.notes() == [
        "2 groups of items were never graded by a common annotator: a, b; c, d. "
        "Only the scale of the grades relates one group to another."
    ]
    assert diagnose(Ratings.of(["a", "b"], [1, 2])).notes() == []


@quick
@given(grades=ratings())
def test_grades_become_comparisons_the_better_wins(grades):
    expected = Counter()
    by_annotator = defaultdict(list)
    for item, grade, who in zip(grades.item.tolist(), grades.grade, grades.annotator, strict=True):
        by_annotator[grades.annotators[who]].append((item, grade))
    for who, rows in by_annotator.items():
        for (a, g), (b, h) in combinations(rows, 2):
            said = frozenset((a, b)) if g == h else (a, b) if g > h else (b, a)
            expected[who, said] += 1
    assert answers(grades.to_comparisons(ties="keep")) == expected if expected else True
    decided = Counter({k: v for k, v in expected.items() if isinstance(k[1], tuple)})
    if decided:
        assert answers(grades.to_comparisons()) == decided
    else:
        with pytest.raises(DataError, match="any two items"):
            grades.to_comparisons()


def reachable(size, edges):
    found = np.eye(size, dtype=bool)
    for a, b in edges:
        found[a, b] = True
    for _ in range(size):
        found = found | (found.astype(int) @ found.astype(int) > 0)
    return found


@quick
@given(lists=rankings())
def test_links_join_items_as_the_lists_likelihood_does(lists):
    """In Plackett-Luce an item beats all items that remain when it is drawn; the last place is not drawn."""
    edges, size = [], len(lists.items)
    for n in range(len(lists)):
        rows = slice(lists.offsets[n], lists.offsets[n + 1])
        item, place = lists.item[rows], lists.place[rows]
        for p in range(place[-1]):
            edges += [(a, b) for a in item[place == p] for b in item[place >= p] if a != b]
    links = rankings_to_links(lists)
    joined = []
    for a, b, outcome in zip(links.left, links.right, links.outcome, strict=True):
        joined += [(a, b)] if outcome > 0 else [(a, b), (b, a)]
    np.testing.assert_array_equal(reachable(size, joined), reachable(size, edges))
    assert len(links) <= len(lists.item)


def test_mean_grades_that_differ_by_rounding_are_tied():
    ratings = Ratings.of(["a"] * 3 + ["b"], [1, 2, 3, 2], annotator=["w"] * 4, weight=[0.1, 0.2, 0.1 + 1e-13, 1.0])
    assert ratings.to_rankings().place.tolist() == [0, 0]
    assert ratings.to_rankings().item.tolist() == [0, 1]
