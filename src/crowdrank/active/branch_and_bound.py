"""Branch-and-bound search for the pair and annotator with the largest expected information gain.

The search is exact, without scoring every triplet. The items of each query are the leaves of a tree of boxes in the
plane of means and variances. A pair of boxes is dropped if the bound of its gain (`gain_bound`) is not above the best
gain so far, and split otherwise, the more promising part first. Annotators with the same beliefs and price are searched
as one group; groups are searched one after the other, the most promising first. Among questions with the same gain, up
to rounding, any may be returned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdrank.active import questions
from crowdrank.active.gain_formulas import (
    BOUND_FORMULAS,
    N_KNOTS,
    gain_bound,
    item_gain,
    quality_gain,
    quality_gain_bound,
)
from crowdrank.active.questions import Exclusions, first_allowed
from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.online.moments import win_probability

LEAF_SIZE = 4
"""Nodes with at most this many items are not split."""
TIE = 1.0 + 1e-13
"""A gain larger by no more than this factor counts as equal: it may be rounding."""


class QueryBlocks(NamedTuple):
    """Items sorted by query, without queries of a single item.

    `starts` is where the items of each query begin, and where the last one ends.
    """

    item: IntArray
    starts: IntArray

    @classmethod
    def of(cls, query: AnyArray) -> QueryBlocks:
        several = np.bincount(query, minlength=1) > 1
        item = np.argsort(query, kind="stable")
        item = item[several[query[item]]]
        return cls(item, np.append(np.flatnonzero(np.diff(query[item], prepend=-1)), len(item)))


class Tree(NamedTuple):
    """Items in the order of the leaves, and the nodes above them, one root per query first.

    `start` and `stop` delimit the items of a node. `child` is the first of its two children, which are adjacent; 0 for
    a leaf. `box` has the smallest and largest mean, then the smallest and largest variance. `depth` is the number of
    levels.
    """

    item: IntArray
    mean: FloatArray
    variance: FloatArray
    roots: int
    start: IntArray
    stop: IntArray
    child: IntArray
    box: FloatArray
    depth: int


def build_tree(mean: FloatArray, variance: FloatArray, blocks: QueryBlocks) -> Tree:
    """Build the tree of boxes over all queries."""
    item, starts = blocks.item.copy(), blocks.starts
    mean, variance = mean[item], variance[item]
    return Tree(item, mean, variance, len(starts) - 1, *_split_nodes(item, mean, variance, starts, LEAF_SIZE))


@compiled()
def _split_nodes(item: Any, mean: Any, variance: Any, starts: Any, leaf_size: int) -> Any:
    """Sort the items of every node into two halves of its longer side, until a node is small or all items are equal.

    Variances are measured relative to half of their maximum, so that both sides of a box are comparable.
    """
    capacity, count = 2 * len(item), len(starts) - 1
    start, stop, child = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
    box, depth = np.zeros((capacity, 4)), np.ones(capacity, np.int64)
    for root in range(count):
        start[root], stop[root] = starts[root], starts[root + 1]
    node = deepest = 0
    while node < count:
        first, last = start[node], stop[node]
        low = high = mean[first]
        min_variance = max_variance = variance[first]
        for i in range(first + 1, last):
            low, high = min(low, mean[i]), max(high, mean[i])
            min_variance, max_variance = min(min_variance, variance[i]), max(max_variance, variance[i])
        box[node, 0], box[node, 1], box[node, 2], box[node, 3] = low, high, min_variance, max_variance
        deepest = max(deepest, depth[node])
        if last - first > leaf_size and (high > low or max_variance > min_variance):
            by_mean = (high - low) * max_variance >= 2.0 * (max_variance - min_variance)
            key = mean if by_mean else variance
            least, most = (low, high) if by_mean else (min_variance, max_variance)
            middle = 0.5 * (least + most)
            if middle >= most:  # the two are neighbouring floating-point numbers
                middle = least
            i, j = first, last - 1
            while i <= j:
                if key[i] <= middle:
                    i += 1
                else:
                    item[i], item[j] = item[j], item[i]
                    mean[i], mean[j] = mean[j], mean[i]
                    variance[i], variance[j] = variance[j], variance[i]
                    j -= 1
            if first < i < last:
                child[node] = count
                start[count], stop[count], start[count + 1], stop[count + 1] = first, i, i, last
                depth[count] = depth[count + 1] = depth[node] + 1
                count += 2
        node += 1
    return start[:count], stop[:count], child[:count], box[:count], deepest


class AnnotatorGroups(NamedTuple):
    """Annotators grouped by equal beliefs and price.

    `alpha` is the larger of the two parameters of each group: the gain is the same when they are exchanged. `starts` is
    where the members of each group begin.
    """

    alpha: FloatArray
    beta: FloatArray
    price: FloatArray
    members: IntArray
    starts: IntArray


class SearchResult(NamedTuple):
    """The best question: codes of the items and of the annotator (−1 if none is allowed), and its gain in nats.

    `boxes` and `pairs` are the numbers of pairs of boxes and of items that the search evaluated.
    """

    left: int
    right: int
    annotator: int
    gain: float
    boxes: int = 0
    pairs: int = 0


def group_annotators(annotators: IntArray, alpha: FloatArray, beta: FloatArray, price: FloatArray) -> AnnotatorGroups:
    """Group annotators, given by code; the other columns are theirs, in the same order."""
    larger, smaller = np.maximum(alpha, beta), np.minimum(alpha, beta)
    if len(annotators) == 1:
        return AnnotatorGroups(larger, smaller, price, annotators, np.array([0, 1]))
    unique, group = np.unique(np.column_stack((larger, smaller, price)), axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(unique) + 1))
    larger, smaller, price = np.ascontiguousarray(unique.T)
    return AnnotatorGroups(larger, smaller, price, annotators[order], starts)


def search(tree: Tree, groups: AnnotatorGroups, exclusions: Exclusions, exploration: float) -> SearchResult:
    """Return the question with the largest expected gain per unit of price."""
    of_groups, of_queries = _root_bounds(tree, groups, exploration)
    group_order, query_order = np.argsort(-of_groups), np.argsort(of_queries)
    return SearchResult(*_search(tree, groups, exclusions, exploration, of_groups, group_order, query_order))


def box_bound(tree: Any, one: int, other: int, alpha: float, beta: float, exploration: float, table: Any) -> Any:
    """Bound of the gain of the pairs between two nodes."""
    a, b = tree.box[one], tree.box[other]
    low, high = max(0.0, a[0] - b[1], b[0] - a[1]), max(a[1] - b[0], b[1] - a[0])
    return gain_bound(low, high, a[3], b[3], a[2] + b[2], a[3] + b[3], alpha, beta, exploration, table)


def _gain_above(
    tree: Any, s: int, t: int, alpha: float, beta: float, exploration: float, table: Any, best: float
) -> Any:
    """Return the gain of a pair if it is above the best so far, and otherwise any value not above it."""
    lead, u, v = abs(tree.mean[s] - tree.mean[t]), tree.variance[s], tree.variance[t]
    truthful = win_probability(lead, u + v)
    value = item_gain(lead, u, v, truthful, alpha, beta)
    if exploration == 0.0:
        return value
    # the interpolated bound is cheap; the exact gain takes gamma functions
    y = lead / np.sqrt(1.0 + 0.125 * np.pi * (u + v))
    if value + exploration * quality_gain_bound(y, alpha, beta, table) <= best:
        return best
    return value + exploration * quality_gain(truthful, alpha, beta)


def _is_point(tree: Any, node: int) -> Any:
    """Whether all items of a node have the same mean and variance."""
    return tree.box[node, 0] == tree.box[node, 1] and tree.box[node, 2] == tree.box[node, 3]


def _scan(
    tree: Any,
    one: int,
    other: int,
    alpha: float,
    beta: float,
    members: Any,
    exclusions: Any,
    exploration: float,
    table: Any,
    best: float,
) -> Any:
    """Return the best pair of two leaves. If all items of the second are equal, the first allowed one is enough."""
    i, j, k, n_scored = -1, -1, -1, 0
    if _is_point(tree, one):
        one, other = other, one
    for s in range(tree.start[one], tree.stop[one]):
        value = np.inf
        for t in range(s + 1 if one == other else tree.start[other], tree.stop[other]):
            n_scored += 1
            value = _gain_above(tree, s, t, alpha, beta, exploration, table, best)
            who = first_allowed(exclusions, members, tree.item[s], tree.item[t]) if value > best else -1
            if who >= 0:
                best, i, j, k = value, tree.item[s], tree.item[t], who
            if value <= best and _is_point(tree, other):
                break
        if value <= best and _is_point(tree, one) and _is_point(tree, other):
            break
    return best, i, j, k, n_scored


def _split_pair(tree: Any, one: int, other: int) -> Any:
    """Split the larger node of a pair: two new pairs, or three if a node is paired with itself."""
    if one == other:
        first = tree.child[one]
        return ((first, first), (first, first + 1), (first + 1, first + 1))
    a, b = tree.box[one], tree.box[other]
    wider = a[1] - a[0] + (a[3] - a[2]) / a[3] > b[1] - b[0] + (b[3] - b[2]) / b[3]
    if tree.child[other] == 0 or (wider and tree.child[one] > 0):
        one, other = other, one
    first = tree.child[other]
    return ((one, first), (one, first + 1), (-1, -1))


def descend(
    tree: Any,
    roots: Any,
    alpha: float,
    beta: float,
    members: Any,
    exclusions: Any,
    exploration: float,
    table: Any,
    best: float,
) -> Any:
    """Depth-first search for the best pair for a group of annotators, if it is above the best so far."""
    i, j, k, n_boxes, n_pairs = -1, -1, -1, 0, 0
    capacity = tree.roots + 4 * tree.depth + 4
    ones, others, bounds = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
    depth = 0
    for root in roots:
        ones[depth] = others[depth] = root
        bounds[depth] = box_bound(tree, root, root, alpha, beta, exploration, table)
        depth += 1
    while depth > 0:
        depth -= 1
        if bounds[depth] <= best * TIE:
            continue
        one, other = ones[depth], others[depth]
        if tree.child[one] == 0 and tree.child[other] == 0:
            found = _scan(tree, one, other, alpha, beta, members, exclusions, exploration, table, best)
            n_pairs += found[4]
            if found[3] >= 0:
                best, i, j, k = found[0], found[1], found[2], found[3]
            continue
        bottom = depth
        for a, b in _split_pair(tree, one, other):
            if a < 0:
                continue
            n_boxes += 1
            bound = box_bound(tree, a, b, alpha, beta, exploration, table)
            if bound <= best * TIE:
                continue
            # insertion sort: the largest bound ends on top of the stack
            place = depth
            while place > bottom and bounds[place - 1] > bound:
                ones[place], others[place], bounds[place] = ones[place - 1], others[place - 1], bounds[place - 1]
                place -= 1
            ones[place], others[place], bounds[place] = a, b, bound
            depth += 1
    return best, i, j, k, n_boxes, n_pairs


SEARCH_FORMULAS = (box_bound, _gain_above, _is_point, _scan, _split_pair, descend)
"""Functions that a compiled search calls."""


@compiled(*BOUND_FORMULAS, box_bound)
def _root_bounds(tree: Any, groups: Any, exploration: float) -> Any:
    """Bound of the gain per unit of price of each group of annotators, and of each query."""
    n_groups, table = len(groups.alpha), np.empty(N_KNOTS)
    of_groups, of_queries = np.zeros(n_groups), np.zeros(tree.roots)
    for g in range(n_groups):
        table[:] = np.nan
        for root in range(tree.roots):
            bound = box_bound(tree, root, root, groups.alpha[g], groups.beta[g], exploration, table) / groups.price[g]
            of_groups[g] = max(of_groups[g], bound)
            of_queries[root] = max(of_queries[root], bound)
    return of_groups, of_queries


@compiled(*BOUND_FORMULAS, *questions.FORMULAS, *SEARCH_FORMULAS)
def _search(
    tree: Any, groups: Any, exclusions: Any, exploration: float, bounds: Any, group_order: Any, query_order: Any
) -> Any:
    table = np.empty(N_KNOTS)
    best, i, j, k, n_boxes, n_pairs = -1.0, -1, -1, -1, 0, 0
    gain = 0.0
    for g in group_order:
        if bounds[g] <= best * TIE:
            break
        alpha, beta, price = groups.alpha[g], groups.beta[g], groups.price[g]
        members = groups.members[groups.starts[g] : groups.starts[g + 1]]
        table[:] = np.nan
        found = descend(tree, query_order, alpha, beta, members, exclusions, exploration, table, best * price)
        n_boxes, n_pairs = n_boxes + found[4], n_pairs + found[5]
        if found[3] >= 0:
            gain, i, j, k = found[0], found[1], found[2], found[3]
            best = gain / price
    return i, j, k, gain, n_boxes, n_pairs
