"""The pair, and the annotator to ask, of which the answer is expected to teach most: exact, without scoring them all.

Items lie in a tree of boxes (`tree`). A pair of boxes is dropped when no pair of items in them can teach more than the
best one so far (`likelihoods.gain_bounds`), and parted otherwise, the most promising part first. Annotators of whom the
same is believed, at the same price, are searched as one; the rest one after the other, the most promising first,
against the best so far. Among questions that teach the same, to rounding, which one is found is left open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.active import bounding_boxes, exclusions
from crowdrank.active.bounding_boxes import KNOTS, Tree, most_of_box, quality_at
from crowdrank.active.exclusions import Excluded, first_allowed
from crowdrank.active.gain_formulas import items_gain, quality_gain
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.online.moments import expected_lead

TIE = 1.0 + 1e-13
"""What teaches more by no more than this is as good: it may be rounding."""


class Alike(NamedTuple):
    """Annotators in groups of whom the same is believed, at the same price."""

    truths: FloatArray
    """The larger of the two counts of each group: the gain is the same when they change places."""
    lies: FloatArray
    price: FloatArray
    members: IntArray
    starts: IntArray
    """Where the members of each group begin."""


class Found(NamedTuple):
    """The best triplet; codes of −1 where none is allowed."""

    left: int
    right: int
    annotator: int
    gain: float
    boxes: int = 0
    """How many pairs of boxes were looked at."""
    pairs: int = 0
    """How many pairs of items were."""


def group(annotators: IntArray, truths: FloatArray, lies: FloatArray, price: FloatArray) -> Alike:
    """Those named by `annotators`; the other columns are theirs, in the same order."""
    if len(annotators) == 1:
        return Alike(np.maximum(truths, lies), np.minimum(truths, lies), price, annotators, np.array([0, 1]))
    columns = np.column_stack((np.maximum(truths, lies), np.minimum(truths, lies), price))
    alike, place = np.unique(columns, axis=0, return_inverse=True)
    place = place.reshape(-1)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(alike) + 1))
    more, less, price = np.ascontiguousarray(alike.T)
    return Alike(more, less, price, annotators[order], starts)


def search(tree: Tree, alike: Alike, kept: Excluded, exploration: float) -> Found:
    hopes, of_queries = _hopes(tree, alike, exploration)
    return Found(*_search(tree, alike, kept, exploration, hopes, np.argsort(-hopes), np.argsort(of_queries)))


def _bound(tree: Any, one: int, other: int, truths: float, lies: float, exploration: float, table: Any) -> Any:
    a, b = tree.box[one], tree.box[other]
    low, high = max(0.0, a[0] - b[1], b[0] - a[1]), max(a[1] - b[0], b[1] - a[0])
    return most_of_box(low, high, a[3], b[3], a[2] + b[2], a[3] + b[3], truths, lies, exploration, table)


def _gain_above(
    tree: Any, s: int, t: int, truths: float, lies: float, exploration: float, table: Any, best: float
) -> Any:
    """The gain where it is above the best so far; something not above it elsewhere."""
    lead, u, v = abs(tree.mean[s] - tree.mean[t]), tree.variance[s], tree.variance[t]
    truthful = expected_lead(lead, u + v)
    value = items_gain(lead, u, v, truthful, truths, lies)
    if exploration == 0.0:
        return value
    y = lead / np.sqrt(1.0 + 0.125 * np.pi * (u + v))
    if value + exploration * quality_at(y, truths, lies, table) <= best:
        return best
    return value + exploration * quality_gain(truthful, truths, lies)


def _alike(tree: Any, node: int) -> Any:
    return tree.box[node, 0] == tree.box[node, 1] and tree.box[node, 2] == tree.box[node, 3]


def _scan(
    tree: Any,
    one: int,
    other: int,
    truths: float,
    lies: float,
    members: Any,
    kept: Any,
    exploration: float,
    table: Any,
    best: float,
) -> Any:
    """The best pair of two leaves. Where all items of the second are alike, the first that is allowed will do."""
    i, j, k, looked = -1, -1, -1, 0
    if _alike(tree, one):
        one, other = other, one
    for s in range(tree.start[one], tree.stop[one]):
        value = np.inf
        for t in range(s + 1 if one == other else tree.start[other], tree.stop[other]):
            looked += 1
            value = _gain_above(tree, s, t, truths, lies, exploration, table, best)
            who = first_allowed(kept, members, tree.item[s], tree.item[t]) if value > best else -1
            if who >= 0:
                best, i, j, k = value, tree.item[s], tree.item[t], who
            if value <= best and _alike(tree, other):
                break
        if value <= best and _alike(tree, one) and _alike(tree, other):
            break
    return best, i, j, k, looked


def _parts(tree: Any, one: int, other: int) -> Any:
    """A pair of nodes as two or three: the node that is split, by what it may be paired with."""
    if one == other:
        first = tree.child[one]
        return ((first, first), (first, first + 1), (first + 1, first + 1))
    a, b = tree.box[one], tree.box[other]
    wider = a[1] - a[0] + (a[3] - a[2]) / a[3] > b[1] - b[0] + (b[3] - b[2]) / b[3]
    if tree.child[other] == 0 or (wider and tree.child[one] > 0):
        one, other = other, one
    first = tree.child[other]
    return ((one, first), (one, first + 1), (-1, -1))


def _descend(
    tree: Any,
    roots: Any,
    truths: float,
    lies: float,
    members: Any,
    kept: Any,
    exploration: float,
    table: Any,
    best: float,
) -> Any:
    """The best pair for a group of annotators, if it is above the best so far: depth first."""
    i, j, k, boxes, pairs = -1, -1, -1, 0, 0
    room = tree.roots + 4 * tree.depth + 4
    ones, others, bounds = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    depth = 0
    for root in roots:
        ones[depth] = others[depth] = root
        bounds[depth] = _bound(tree, root, root, truths, lies, exploration, table)
        depth += 1
    while depth > 0:
        depth -= 1
        if bounds[depth] <= best * TIE:
            continue
        one, other = ones[depth], others[depth]
        if tree.child[one] == 0 and tree.child[other] == 0:
            found = _scan(tree, one, other, truths, lies, members, kept, exploration, table, best)
            pairs += found[4]
            if found[3] >= 0:
                best, i, j, k = found[0], found[1], found[2], found[3]
            continue
        bottom = depth
        for a, b in _parts(tree, one, other):
            if a < 0:
                continue
            boxes += 1
            hope = _bound(tree, a, b, truths, lies, exploration, table)
            if hope <= best * TIE:
                continue
            place = depth
            while place > bottom and bounds[place - 1] > hope:
                ones[place], others[place], bounds[place] = ones[place - 1], others[place - 1], bounds[place - 1]
                place -= 1
            ones[place], others[place], bounds[place] = a, b, hope
            depth += 1
    return best, i, j, k, boxes, pairs


@compiled(*bounding_boxes.FORMULAS, _bound)
def _hopes(tree: Any, alike: Any, exploration: float) -> Any:
    """What each group of annotators can be worth at most for its price, and each query."""
    groups, table = len(alike.truths), np.empty(KNOTS)
    of_groups, of_queries = np.zeros(groups), np.zeros(tree.roots)
    for g in range(groups):
        table[:] = np.nan
        for root in range(tree.roots):
            hope = _bound(tree, root, root, alike.truths[g], alike.lies[g], exploration, table) / alike.price[g]
            of_groups[g] = max(of_groups[g], hope)
            of_queries[root] = max(of_queries[root], hope)
    return of_groups, of_queries


@compiled(*bounding_boxes.FORMULAS, *exclusions.FORMULAS, _bound, _gain_above, _alike, _scan, _parts, _descend)
def _search(tree: Any, alike: Any, kept: Any, exploration: float, hopes: Any, groups: Any, roots: Any) -> Any:
    table = np.empty(KNOTS)
    best, i, j, k, boxes, pairs = -1.0, -1, -1, -1, 0, 0
    gain = 0.0
    for g in groups:
        if hopes[g] <= best * TIE:
            break
        truths, lies, price = alike.truths[g], alike.lies[g], alike.price[g]
        members = alike.members[alike.starts[g] : alike.starts[g + 1]]
        table[:] = np.nan
        found = _descend(tree, roots, truths, lies, members, kept, exploration, table, best * price)
        boxes, pairs = boxes + found[4], pairs + found[5]
        if found[3] >= 0:
            gain, i, j, k = found[0], found[1], found[2], found[3]
            best = gain / price
    return i, j, k, gain, boxes, pairs
