"""Chains of judgments from one item to another: a above c, c above b."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from crowdrank.evaluation.pushes import Pushes

Matrix = npt.NDArray[np.float64]

_LEAST = 1e-3
"""The share of the current below which a chain is not worth telling."""


def chains(found: Pushes, a: int, b: int, most: int) -> Iterator[tuple[list[int], float]]:
    """The widest chains through other items, and how far each pushes; places are those within the query.

    Each takes as much current as its thinnest link has, which is gone for the next: so nothing counts twice, and the
    pushes of all chains, the direct one and the prior's share add up to the difference of the scores.
    """
    size = len(found.height)
    current, push = (_of_pairs(found, values, size) for values in (found.current, found.push))
    # a current has a direction; a push is on a above b, whichever way round the two were shown
    current, push = current - current.T, push + push.T
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(current != 0, push / current, 0.0)
    current[a, b] = current[b, a] = 0.0
    for _ in range(most):
        path, width = _widest(current, found.height, a, b)
        if width < _LEAST:
            return
        links = list(pairwise(path))
        yield path, width * sum(float(worth[link]) for link in links)
        for i, j in links:
            current[i, j] -= width
            current[j, i] += width


def _of_pairs(found: Pushes, values: Matrix, size: int) -> Matrix:
    """Added up by left and right item."""
    return np.asarray(np.bincount(found.left * size + found.right, values, size * size).reshape(size, size), np.float64)


def _widest(current: Matrix, height: Matrix, a: int, b: int) -> tuple[list[int], float]:
    """From a to b down the heights, the thinnest link as wide as can be."""
    width, before = np.zeros(len(height)), np.full(len(height), -1)
    width[a] = np.inf
    for item in np.argsort(-height, kind="stable"):
        if width[item] <= 0 or item == b:
            continue
        through = np.minimum(width[item], current[item])
        wider = through > width
        width[wider], before[wider] = through[wider], item
    path = [b]
    while path[-1] != a and before[path[-1]] >= 0:
        path.append(int(before[path[-1]]))
    return path[::-1], float(width[b]) if path[-1] == a else 0.0
