"""Draws of a query's true list where it is too long for sums over all sets: see list_posterior.py for log P.

Gibbs: one item at a time is taken out, and put back where chance has it, given the order of all others. With Tₚ the
strength (Σ e^s) of the others from place p on, item a at place p has
log P = Σ_{i<p} (W[oᵢ, a] − log(1 + e^{s_a}/Tᵢ)) + Σ_{i≥p} W[a, oᵢ] − log(1 + Tₚ/e^{s_a}), + a constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.ltr.list_posterior import log_joint

_STEEP = 460.0
# Draws from which the likeliest list is sought.
_CLIMBS = 5


class Drawn(NamedTuple):
    """The posterior of one query's list, drawn from."""

    orders: IntArray
    """One draw a row, best first."""
    above: FloatArray
    """P(a before b)."""
    best: IntArray
    """The likeliest list that was found."""


def gibbs(scores: FloatArray, weight: FloatArray, start: IntArray, luck: FloatArray, warm_up: int) -> Drawn:
    """One sweep, and after the warm-up one draw, for each row of `luck`: uniform numbers, one an item."""
    size = len(scores)
    orders, above = np.zeros((len(luck) - warm_up, size), np.int64), np.zeros((size, size))
    order, best = start.astype(np.int64), start.astype(np.int64)
    _gibbs_loop(scores, weight, luck, warm_up, order, orders, above, best)
    return Drawn(orders, above, best)


def transpositions(scores: FloatArray, weight: FloatArray, start: IntArray, luck: FloatArray, draws: int) -> Drawn:
    """Wu et al. 2016, Algorithm 1: two items swapped, or not, for each row of three uniform numbers."""
    size = len(scores)
    orders, above = np.zeros((draws, size), np.int64), np.zeros((size, size))
    order, best = start.astype(np.int64), start.astype(np.int64)
    _transpositions_loop(scores, weight, luck, order, orders, above, best)
    return Drawn(orders, above, best)


def climb(scores: FloatArray, weight: FloatArray, start: IntArray) -> IntArray:
    """Items put where they do best, one by one, until none would move."""
    order = start.astype(np.int64)
    _climb_loop(scores, weight, order)
    return order


def _take_out(order: Any, a: int, others: Any) -> int:
    """All items but a, in their order; where a was."""
    count, place = 0, 0
    for p in range(len(order)):
        if order[p] == a:
            place = p
        else:
            others[count] = order[p]
            count += 1
    return place


def _put_in(order: Any, a: int, others: Any, place: int) -> None:
    for p in range(place):
        order[p] = others[p]
    order[place] = a
    for p in range(place, len(others)):
        order[p + 1] = others[p]


def _log_places(strength: Any, weight: Any, others: Any, a: int, left: Any, log_chance: Any) -> int:
    """log P of every place of a among the others, up to a constant; the likeliest place."""
    size = len(others) + 1
    left[size - 1] = 0.0
    for p in range(size - 2, -1, -1):
        left[p] = left[p + 1] + strength[others[p]]
    value, top, best = 0.0, -np.inf, 0
    for p in range(size):
        log_chance[p] = value - np.log1p(left[p] / strength[a])
        if log_chance[p] > top:
            top, best = log_chance[p], p
        if p < size - 1:
            b = others[p]
            value += weight[b, a] - weight[a, b] - np.log1p(strength[a] / left[p])
    return best


def _strengths(scores: Any) -> Any:
    return np.exp(np.maximum(scores - np.max(scores), -_STEEP))


def _climb(strength: Any, weight: Any, order: Any) -> None:
    size = len(order)
    others, left, log_chance = np.empty(size - 1, np.int64), np.empty(size), np.empty(size)
    moved = True
    while moved:
        moved = False
        for a in range(size):
            place = _take_out(order, a, others)
            best = _log_places(strength, weight, others, a, left, log_chance)
            # Rounding must not send an item to and fro for ever.
            if log_chance[best] > log_chance[place] + 1e-9:
                _put_in(order, a, others, best)
                moved = True


@compiled(_take_out, _put_in, _log_places, _strengths, _climb)
def _climb_loop(scores, weight, order):  # type: ignore[no-untyped-def]
    _climb(_strengths(scores), weight, order)


@compiled(_take_out, _put_in, _log_places, _strengths, _climb, log_joint)
def _gibbs_loop(scores, weight, luck, warm_up, order, orders, above, best):  # type: ignore[no-untyped-def]
    size = len(order)
    strength = _strengths(scores)
    others, left, chance = np.empty(size - 1, np.int64), np.empty(size), np.empty(size)
    seen = -np.inf
    for sweep in range(len(luck)):
        for a in range(size):
            _take_out(order, a, others)
            top = chance[_log_places(strength, weight, others, a, left, chance)]
            total = 0.0
            for p in range(size):
                chance[p] = np.exp(chance[p] - top)
                total += chance[p]
            mark, place, found = luck[sweep, a] * total, size - 1, False
            below = 0.0
            for p in range(size):
                below += chance[p]
                if not found and below > mark:
                    place, found = p, True
                # Not only where a comes to stand counts, but every place by its chance.
                if sweep >= warm_up and p < size - 1:
                    above[a, others[p]] += below / total
            _put_in(order, a, others, place)
        if sweep >= warm_up:
            orders[sweep - warm_up] = order
    for a in range(size):
        for b in range(a):
            share = (above[a, b] + len(orders) - above[b, a]) / (2 * len(orders))
            above[a, b], above[b, a] = share, 1.0 - share
    for d in range(0, len(orders), max(len(orders) // _CLIMBS, 1)):
        order[:] = orders[d]
        _climb(strength, weight, order)
        value = log_joint(scores, weight, order)
        if value > seen:
            seen = value
            best[:] = order


@compiled(log_joint)
def _transpositions_loop(scores, weight, luck, order, orders, above, best):  # type: ignore[no-untyped-def]
    size, steps, draws = len(order), len(luck), len(orders)
    value = log_joint(scores, weight, order)
    seen, since, kept = value, 0, 0
    for step in range(steps):
        p, q = int(luck[step, 0] * size), int(luck[step, 1] * size)
        order[p], order[q] = order[q], order[p]
        fresh = log_joint(scores, weight, order)
        if luck[step, 2] < np.exp(min(fresh - value, 0.0)):
            if p != q:
                # The list so far counts as often as it stood.
                order[p], order[q] = order[q], order[p]
                for i in range(size):
                    for j in range(i + 1, size):
                        above[order[i], order[j]] += step - since
                since = step
                order[p], order[q] = order[q], order[p]
            value = fresh
            if value > seen:
                seen = value
                best[:] = order
        else:
            order[p], order[q] = order[q], order[p]
        if kept < draws and (step + 1) * draws >= (kept + 1) * steps:
            orders[kept] = order
            kept += 1
    for i in range(size):
        for j in range(i + 1, size):
            above[order[i], order[j]] += steps - since
    above /= steps
