"""The first k items of a query's true list, where annotators named their first k (Mallows of Definition 1).

Definition 1's distances, weighed by θ, are a sum over pairs too. With F the first k items, W[a, b] = Σⱼ θⱼ·1[j puts b
before a, or lists b alone], R[a] = Σ_b W[a, b] and O[a, b] = Σⱼ θⱼ·1[j lists neither],

Σⱼ θⱼ·dⱼ = Σ_{a∈F} R[a] − Σ_{a before b in F} (W[b, a] + O[a, b]).

Items that nobody lists differ by their scores alone: they are of one *kind*, and each other item is a kind of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.ltr.list_sampling import _put_in, _strengths, _take_out


class Pull(NamedTuple):
    """What the lists of one query say of its first k items."""

    kind: IntArray
    """Of each item; the last kind is that of items that nobody lists."""
    inside: FloatArray
    """R: for being among the first."""
    ahead: FloatArray
    """−W[b, a] − O[a, b]: for a being before b, both among the first."""


class TopDrawn(NamedTuple):
    orders: IntArray
    """One draw of the first k a row."""
    best: IntArray
    """The likeliest first k that were found."""


def pull_of(lists: IntArray, theta: FloatArray, size: int) -> Pull:
    """Of lists of k items, one a row, each with the θ of its annotator."""
    named = np.unique(lists)
    kind = np.full(size, len(named))
    kind[named] = np.arange(len(named))
    turned, neither = np.zeros((2, len(named) + 1, len(named) + 1))
    _pull_loop(kind[lists], theta, turned, neither)
    return Pull(kind, turned.sum(axis=1), -turned.T - neither)


def log_joint(scores: FloatArray, pull: Pull, first: IntArray) -> float:
    """log P of the first k items, up to the same constant for all."""
    return float(_log_joint(_strengths(scores), *pull, first))


def top_gibbs(scores: FloatArray, pull: Pull, start: IntArray, luck: FloatArray, warm_up: int) -> TopDrawn:
    """One sweep, and after the warm-up one draw, for each row of `luck`: three uniform numbers a place."""
    first, best = start.astype(np.int64), start.astype(np.int64)
    orders = np.zeros((len(luck) - warm_up, len(first)), np.int64)
    _gibbs_loop(_strengths(scores), *pull, luck, warm_up, first, orders, best)
    return TopDrawn(orders, best)


def top_distances(orders: IntArray, lists: IntArray, size: int) -> FloatArray:
    """For each list its distance by Definition 1, on average over the orders."""
    out = np.zeros(len(lists))
    _distances_loop(orders, lists, size, out)
    return out


@compiled()
def _pull_loop(lists, theta, turned, neither):  # type: ignore[no-untyped-def]
    kinds, length = len(turned), lists.shape[1]
    place = np.empty(kinds, np.int64)
    for n in range(len(lists)):
        place[:] = length
        for p in range(length):
            place[lists[n, p]] = p
        for a in range(kinds):
            for p in range(min(place[a], length)):
                turned[a, lists[n, p]] += theta[n]
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
            missing, turned = 0, 0
            for p in range(length):
                a = orders[d, p]
                missing += place[a] == length
                for q in range(p + 1, length):
                    turned += place[a] > place[orders[d, q]]
                if place[a] < length:
                    for q in range(place[a]):
                        turned += not inside[lists[n, q]]
            out[n] += turned + missing * (missing + 1) / 2
        out[n] /= len(orders)


def _log_joint(strength: Any, kind: Any, inside: Any, ahead: Any, first: Any) -> float:
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
            value += ahead[kind[a], kind[first[q]]]
    return value


def _outside(strength: Any, first: Any, chosen: Any) -> float:
    """The strength of all items that are not among the first; those that are get marked."""
    chosen[:] = False
    for p in range(len(first)):
        chosen[first[p]] = True
    total = 0.0
    for a in range(len(strength)):
        if not chosen[a]:
            total += strength[a]
    return total


def _log_items(
    strength: Any, kind: Any, inside: Any, ahead: Any, first: Any, place: int, chosen: Any, log_chance: Any
) -> Any:
    """log P of every item that could stand at a place of the first k, the others staying; the likeliest item."""
    size, length = len(strength), len(first)
    said = inside.copy()
    for p in range(length):
        b = kind[first[p]]
        for a in range(len(inside)):
            if p != place:
                said[a] += ahead[b, a] if p < place else ahead[a, b]
    # The strength of the candidates but for one: sums from both ends, as a difference may lose all digits.
    after = np.zeros(size + 1)
    for c in range(size - 1, -1, -1):
        after[c] = after[c + 1] + (0.0 if chosen[c] and c != first[place] else strength[c])
    before, top, best = 0.0, -np.inf, first[place]
    for c in range(size):
        if chosen[c] and c != first[place]:
            log_chance[c] = -np.inf
            continue
        left, share, value = before + after[c + 1], 1.0, said[kind[c]] + np.log(strength[c])
        for p in range(length - 1, place, -1):
            left += strength[first[p]]
            share *= left
            if not 1e-150 < share < 1e150:
                value -= np.log(share)
                share = 1.0
        log_chance[c] = value - np.log(share)
        before += strength[c]
        if log_chance[c] > top:
            top, best = log_chance[c], c
    return best


def _log_places_of(strength: Any, kind: Any, ahead: Any, others: Any, a: int, outside: float, out: Any) -> int:
    """log P of every place of a among the others of the first k; the likeliest place."""
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
            value += ahead[kind[b], kind[a]] - ahead[kind[a], kind[b]] - np.log1p(strength[a] / left[p])
    return best


def _pick(log_chance: Any, top: float, luck: float) -> int:
    """A row with chance ∝ exp(log_chance)."""
    total, last = 0.0, 0
    for c in range(len(log_chance)):
        total += np.exp(log_chance[c] - top)
    mark = luck * total
    for c in range(len(log_chance)):
        chance = np.exp(log_chance[c] - top)
        if chance > 0:
            mark -= chance
            last = c
            if mark < 0:
                break
    return last


def _sweep(
    strength: Any, kind: Any, inside: Any, ahead: Any, first: Any, luck: Any, likeliest: bool, space: Any
) -> bool:
    """As often as there are places: another item at one, and one of the items at another; whether anything changed.

    Which item moves must not depend on the order: by lot, whatever place it has.
    """
    chosen, others, of_item, of_place = space
    changed = False
    for place in range(len(first)):
        _outside(strength, first, chosen)
        old = first[place]
        best = _log_items(strength, kind, inside, ahead, first, place, chosen, of_item)
        if likeliest:
            fresh = best if of_item[best] > of_item[old] + 1e-9 else old
        else:
            fresh = _pick(of_item, of_item[best], luck[place])
        first[place] = fresh
        changed |= fresh != old
        outside = _outside(strength, first, chosen)
        moving = first[place if likeliest else int(luck[2 * len(first) + place] * len(first))]
        stood = _take_out(first, moving, others)
        best = _log_places_of(strength, kind, ahead, others, moving, outside, of_place)
        if likeliest:
            goal = best if of_place[best] > of_place[stood] + 1e-9 else stood
        else:
            goal = _pick(of_place, of_place[best], luck[len(first) + place])
        changed |= goal != stood
        _put_in(first, moving, others, goal)
    return changed


@compiled(_log_joint, _outside, _log_items, _log_places_of, _pick, _take_out, _put_in, _sweep)
def _gibbs_loop(strength, kind, inside, ahead, luck, warm_up, first, orders, best):  # type: ignore[no-untyped-def]
    size, length = len(strength), len(first)
    space = (np.zeros(size, np.bool_), np.empty(length - 1, np.int64), np.empty(size), np.empty(length))
    seen = -np.inf
    for sweep in range(len(luck)):
        _sweep(strength, kind, inside, ahead, first, luck[sweep], False, space)
        if sweep >= warm_up:
            orders[sweep - warm_up] = first
            value = _log_joint(strength, kind, inside, ahead, first)
            if value > seen:
                seen = value
                best[:] = first
    while _sweep(strength, kind, inside, ahead, best, luck[0], True, space):
        pass
