"""Kemeny 1959: the order that goes against the fewest judgments of pairs.

Items fall into circles of majorities (strongly connected components); between circles no order does better than to
follow the majorities. A small circle is solved exactly, over all its subsets; in a large one items are moved as long as
that helps, from several starts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray

# A gain smaller than this share of the heaviest pair is rounding.
_ROUNDING = 1e-9
# Circles of so few rows are found sooner by multiplying than by asking SciPy.
_LARGEST_MULTIPLIED = 64


class Consensus(NamedTuple):
    """An order of the rows of a table, best first, and whether none is better for sure."""

    order: IntArray
    proven: bool


def consensus(above: FloatArray, exact_up_to: int, starts: int, rng: np.random.Generator) -> Consensus:
    """`above[a, b]` is the weight of those who put a above b; of equally good orders, rows that come first go first."""
    majority = above - above.T > _ROUNDING * float(above.max(initial=0.0))
    circle = _circles(majority)
    before, proven = majority & (circle[:, None] != circle), True
    for members in _groups(circle):
        own = above[np.ix_(members, members)]
        if len(members) <= exact_up_to:
            order = best_order(own)
        else:
            order, proven = search(own, starts, rng), False
        chain = members[order]
        before[chain[:-1], chain[1:]] = True
    return Consensus(_first_that_may(before), proven)


def cost(above: FloatArray, order: IntArray) -> float:
    """The weight of the judgments that an order goes against."""
    return float(np.tril(above[np.ix_(order, order)], -1).sum())


def best_order(above: FloatArray) -> IntArray:
    """The best order of all: the cost of a set is that of its best first item, and of the set without it.

    Rows are counted as bits: a set is a number.
    """
    size = len(above)
    first = np.zeros((1, size))  # first[set, j]: what it costs to put j before all of the set
    for item in range(size):
        first = np.concatenate((first, first + above[item]))
    cheapest, bits = np.zeros(1 << size), 1 << np.arange(size)
    slack = _ROUNDING * float(above.max())
    for sets in _sets_by_size(size)[1:]:
        rest = sets[:, None] ^ bits
        whole = np.where(sets[:, None] & bits, first[rest, np.arange(size)] + cheapest[rest], np.inf)
        cheapest[sets] = whole.min(axis=1)
    order, left = np.empty(size, np.int64), (1 << size) - 1
    for place in range(size):
        inside = np.flatnonzero(left & bits)
        rest = left ^ bits[inside]
        whole = first[rest, inside] + cheapest[rest]
        order[place] = inside[np.argmax(whole <= whole.min() + slack)]
        left ^= int(bits[order[place]])
    return order


def search(above: FloatArray, starts: int, rng: np.random.Generator) -> IntArray:
    """A good order: items moved from the given one, then from the best so far with a stretch of it shuffled."""
    margin = above - above.T
    best = settle(margin, np.arange(len(above)))
    least = cost(above, best)
    slack = _ROUNDING * float(above.max())
    for _ in range(starts):
        tried = settle(margin, _shuffled_stretch(best, rng))
        if (price := cost(above, tried)) < least - slack:
            best, least = tried, price
    return best


def settle(margin: FloatArray, order: IntArray) -> IntArray:
    """Items taken out and put in where they fit best, one after the other, until none wants to move."""
    slack = _ROUNDING * float(np.abs(margin).max())
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            here = int(np.argmax(order == item))
            others = np.concatenate((order[:here], order[here + 1 :]))
            # moving down past one costs by how much it is preferred to that one
            price = np.concatenate(([0.0], np.cumsum(margin[item, others])))
            there = int(np.argmin(price))
            if price[there] < price[here] - slack:
                order, moved = np.concatenate((others[:there], [item], others[there:])), True
    return order


def _shuffled_stretch(order: IntArray, rng: np.random.Generator) -> IntArray:
    shuffled, length = order.copy(), min(len(order), 3 + int(rng.integers(max(len(order) // 2, 1))))
    begin = int(rng.integers(len(order) - length + 1))
    rng.shuffle(shuffled[begin : begin + length])
    return shuffled


def _circles(majority: BoolArray) -> npt.NDArray[np.integer[Any]]:
    """A number for each row, the same for rows from which majorities lead to each other and back."""
    size = len(majority)
    if size > _LARGEST_MULTIPLIED:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(majority, connection="strong")[1])
    leads, steps = (majority | np.eye(size, dtype=bool)).astype(np.float32), 1
    while steps < size:
        leads, steps = np.minimum(leads @ leads, 1), 2 * steps
    return np.asarray(np.argmax(leads * leads.T, axis=1))


def _groups(label: npt.NDArray[np.integer[Any]]) -> list[IntArray]:
    """The members of each group of more than one."""
    counts = np.bincount(label)
    return [np.flatnonzero(label == group) for group in np.flatnonzero(counts > 1)]


def _first_that_may(before: BoolArray) -> IntArray:
    """Again and again the first row that none of those left must precede."""
    waits_for = before.sum(axis=0)
    order = np.empty(len(before), np.int64)
    for place in range(len(before)):
        order[place] = row = int(np.argmin(waits_for))
        waits_for -= before[row]
        waits_for[row] = len(before)
    return order


@lru_cache(maxsize=4)
def _sets_by_size(size: int) -> list[IntArray]:
    members = np.zeros(1, np.int64)
    for _ in range(size):
        members = np.concatenate((members, members + 1))
    return [np.flatnonzero(members == n) for n in range(size + 1)]
