"""Exact posterior of a query's true list, by dynamic programming over subsets.

log P(y) = log Plackett-Luce(y | s) + Σ W[a, b] over all a before b in y, + a constant, where the annotators' lists
contribute W[a, b] = Σⱼ θⱼ·1[list j puts b before a] (Mallows). Both parts factor over (next item, set of remaining
items), so sums and maxima over all n! lists become sums and maxima over the 2ⁿ sets R of remaining items:

f(R) = log Σ_{a∈R} exp(t(a, R) + f(R∖a)),   t(a, R) = s_a − log Σ_{b∈R} e^{s_b} + Σ_{b∈R∖a} W[a, b].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled

# Largest list for which all subsets are enumerated (three tables of 8 bytes per subset).
MAX_EXACT_ITEMS = 20
# Scores are floored at this distance below the best one, so that no set has a total strength of zero.
_SCORE_FLOOR = 460.0
# Log probabilities this far below the largest are skipped: e^-45 is below the precision of a float.
_LOG_NEGLIGIBLE = 45.0


class ExactPosterior(NamedTuple):
    """The posterior of one query's true list, summed over all lists.

    Parameters
    ----------
    log_evidence : float
        Log of the sum over all lists, without the normalisers of the annotators' Mallows models.
    precedence : array of shape (items, items)
        `[a, b]`: P(a before b).
    best : array
        The most probable list.
    orders : array
        Independent draws, one per row.
    """

    log_evidence: float
    precedence: FloatArray
    best: IntArray
    orders: IntArray


def exact_posterior(scores: FloatArray, weight: FloatArray, uniforms: FloatArray) -> ExactPosterior:
    """Exact posterior for scores and pair weights W.

    Parameters
    ----------
    scores : array
        Plackett-Luce scores of the items.
    weight : array of shape (items, items)
        W, see `pair_weights`.
    uniforms : array of shape (draws, items)
        Uniform random numbers: one draw per row.
    """
    size = len(scores)
    precedence, best = np.zeros((size, size)), np.zeros(size, np.int64)
    orders = np.zeros((len(uniforms), size), np.int64)
    log_evidence = _exact_loop(scores, weight, uniforms, precedence, best, orders)
    return ExactPosterior(log_evidence, precedence, best, orders)


def pair_weights(item: Any, place: Any, offsets: Any, theta: FloatArray, size: int) -> FloatArray:
    """W of one query's lists, each with the θ of its annotator; ties and missing items contribute nothing."""
    out = np.zeros((size, size))
    _pair_weights_loop(item, place, offsets, theta, out)
    return out


def expected_distances(item: Any, place: Any, offsets: Any, precedence: FloatArray) -> FloatArray:
    """Expected Kendall distance of each list of a query to the true list."""
    out = np.zeros(len(offsets) - 1)
    _distances_loop(item, place, offsets, precedence, out)
    return out


@compiled()
def _pair_weights_loop(item, place, offsets, theta, out):  # type: ignore[no-untyped-def]
    for n in range(len(theta)):
        for first in range(offsets[n], offsets[n + 1]):
            for second in range(first + 1, offsets[n + 1]):
                if place[first] < place[second]:
                    out[item[second], item[first]] += theta[n]


@compiled()
def _distances_loop(item, place, offsets, precedence, out):  # type: ignore[no-untyped-def]
    for n in range(len(out)):
        for first in range(offsets[n], offsets[n + 1]):
            for second in range(first + 1, offsets[n + 1]):
                if place[first] < place[second]:
                    out[n] += precedence[item[second], item[first]]


def log_joint(scores: Any, weight: Any, order: Any) -> float:
    """log P of one list, up to a constant."""
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
    """Σ W[a, b] over the items b of every subset of `begin` … `end` − 1, for every a.

    Splitting the items in two halves needs two tables of 2^(n/2) instead of one of 2ⁿ per item.
    """
    size, bits = len(weight), end - begin
    sums = np.zeros((size, 1 << bits))
    for a in range(size):
        for remaining in range(1, 1 << bits):
            low = 0
            while not (remaining >> low) & 1:
                low += 1
            sums[a, remaining] = sums[a, remaining & (remaining - 1)] + (
                weight[a, begin + low] if begin + low != a else 0.0
            )
    return sums


def _log_strengths(scores: Any) -> Any:
    """log Σ e^s over every subset of items."""
    size, top = len(scores), np.max(scores)
    strength = np.exp(np.maximum(scores - top, -_SCORE_FLOOR))
    total = np.zeros(1 << size)
    for remaining in range(1, 1 << size):
        low = 0
        while not (remaining >> low) & 1:
            low += 1
        total[remaining] = total[remaining & (remaining - 1)] + strength[low]
    total[0] = 1.0
    return np.log(total)


def _step(tables: Any, remaining: int, a: int) -> Any:
    """t(a, R)."""
    own, strength, low, high = tables
    half = len(own) // 2
    rest = remaining ^ (1 << a)
    return own[a] - strength[remaining] + low[a, rest & ((1 << half) - 1)] + high[a, rest >> half]


def _backward(tables: Any, total: Any, best_value: Any) -> None:
    """f of every subset (log-sum-exp), and the same recursion with max instead of sum."""
    size = len(tables[0])
    term = np.zeros(size)
    for remaining in range(1, 1 << size):
        peak, top, summed = -np.inf, -np.inf, 0.0
        for a in range(size):
            if (remaining >> a) & 1:
                step = _step(tables, remaining, a)
                term[a] = step + total[remaining ^ (1 << a)]
                peak, top = max(peak, term[a]), max(top, step + best_value[remaining ^ (1 << a)])
        for a in range(size):
            if (remaining >> a) & 1 and term[a] > peak - _LOG_NEGLIGIBLE:
                summed += np.exp(term[a] - peak)
        total[remaining], best_value[remaining] = peak + np.log(summed), top


def _forward(tables: Any, total: Any, precedence: Any) -> None:
    """Forward pass: the probability that exactly these items remain at some point, and which one comes next."""
    size = len(tables[0])
    reach_probability = np.zeros(1 << size)
    reach_probability[-1] = 1.0
    for remaining in range((1 << size) - 1, 0, -1):
        if reach_probability[remaining] < 1e-25:
            continue
        for a in range(size):
            if (remaining >> a) & 1:
                rest = remaining ^ (1 << a)
                probability = _step(tables, remaining, a) + total[rest] - total[remaining]
                if probability > -_LOG_NEGLIGIBLE:
                    probability = reach_probability[remaining] * np.exp(probability)
                    reach_probability[rest] += probability
                    for b in range(size):
                        if (rest >> b) & 1:
                            precedence[a, b] += probability


def _most_probable(tables: Any, best_value: Any, best: Any) -> None:
    size = len(best)
    remaining = (1 << size) - 1
    for p in range(size):
        top = -np.inf
        for a in range(size):
            if (remaining >> a) & 1 and _step(tables, remaining, a) + best_value[remaining ^ (1 << a)] > top:
                top, best[p] = _step(tables, remaining, a) + best_value[remaining ^ (1 << a)], a
        remaining ^= 1 << best[p]


def _sample(tables: Any, total: Any, uniforms: Any, order: Any) -> None:
    size = len(order)
    remaining = (1 << size) - 1
    for p in range(size):
        target = uniforms[p]
        for a in range(size):
            if (remaining >> a) & 1:
                target -= np.exp(_step(tables, remaining, a) + total[remaining ^ (1 << a)] - total[remaining])
                order[p] = a
                if target < 0:
                    break
        remaining ^= 1 << order[p]


@compiled(_half_sums, _log_strengths, _step, _backward, _forward, _most_probable, _sample)
def _exact_loop(scores, weight, uniforms, precedence, best, orders):  # type: ignore[no-untyped-def]
    size = len(scores)
    low, high = _half_sums(weight, 0, size // 2), _half_sums(weight, size // 2, size)
    tables = (np.maximum(scores - np.max(scores), -_SCORE_FLOOR), _log_strengths(scores), low, high)
    total, best_value = np.zeros(1 << size), np.zeros(1 << size)
    _backward(tables, total, best_value)
    _forward(tables, total, precedence)
    _most_probable(tables, best_value, best)
    for d in range(len(orders)):
        _sample(tables, total, uniforms[d], orders[d])
    return total[-1]


# MCMC samples of a query's true list, if it is too long for the exact sums (log P as in list_posterior.py).
#
# Gibbs step: remove one item and reinsert it at a position drawn from its conditional distribution given the order of
# the others. With Tₚ the strength (Σ e^s) of the others from position p on, item a at position p has log P = Σ_{i<p}
# (W[oᵢ, a] − log(1 + e^{s_a}/Tᵢ)) + Σ_{i≥p} W[a, oᵢ] − log(1 + Tₚ/e^{s_a}), + a constant.

# Scores are floored at this distance below the best one, so that strengths do not underflow.
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
