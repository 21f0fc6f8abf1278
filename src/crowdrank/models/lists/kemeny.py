"""Kemeny's consensus order (Kemeny 1959): the order that contradicts the fewest pairwise judgments.

The majority graph splits into strongly connected components. Between components, following the majorities is optimal.
A small component is solved exactly by dynamic programming over its subsets; a large one by local search (moving single
items) with restarts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.engines.compilation import compiled

# Improvements below this fraction of the largest pair weight are rounding.
_ROUNDING = 1e-9
# Up to this many rows, the transitive closure by matrix products is faster than importing SciPy's graph routines.
_LARGEST_DENSE_CLOSURE = 64


class Consensus(NamedTuple):
    """A Kemeny order.

    Parameters
    ----------
    order : array
        Row numbers, best first.
    optimal : bool
        Whether the order is guaranteed to be optimal.
    """

    order: IntArray
    optimal: bool


def kemeny_order(above: FloatArray, exact_up_to: int, restarts: int, rng: np.random.Generator) -> Consensus:
    """The order with the least disagreement.

    Parameters
    ----------
    above : array of shape (items, items)
        `above[a, b]` is the weight of the judgments that put a above b.
    exact_up_to : int
        Components of at most this many items are solved exactly.
    restarts : int
        Restarts of the local search in larger components.
    rng : numpy.random.Generator
        Randomness of the restarts.

    Returns
    -------
    Consensus
        Ties between equally good orders are broken in favour of smaller row numbers.
    """
    majority = above - above.T > _ROUNDING * float(above.max(initial=0.0))
    component = _strong_components(majority)
    before, optimal = majority & (component[:, None] != component), True
    for members in _groups(component):
        own = above[np.ix_(members, members)]
        if len(members) <= exact_up_to:
            order = exact_order(own)
        else:
            order, optimal = local_search(own, restarts, rng), False
        chain = members[order]
        before[chain[:-1], chain[1:]] = True
    return Consensus(_topological_order(before), optimal)


def disagreement(above: FloatArray, order: IntArray) -> float:
    """The weight of the judgments that an order contradicts."""
    return float(np.tril(above[np.ix_(order, order)], -1).sum())


def exact_order(above: FloatArray) -> IntArray:
    """The optimal order, by dynamic programming over subsets.

    The cost of a set is the cost of its best first item plus the cost of the set without it. A set is a bit mask.
    """
    size = len(above)
    first = np.zeros((1, size))  # first[set, j]: the cost of putting j before all items of the set
    for item in range(size):
        first = np.concatenate((first, first + above[item]))
    cheapest, bits = np.zeros(1 << size), 1 << np.arange(size)
    tolerance = _ROUNDING * float(above.max())
    for sets in _sets_by_size(size)[1:]:
        rest = sets[:, None] ^ bits
        whole = np.where(sets[:, None] & bits, first[rest, np.arange(size)] + cheapest[rest], np.inf)
        cheapest[sets] = whole.min(axis=1)
    order, left = np.empty(size, np.int64), (1 << size) - 1
    for place in range(size):
        inside = np.flatnonzero(left & bits)
        rest = left ^ bits[inside]
        whole = first[rest, inside] + cheapest[rest]
        order[place] = inside[np.argmax(whole <= whole.min() + tolerance)]
        left ^= int(bits[order[place]])
    return order


def local_search(above: FloatArray, restarts: int, rng: np.random.Generator) -> IntArray:
    """A good order: insertion descent from the given order, then from the best one so far with a segment shuffled."""
    margin = above - above.T
    best = insertion_descent(margin, np.arange(len(above)))
    least = disagreement(above, best)
    tolerance = _ROUNDING * float(above.max())
    for _ in range(restarts):
        candidate = insertion_descent(margin, _shuffled_segment(best, rng))
        if (cost := disagreement(above, candidate)) < least - tolerance:
            best, least = candidate, cost
    return best


def insertion_descent(margin: FloatArray, order: IntArray) -> IntArray:
    """Move single items to their best position until no move reduces the cost."""
    tolerance = _ROUNDING * float(np.abs(margin).max())
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            here = int(np.argmax(order == item))
            others = np.concatenate((order[:here], order[here + 1 :]))
            # Moving an item down past another costs the margin by which it is preferred to that one.
            cost = np.concatenate(([0.0], np.cumsum(margin[item, others])))
            there = int(np.argmin(cost))
            if cost[there] < cost[here] - tolerance:
                order, moved = np.concatenate((others[:there], [item], others[there:])), True
    return order


@compiled()
def descend_all(starts: Any, ends: Any, first: Any, second: Any, net: Any, rank: Any) -> Any:
    """Ranks within queries after insertion descent from `rank` in every query that contradicts a majority.

    Query q has the items starts[q] … starts[q + 1] − 1 and the pairs ends[q] … ends[q + 1] − 1. `net` is the weight of
    the judgments for the first item minus that of those for the second.
    """
    found = rank.copy()
    for query in range(len(starts) - 1):
        begin, size = starts[query], starts[query + 1] - starts[query]
        largest, contradicted = 0.0, False
        for p in range(ends[query], ends[query + 1]):
            largest = max(largest, abs(net[p]))
            contradicted |= net[p] * (rank[second[p]] - rank[first[p]]) < 0
        if not contradicted:
            continue
        margin = np.zeros((size, size))
        for p in range(ends[query], ends[query + 1]):
            margin[rank[first[p]], rank[second[p]]] = net[p]
            margin[rank[second[p]], rank[first[p]]] = -net[p]
        order, before, moved = np.arange(size), np.empty(size, np.int64), True
        while moved:
            moved = False
            for n in range(size):
                before[n] = order[n]
            for item in before:
                cost, least, stay, here, there = 0.0, 0.0, 0.0, 0, 0
                for n in range(size):
                    if order[n] == item:
                        here, stay = n, cost
                    cost += margin[item, order[n]]
                    if cost < least:
                        least, there = cost, n + 1
                if least < stay - _ROUNDING * largest:
                    moved = True
                    for n in range(here, there - 1):
                        order[n] = order[n + 1]
                    for n in range(here, there, -1):
                        order[n] = order[n - 1]
                    order[there - (there > here)] = item
        for n in range(size):
            before[order[n]] = n
        for item in range(begin, begin + size):
            found[item] = before[rank[item]]
    return found


def _shuffled_segment(order: IntArray, rng: np.random.Generator) -> IntArray:
    shuffled, length = order.copy(), min(len(order), 3 + int(rng.integers(max(len(order) // 2, 1))))
    begin = int(rng.integers(len(order) - length + 1))
    rng.shuffle(shuffled[begin : begin + length])
    return shuffled


def _strong_components(majority: BoolArray) -> npt.NDArray[np.integer[Any]]:
    """The strongly connected component of each row in the majority graph."""
    size = len(majority)
    if size > _LARGEST_DENSE_CLOSURE:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(majority, connection="strong")[1])
    # Squaring the reachability matrix doubles the path length that it covers.
    reachable, steps = (majority | np.eye(size, dtype=bool)).astype(np.float32), 1
    while steps < size:
        reachable, steps = np.minimum(reachable @ reachable, 1), 2 * steps
    return np.asarray(np.argmax(reachable * reachable.T, axis=1))


def _groups(label: npt.NDArray[np.integer[Any]]) -> list[IntArray]:
    """The members of each group of more than one row."""
    counts = np.bincount(label)
    return [np.flatnonzero(label == group) for group in np.flatnonzero(counts > 1)]


def _topological_order(before: BoolArray) -> IntArray:
    """Repeatedly take the first row without a remaining predecessor."""
    predecessors = before.sum(axis=0)
    order = np.empty(len(before), np.int64)
    for place in range(len(before)):
        order[place] = row = int(np.argmin(predecessors))
        predecessors -= before[row]
        predecessors[row] = len(before)
    return order


@lru_cache(maxsize=4)
def _sets_by_size(size: int) -> list[IntArray]:
    members = np.zeros(1, np.int64)
    for _ in range(size):
        members = np.concatenate((members, members + 1))
    return [np.flatnonzero(members == n) for n in range(size + 1)]
