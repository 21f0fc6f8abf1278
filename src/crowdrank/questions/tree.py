"""Items in boxes within boxes, by mean and variance of their scores: a tree for each query, in one set of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods.compiled import compiled

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

LEAF = 4
"""Items that are not parted any more."""


class Tree(NamedTuple):
    """Items in the order of the leaves, and the nodes above them, the roots first."""

    item: Codes
    mean: Vector
    variance: Vector
    roots: int
    start: Codes
    stop: Codes
    child: Codes
    """The first of a node's two children, which stand side by side; 0 at a leaf."""
    box: Vector
    """Of each node: least and largest mean, least and largest variance."""
    depth: int
    """Nodes from a root to the deepest leaf."""


class Leaves(NamedTuple):
    """Items query by query; of queries of one item there is none."""

    item: Codes
    starts: Codes
    """Where the items of each query begin."""

    @classmethod
    def of(cls, query: npt.NDArray[Any]) -> Leaves:
        several = np.bincount(query, minlength=1) > 1
        item = np.argsort(query, kind="stable")
        item = item[several[query[item]]]
        return cls(item, np.append(np.flatnonzero(np.diff(query[item], prepend=-1)), len(item)))


def grow(mean: Vector, variance: Vector, leaves: Leaves) -> Tree:
    item, starts = leaves.item.copy(), leaves.starts
    mean, variance = mean[item], variance[item]
    return Tree(item, mean, variance, len(starts) - 1, *_part(item, mean, variance, starts, LEAF))


@compiled()
def _part(item: Any, mean: Any, variance: Any, starts: Any, leaf: int) -> Any:
    """Sort the items of every node into two, at the middle of its longer side, until all in a node are few or alike.

    A side of variances is reckoned in halves of the largest of them.
    """
    room, count = 2 * len(item), len(starts) - 1
    start, stop, child = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    box, depth = np.zeros((room, 4)), np.ones(room, np.int64)
    for root in range(count):
        start[root], stop[root] = starts[root], starts[root + 1]
    node = deepest = 0
    while node < count:
        first, last = start[node], stop[node]
        low = high = mean[first]
        calm = wild = variance[first]
        for i in range(first + 1, last):
            low, high = min(low, mean[i]), max(high, mean[i])
            calm, wild = min(calm, variance[i]), max(wild, variance[i])
        box[node, 0], box[node, 1], box[node, 2], box[node, 3] = low, high, calm, wild
        deepest = max(deepest, depth[node])
        if last - first > leaf and (high > low or wild > calm):
            by_mean = (high - low) * wild >= 2.0 * (wild - calm)
            key = mean if by_mean else variance
            least, most = (low, high) if by_mean else (calm, wild)
            middle = 0.5 * (least + most)
            if middle >= most:  # the two are neighbours among floating-point numbers
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
