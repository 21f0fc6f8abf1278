"""The true list of a query: log P(y) = Plackett-Luce(y | s) + Σ W[a, b] over a before b in y, + a constant.

W[a, b] = Σⱼ θⱼ·1[list j puts b before a] is what annotators' lists say (Mallows). Both parts factor over (next item,
items left), so that sums and maxima over all n! lists are sums over the 2ⁿ sets that can be left:

f(R) = log Σ_{a∈R} exp(t(a, R) + f(R∖a)),   t(a, R) = s_a − log Σ_{b∈R} e^{s_b} + Σ_{b∈R∖a} W[a, b].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled

# All sets of so many items are listed, three tables of 8 bytes each.
MOST_EXACT = 20
# Scores further below the best are as good as this far: the strength of no set may come out as zero.
_STEEP = 460.0
# e^-45 beside 1 is nothing to a float.
_NOTHING = 45.0


class Exact(NamedTuple):
    """The posterior of one query's list, summed over all lists."""

    log_evidence: float
    """log Σ over all lists; the annotators' normalisers are left out."""
    above: FloatArray
    """P(a before b)."""
    best: IntArray
    """The likeliest list."""
    orders: IntArray
    """Independent draws."""


def exact(scores: FloatArray, weight: FloatArray, luck: FloatArray) -> Exact:
    """By the subset programme; one draw for each row of `luck`, uniform numbers one an item."""
    size = len(scores)
    above, best = np.zeros((size, size)), np.zeros(size, np.int64)
    orders = np.zeros((len(luck), size), np.int64)
    return Exact(_exact_loop(scores, weight, luck, above, best, orders), above, best, orders)


def pair_weights(item: Any, place: Any, offsets: Any, theta: FloatArray, size: int) -> FloatArray:
    """W of one query's lists, each with the θ of its annotator; ties and items left out say nothing."""
    out = np.zeros((size, size))
    _pair_weights_loop(item, place, offsets, theta, out)
    return out


def distances(item: Any, place: Any, offsets: Any, above: FloatArray) -> FloatArray:
    """For each list of a query the pairs that it turns round, as expected."""
    out = np.zeros(len(offsets) - 1)
    _distances_loop(item, place, offsets, above, out)
    return out


@compiled()
def _pair_weights_loop(item, place, offsets, theta, out):  # type: ignore[no-untyped-def]
    for n in range(len(theta)):
        for first in range(offsets[n], offsets[n + 1]):
            for second in range(first + 1, offsets[n + 1]):
                if place[first] < place[second]:
                    out[item[second], item[first]] += theta[n]


@compiled()
def _distances_loop(item, place, offsets, above, out):  # type: ignore[no-untyped-def]
    for n in range(len(out)):
        for first in range(offsets[n], offsets[n + 1]):
            for second in range(first + 1, offsets[n + 1]):
                if place[first] < place[second]:
                    out[n] += above[item[second], item[first]]


def log_joint(scores: Any, weight: Any, order: Any) -> float:
    """log P of one list, up to the same constant for all."""
    top, total, value = scores[order[-1]], 0.0, 0.0
    for p in range(len(order) - 1, -1, -1):
        a = order[p]
        if scores[a] > top:
            total *= np.exp(top - scores[a])
            top = scores[a]
        total += np.exp(scores[a] - top)
        value += scores[a] - top - np.log(total)
        for q in range(p + 1, len(order)):
            value += weight[a, order[q]]
    return value


def _half_sums(weight: Any, begin: int, end: int) -> Any:
    """Σ W[a, b] over the items b of every set among `begin` … `end` − 1, for every a."""
    size, bits = len(weight), end - begin
    sums = np.zeros((size, 1 << bits))
    for a in range(size):
        for left in range(1, 1 << bits):
            low = 0
            while not (left >> low) & 1:
                low += 1
            sums[a, left] = sums[a, left & (left - 1)] + (weight[a, begin + low] if begin + low != a else 0.0)
    return sums


def _log_strengths(scores: Any) -> Any:
    """log Σ e^s over every set of items."""
    size, top = len(scores), np.max(scores)
    strength = np.exp(np.maximum(scores - top, -_STEEP))
    total = np.zeros(1 << size)
    for left in range(1, 1 << size):
        low = 0
        while not (left >> low) & 1:
            low += 1
        total[left] = total[left & (left - 1)] + strength[low]
    total[0] = 1.0
    return np.log(total)


def _step(tables: Any, left: int, a: int) -> Any:
    """t(a, R)."""
    own, strength, low, high = tables
    half = len(own) // 2
    rest = left ^ (1 << a)
    return own[a] - strength[left] + low[a, rest & ((1 << half) - 1)] + high[a, rest >> half]


def _sum_up(tables: Any, total: Any, most: Any) -> None:
    """f of every set, and the same with the largest in place of the sum."""
    size = len(tables[0])
    term = np.zeros(size)
    for left in range(1, 1 << size):
        peak, top, summed = -np.inf, -np.inf, 0.0
        for a in range(size):
            if (left >> a) & 1:
                step = _step(tables, left, a)
                term[a] = step + total[left ^ (1 << a)]
                peak, top = max(peak, term[a]), max(top, step + most[left ^ (1 << a)])
        for a in range(size):
            if (left >> a) & 1 and term[a] > peak - _NOTHING:
                summed += np.exp(term[a] - peak)
        total[left], most[left] = peak + np.log(summed), top


def _walk_down(tables: Any, total: Any, above: Any) -> None:
    """The chance that exactly these items are left at some point, and which of them comes next."""
    size = len(tables[0])
    reached = np.zeros(1 << size)
    reached[-1] = 1.0
    for left in range((1 << size) - 1, 0, -1):
        if reached[left] < 1e-25:
            continue
        for a in range(size):
            if (left >> a) & 1:
                rest = left ^ (1 << a)
                chance = _step(tables, left, a) + total[rest] - total[left]
                if chance > -_NOTHING:
                    chance = reached[left] * np.exp(chance)
                    reached[rest] += chance
                    for b in range(size):
                        if (rest >> b) & 1:
                            above[a, b] += chance


def _likeliest(tables: Any, most: Any, best: Any) -> None:
    size = len(best)
    left = (1 << size) - 1
    for p in range(size):
        top = -np.inf
        for a in range(size):
            if (left >> a) & 1 and _step(tables, left, a) + most[left ^ (1 << a)] > top:
                top, best[p] = _step(tables, left, a) + most[left ^ (1 << a)], a
        left ^= 1 << best[p]


def _draw(tables: Any, total: Any, luck: Any, order: Any) -> None:
    size = len(order)
    left = (1 << size) - 1
    for p in range(size):
        mark = luck[p]
        for a in range(size):
            if (left >> a) & 1:
                mark -= np.exp(_step(tables, left, a) + total[left ^ (1 << a)] - total[left])
                order[p] = a
                if mark < 0:
                    break
        left ^= 1 << order[p]


@compiled(_half_sums, _log_strengths, _step, _sum_up, _walk_down, _likeliest, _draw)
def _exact_loop(scores, weight, luck, above, best, orders):  # type: ignore[no-untyped-def]
    size = len(scores)
    low, high = _half_sums(weight, 0, size // 2), _half_sums(weight, size // 2, size)
    tables = (np.maximum(scores - np.max(scores), -_STEEP), _log_strengths(scores), low, high)
    total, most = np.zeros(1 << size), np.zeros(1 << size)
    _sum_up(tables, total, most)
    _walk_down(tables, total, above)
    _likeliest(tables, most, best)
    for d in range(len(orders)):
        _draw(tables, total, luck[d], orders[d])
    return total[-1]
