"""MCMC samples of a query's true list, if it is too long for the exact sums (log P as in list_posterior.py).

Gibbs step: remove one item and reinsert it at a position drawn from its conditional distribution given the order of the
others. With Tₚ the strength (Σ e^s) of the others from position p on, item a at position p has
log P = Σ_{i<p} (W[oᵢ, a] − log(1 + e^{s_a}/Tᵢ)) + Σ_{i≥p} W[a, oᵢ] − log(1 + Tₚ/e^{s_a}), + a constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.ltr.list_posterior import log_joint

# Scores are floored at this distance below the best one, so that strengths do not underflow.
_SCORE_FLOOR = 460.0
# Number of draws from which the local search for the mode starts.
_MODE_STARTS = 5


class SampledPosterior(NamedTuple):
    """Draws from the posterior of one query's true list.

    Parameters
    ----------
    orders : array
        One draw per row, best item first.
    precedence : array of shape (items, items)
        `[a, b]`: estimate of P(a before b).
    best : array
        The most probable list that was found.
    """

    orders: IntArray
    precedence: FloatArray
    best: IntArray


def gibbs(
    scores: FloatArray, weight: FloatArray, start: IntArray, uniforms: FloatArray, warm_up: int
) -> SampledPosterior:
    """Gibbs sampler by reinsertion: one sweep per row of `uniforms` (one uniform per item), one draw after warm-up."""
    size = len(scores)
    orders, precedence = np.zeros((len(uniforms) - warm_up, size), np.int64), np.zeros((size, size))
    order, best = start.astype(np.int64), start.astype(np.int64)
    _gibbs_loop(scores, weight, uniforms, warm_up, order, orders, precedence, best)
    return SampledPosterior(orders, precedence, best)


def metropolis_swaps(
    scores: FloatArray, weight: FloatArray, start: IntArray, uniforms: FloatArray, draws: int
) -> SampledPosterior:
    """Wu et al. (2016), Algorithm 1: Metropolis steps that swap two items, one per row of three uniforms."""
    size = len(scores)
    orders, precedence = np.zeros((draws, size), np.int64), np.zeros((size, size))
    order, best = start.astype(np.int64), start.astype(np.int64)
    _metropolis_swaps_loop(scores, weight, uniforms, order, orders, precedence, best)
    return SampledPosterior(orders, precedence, best)


def local_mode(scores: FloatArray, weight: FloatArray, start: IntArray) -> IntArray:
    """Move single items to their most probable position until none moves: a local maximum of the posterior."""
    order = start.astype(np.int64)
    _local_mode_loop(scores, weight, order)
    return order


def _remove_item(order: Any, a: int, others: Any) -> int:
    """Write all items but a to `others`, in order; return the position of a."""
    count, place = 0, 0
    for p in range(len(order)):
        if order[p] == a:
            place = p
        else:
            others[count] = order[p]
            count += 1
    return place


def _insert_item(order: Any, a: int, others: Any, place: int) -> None:
    for p in range(place):
        order[p] = others[p]
    order[place] = a
    for p in range(place, len(others)):
        order[p + 1] = others[p]


def _log_positions(strength: Any, weight: Any, others: Any, a: int, remaining: Any, log_probability: Any) -> int:
    """Write log P of every position of a among the others, up to a constant; return the most probable position."""
    size = len(others) + 1
    remaining[size - 1] = 0.0
    for p in range(size - 2, -1, -1):
        remaining[p] = remaining[p + 1] + strength[others[p]]
    value, top, best = 0.0, -np.inf, 0
    for p in range(size):
        log_probability[p] = value - np.log1p(remaining[p] / strength[a])
        if log_probability[p] > top:
            top, best = log_probability[p], p
        if p < size - 1:
            b = others[p]
            value += weight[b, a] - weight[a, b] - np.log1p(strength[a] / remaining[p])
    return best


def _strengths(scores: Any) -> Any:
    return np.exp(np.maximum(scores - np.max(scores), -_SCORE_FLOOR))


def _move_to_mode(strength: Any, weight: Any, order: Any) -> None:
    size = len(order)
    others, remaining, log_probability = np.empty(size - 1, np.int64), np.empty(size), np.empty(size)
    moved = True
    while moved:
        moved = False
        for a in range(size):
            place = _remove_item(order, a, others)
            best = _log_positions(strength, weight, others, a, remaining, log_probability)
            # The margin prevents rounding from moving an item back and forth for ever.
            if log_probability[best] > log_probability[place] + 1e-9:
                _insert_item(order, a, others, best)
                moved = True


@compiled(_remove_item, _insert_item, _log_positions, _strengths, _move_to_mode)
def _local_mode_loop(scores, weight, order):  # type: ignore[no-untyped-def]
    _move_to_mode(_strengths(scores), weight, order)


@compiled(_remove_item, _insert_item, _log_positions, _strengths, _move_to_mode, log_joint)
def _gibbs_loop(scores, weight, uniforms, warm_up, order, orders, precedence, best):  # type: ignore[no-untyped-def]
    size = len(order)
    strength = _strengths(scores)
    others, remaining, probability = np.empty(size - 1, np.int64), np.empty(size), np.empty(size)
    best_value = -np.inf
    for sweep in range(len(uniforms)):
        for a in range(size):
            _remove_item(order, a, others)
            top = probability[_log_positions(strength, weight, others, a, remaining, probability)]
            total = 0.0
            for p in range(size):
                probability[p] = np.exp(probability[p] - top)
                total += probability[p]
            target, place, found = uniforms[sweep, a] * total, size - 1, False
            below = 0.0
            for p in range(size):
                below += probability[p]
                if not found and below > target:
                    place, found = p, True
                # Rao-Blackwellised estimate: every position counts by its probability, not only the drawn one.
                if sweep >= warm_up and p < size - 1:
                    precedence[a, others[p]] += below / total
            _insert_item(order, a, others, place)
        if sweep >= warm_up:
            orders[sweep - warm_up] = order
    for a in range(size):
        for b in range(a):
            share = (precedence[a, b] + len(orders) - precedence[b, a]) / (2 * len(orders))
            precedence[a, b], precedence[b, a] = share, 1.0 - share
    for d in range(0, len(orders), max(len(orders) // _MODE_STARTS, 1)):
        order[:] = orders[d]
        _move_to_mode(strength, weight, order)
        value = log_joint(scores, weight, order)
        if value > best_value:
            best_value = value
            best[:] = order


@compiled(log_joint)
def _metropolis_swaps_loop(scores, weight, uniforms, order, orders, precedence, best):  # type: ignore[no-untyped-def]
    size, steps, draws = len(order), len(uniforms), len(orders)
    value = log_joint(scores, weight, order)
    best_value, since, kept = value, 0, 0
    for step in range(steps):
        p, q = int(uniforms[step, 0] * size), int(uniforms[step, 1] * size)
        order[p], order[q] = order[q], order[p]
        proposed = log_joint(scores, weight, order)
        if uniforms[step, 2] < np.exp(min(proposed - value, 0.0)):
            if p != q:
                # The previous list counts for the number of steps that it lasted.
                order[p], order[q] = order[q], order[p]
                for i in range(size):
                    for j in range(i + 1, size):
                        precedence[order[i], order[j]] += step - since
                since = step
                order[p], order[q] = order[q], order[p]
            value = proposed
            if value > best_value:
                best_value = value
                best[:] = order
        else:
            order[p], order[q] = order[q], order[p]
        if kept < draws and (step + 1) * draws >= (kept + 1) * steps:
            orders[kept] = order
            kept += 1
    for i in range(size):
        for j in range(i + 1, size):
            precedence[order[i], order[j]] += steps - since
    precedence /= steps
