"""Posterior of the first k items of a query's true list, given top-k lists (Mallows with the distance of Definition 1).

Definition 1's distances, weighted by θ, are a sum over pairs. With F the first k items, W[a, b] = Σⱼ θⱼ·1[j puts b
before a, or lists only b], R[a] = Σ_b W[a, b] and O[a, b] = Σⱼ θⱼ·1[j lists neither],

Σⱼ θⱼ·dⱼ = Σ_{a∈F} R[a] − Σ_{a before b in F} (W[b, a] + O[a, b]).

Items that no annotator lists differ only in their scores: they share one *kind*; every other item is its own kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.ltr.list_posterior import _insert_item, _remove_item, _strengths


class Potentials(NamedTuple):
    """The annotators' contribution to log P of a query's first k items.

    Parameters
    ----------
    kind : array
        Kind of each item; the last kind is shared by the items that no annotator lists.
    inside : array
        R: contribution of each kind for being among the first k.
    before : array of shape (kinds, kinds)
        −W[b, a] − O[a, b]: contribution of a before b, both among the first k.
    """

    kind: IntArray
    inside: FloatArray
    before: FloatArray


class TopKSamples(NamedTuple):
    """Draws of the first k items, one per row, and the most probable ones that were found."""

    orders: IntArray
    best: IntArray


def potentials(lists: IntArray, theta: FloatArray, size: int) -> Potentials:
    """Potentials of lists of k items, one per row, each with the θ of its annotator."""
    listed = np.unique(lists)
    kind = np.full(size, len(listed))
    kind[listed] = np.arange(len(listed))
    discordant, neither = np.zeros((2, len(listed) + 1, len(listed) + 1))
    _potentials_loop(kind[lists], theta, discordant, neither)
    return Potentials(kind, discordant.sum(axis=1), -discordant.T - neither)


def log_joint(scores: FloatArray, terms: Potentials, first: IntArray) -> float:
    """log P of the first k items, up to a constant."""
    return float(_log_joint(_strengths(scores), *terms, first))


def top_k_gibbs(
    scores: FloatArray, terms: Potentials, start: IntArray, uniforms: FloatArray, warm_up: int
) -> TopKSamples:
    """Gibbs sampler: one sweep per row of `uniforms` (three per position), and one draw per sweep after warm-up."""
    first, best = start.astype(np.int64), start.astype(np.int64)
    orders = np.zeros((len(uniforms) - warm_up, len(first)), np.int64)
    _gibbs_loop(_strengths(scores), *terms, uniforms, warm_up, first, orders, best)
    return TopKSamples(orders, best)


def top_k_distances(orders: IntArray, lists: IntArray, size: int) -> FloatArray:
    """Mean distance (Definition 1) of each list to the orders."""
    out = np.zeros(len(lists))
    _distances_loop(orders, lists, size, out)
    return out


@compiled()
def _potentials_loop(lists, theta, discordant, neither):  # type: ignore[no-untyped-def]
    kinds, length = len(discordant), lists.shape[1]
    place = np.empty(kinds, np.int64)
    for n in range(len(lists)):
        place[:] = length
        for p in range(length):
            place[lists[n, p]] = p
        for a in range(kinds):
            for p in range(min(place[a], length)):
                discordant[a, lists[n, p]] += theta[n]
            if place[a] == length:
                for b in range(kinds):
                    if place[b] == length:
                        neither[a, b] += theta[n]


@compiled()
def _distances_loop(orders, lists, size, out):  # type: ignore[no-untyped-def]
    length = lists.shape[1]
    place, inside = np.empty(size, np.int64), np.zeros(size, np.bool_)
    for n in range(len(lists)):
        place[:] = length
        for p in range(length):
            place[lists[n, p]] = p
        for d in range(len(orders)):
            inside[:] = False
            for p in range(length):
                inside[orders[d, p]] = True
            missing, discordant = 0, 0
            for p in range(length):
                a = orders[d, p]
                missing += place[a] == length
                for q in range(p + 1, length):
                    discordant += place[a] > place[orders[d, q]]
                if place[a] < length:
                    for q in range(place[a]):
                        discordant += not inside[lists[n, q]]
            out[n] += discordant + missing * (missing + 1) / 2
        out[n] /= len(orders)


def _log_joint(strength: Any, kind: Any, inside: Any, before_terms: Any, first: Any) -> float:
    left = 0.0
    for a in range(len(strength)):
        left += strength[a]
    for p in range(len(first)):
        left -= strength[first[p]]
    left, value = max(left, 0.0), 0.0
    for p in range(len(first) - 1, -1, -1):
        a = first[p]
        left += strength[a]
        value += np.log(strength[a] / left) + inside[kind[a]]
        for q in range(p + 1, len(first)):
            value += before_terms[kind[a], kind[first[q]]]
    return value


def _outside(strength: Any, first: Any, chosen: Any) -> float:
    """Total strength of the items outside the first k; marks the first k in `chosen`."""
    chosen[:] = False
    for p in range(len(first)):
        chosen[first[p]] = True
    total = 0.0
    for a in range(len(strength)):
        if not chosen[a]:
            total += strength[a]
    return total


def _log_items(
    strength: Any, kind: Any, inside: Any, before_terms: Any, first: Any, place: int, chosen: Any, log_probability: Any
) -> Any:
    """Write log P of every item at one of the first k positions, given the others; return the most probable item."""
    size, length = len(strength), len(first)
    contribution = inside.copy()
    for p in range(length):
        b = kind[first[p]]
        for a in range(len(inside)):
            if p != place:
                contribution[a] += before_terms[b, a] if p < place else before_terms[a, b]
    # Strength of all candidates but one, as sums from both ends: a difference could lose all digits.
    after = np.zeros(size + 1)
    for c in range(size - 1, -1, -1):
        after[c] = after[c + 1] + (0.0 if chosen[c] and c != first[place] else strength[c])
    before, top, best = 0.0, -np.inf, first[place]
    for c in range(size):
        if chosen[c] and c != first[place]:
            log_probability[c] = -np.inf
            continue
        left, share, value = before + after[c + 1], 1.0, contribution[kind[c]] + np.log(strength[c])
        for p in range(length - 1, place, -1):
            left += strength[first[p]]
            share *= left
            if not 1e-150 < share < 1e150:
                value -= np.log(share)
                share = 1.0
        log_probability[c] = value - np.log(share)
        before += strength[c]
        if log_probability[c] > top:
            top, best = log_probability[c], c
    return best


def _log_top_k_positions(
    strength: Any, kind: Any, before_terms: Any, others: Any, a: int, outside: float, out: Any
) -> int:
    """Write log P of every position of a among the others of the first k; return the most probable position."""
    size = len(others) + 1
    left = np.empty(size)
    left[size - 1] = outside
    for p in range(size - 2, -1, -1):
        left[p] = left[p + 1] + strength[others[p]]
    value, top, best = 0.0, -np.inf, 0
    for p in range(size):
        out[p] = value - np.log1p(left[p] / strength[a])
        if out[p] > top:
            top, best = out[p], p
        if p < size - 1:
            b = others[p]
            value += before_terms[kind[b], kind[a]] - before_terms[kind[a], kind[b]] - np.log1p(strength[a] / left[p])
    return best


def _sample_log(log_probability: Any, top: float, uniforms: float) -> int:
    """Sample a row with probability ∝ exp(log_probability)."""
    total, last = 0.0, 0
    for c in range(len(log_probability)):
        total += np.exp(log_probability[c] - top)
    target = uniforms * total
    for c in range(len(log_probability)):
        probability = np.exp(log_probability[c] - top)
        if probability > 0:
            target -= probability
            last = c
            if target < 0:
                break
    return last


def _sweep(
    strength: Any, kind: Any, inside: Any, before_terms: Any, first: Any, uniforms: Any, maximise: bool, workspace: Any
) -> bool:
    """For each position: redraw the item there, then move one item within the first k. Returns whether it changed.

    With `maximise`, take the most probable choice instead of a random one. The item to move is drawn uniformly: a
    choice that depended on the order would break detailed balance.
    """
    chosen, others, of_item, of_place = workspace
    changed = False
    for place in range(len(first)):
        _outside(strength, first, chosen)
        old = first[place]
        best = _log_items(strength, kind, inside, before_terms, first, place, chosen, of_item)
        if maximise:
            new = best if of_item[best] > of_item[old] + 1e-9 else old
        else:
            new = _sample_log(of_item, of_item[best], uniforms[place])
        first[place] = new
        changed |= new != old
        outside = _outside(strength, first, chosen)
        moved = first[place if maximise else int(uniforms[2 * len(first) + place] * len(first))]
        old_position = _remove_item(first, moved, others)
        best = _log_top_k_positions(strength, kind, before_terms, others, moved, outside, of_place)
        if maximise:
            new_position = best if of_place[best] > of_place[old_position] + 1e-9 else old_position
        else:
            new_position = _sample_log(of_place, of_place[best], uniforms[len(first) + place])
        changed |= new_position != old_position
        _insert_item(first, moved, others, new_position)
    return changed


@compiled(_log_joint, _outside, _log_items, _log_top_k_positions, _sample_log, _remove_item, _insert_item, _sweep)
def _gibbs_loop(strength, kind, inside, before_terms, uniforms, warm_up, first, orders, best):  # type: ignore[no-untyped-def]
    size, length = len(strength), len(first)
    workspace = (np.zeros(size, np.bool_), np.empty(length - 1, np.int64), np.empty(size), np.empty(length))
    best_value = -np.inf
    for sweep in range(len(uniforms)):
        _sweep(strength, kind, inside, before_terms, first, uniforms[sweep], False, workspace)
        if sweep >= warm_up:
            orders[sweep - warm_up] = first
            value = _log_joint(strength, kind, inside, before_terms, first)
            if value > best_value:
                best_value = value
                best[:] = first
    while _sweep(strength, kind, inside, before_terms, best, uniforms[0], True, workspace):
        pass
