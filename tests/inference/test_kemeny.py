"""Kemeny's order against enumeration of all orders."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.models.lists.mallows import (
    _LARGEST_DENSE_CLOSURE,
    _strong_components,
    descend_all,
    disagreement,
    exact_order,
    insertion_descent,
    kemeny_order,
    local_search,
)
from crowdrank.models.lists.mallows_likelihood import sample_lists


def tables(size, kind, seed):
    """Weights of pairs: integers with many ties, few judged pairs, or arbitrary numbers."""
    rng = np.random.default_rng(seed)
    above = {
        "ties": rng.integers(0, 3, (size, size)),
        "sparse": rng.integers(0, 5, (size, size)) * (rng.random((size, size)) < 0.4),
        "any": rng.random((size, size)),
    }[kind].astype(float)
    np.fill_diagonal(above, 0)
    return above


def by_enumeration(above):
    """The best orders, in lexicographic order."""
    orders = [np.array(order) for order in permutations(range(len(above)))]
    costs = np.array([disagreement(above, order) for order in orders])
    return costs.min(), [orders[n] for n in np.flatnonzero(costs <= costs.min() + 1e-9)]


@pytest.mark.parametrize("kind", ["ties", "sparse", "any"])
@pytest.mark.parametrize(("size", "times"), [(1, 1), (2, 5), (3, 10), (4, 10), (5, 6), (6, 3), (7, 1)])
def test_no_order_is_better(size, times, kind):
    for seed in range(times):
        above = tables(size, kind, seed)
        least, best = by_enumeration(above)
        found = kemeny_order(above, 14, 0, np.random.default_rng(0))
        assert found.optimal
        assert sorted(found.order) == list(range(size))
        assert disagreement(above, found.order) == pytest.approx(least)
        if size > 1:
            np.testing.assert_array_equal(exact_order(above), best[0])


def test_of_equally_good_orders_the_first_rows_come_first():
    nobody = np.zeros((5, 5))
    assert kemeny_order(nobody, 14, 0, np.random.default_rng(0)).order.tolist() == [0, 1, 2, 3, 4]
    nobody[4, 1] = 1
    assert kemeny_order(nobody, 14, 0, np.random.default_rng(0)).order.tolist() == [0, 2, 3, 4, 1]


def test_rounding_decides_nothing():
    above = np.zeros((3, 3))
    above[1, 0], above[0, 1] = 0.1 + 0.2, 0.3
    assert kemeny_order(above, 14, 0, np.random.default_rng(0)).order.tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [8, 12, 14])
def test_a_search_finds_what_is_best_where_that_is_known(size):
    for seed in range(3):
        above = tables(size, "any", seed)
        found = local_search(above, 30, np.random.default_rng(0))
        assert disagreement(above, found) == pytest.approx(disagreement(above, exact_order(above)))


def test_no_item_wants_to_move_after_a_search():
    above = crowd(40, -0.02)
    order = insertion_descent(above - above.T, np.arange(40))
    least = disagreement(above, order)
    for here in range(40):
        others = np.delete(order, here)
        for there in range(40):
            assert disagreement(above, np.insert(others, there, order[here])) >= least - 1e-9


def test_more_starts_are_never_worse_and_the_same_seed_is_the_same_order():
    above = crowd(40, -0.02)
    few, more = (local_search(above, starts, np.random.default_rng(3)) for starts in (0, 15))
    assert disagreement(above, more) <= disagreement(above, few)
    np.testing.assert_array_equal(more, local_search(above, 15, np.random.default_rng(3)))


def test_a_circle_beyond_what_is_solved_is_not_called_proven():
    rng, above = np.random.default_rng(0), crowd(9, -0.05)
    assert not kemeny_order(above, 3, 0, rng).optimal
    assert kemeny_order(above, 9, 0, rng).optimal


def test_circles_are_those_that_scipy_finds(monkeypatch):
    rng = np.random.default_rng(0)
    for size in (1, 5, 12, _LARGEST_DENSE_CLOSURE):
        majority = np.triu(rng.random((size, size)) < 0.5, 1) | (rng.random((size, size)) < 1 / size**1.5)
        ours = _strong_components(majority)
        with monkeypatch.context() as patch:
            patch.setattr("crowdrank.models.lists.mallows._LARGEST_DENSE_CLOSURE", 0)
            theirs = _strong_components(majority)
        np.testing.assert_array_equal(ours[:, None] == ours, theirs[:, None] == theirs)


def crowd(size, theta):
    place = np.argsort(sample_lists(np.random.default_rng(1), np.full(15, theta), size), axis=1)
    return np.sum(place[:, :, None] < place[:, None, :], axis=0).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_compiled_descent_ends_where_the_other_does(seed: int) -> None:
    """Two queries at once: one that contradicts a majority, and one in the order of all majorities."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(12, 1)
    net = np.concatenate((rng.integers(-3, 4, len(first)), np.ones(3))).astype(float)
    margin = np.zeros((12, 12))
    margin[first, second], margin[second, first] = net[:66], -net[:66]
    pairs = [np.append(side, last).astype(np.int32) for side, last in ((first, [12, 12, 13]), (second, [13, 14, 14]))]
    rank = np.append(np.arange(12), np.arange(3))
    found = descend_all(np.array([0, 12, 15]), np.array([0, 66, 69]), *pairs, net, rank)
    assert np.argsort(found[:12]).tolist() == insertion_descent(margin, np.arange(12)).tolist()
    assert found[12:].tolist() == [0, 1, 2]
