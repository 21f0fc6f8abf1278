"""Chains of judgments from one item to another: a above c, c above b.

How far each judgment pushes one item above another: shares of a score difference that add up to it.

At the optimum of a likelihood with a normal prior the scores are a weighted least squares fit, so the difference of two
of them is a sum over the judgments. With m the margin of a judgment, ℓ' the slope of its log chance in m, I its
information and Λ the prior's: v = (Σ w·I·xxᵀ + Λ)⁻¹(e_a − e_b), and a judgment pushes by
w·(v_left − v_right)·(I·m + ℓ').
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import TIE, Comparisons
from crowdrank.errors import DataError
from crowdrank.results import Ranking

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


def _of_pairs(found: Pushes, values: FloatArray, size: int) -> FloatArray:
    """Added up by left and right item."""
    return np.asarray(np.bincount(found.left * size + found.right, values, size * size).reshape(size, size), np.float64)


def _widest(current: FloatArray, height: FloatArray, a: int, b: int) -> tuple[list[int], float]:
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


MOST_ITEMS = 5_000
"""Items of a query up to which the table of its pairs is laid out."""
TRUST = {"bradley-terry": "", "crowd-bt": "quality", "factor-bt": "attention"}
"""The models that can be explained, and what they call the trust in an annotator."""


@dataclass(frozen=True)
class Pushes:
    """Of the judgments of one query, in their order."""

    rows: IntArray
    """Which judgments they are."""
    push: FloatArray
    """Of each, on the score of the one item less that of the other."""
    left: IntArray
    """Items as places within the query."""
    right: IntArray
    current: FloatArray
    """How much of the comparison of the two items runs from left to right through this judgment."""
    height: FloatArray
    """v: currents run from higher items to lower."""


def pushes(model: Any, name: str, ranking: Ranking, comparisons: Comparisons, a: int, b: int) -> Pushes:
    """On item a above item b, which are of one query."""
    block = comparisons.items.of_query(int(comparisons.items.query[a]))
    size = block.stop - block.start
    if size > MOST_ITEMS:
        raise DataError(f"Explaining takes a query of at most {MOST_ITEMS:,} items, got {size:,}.")
    rows = np.flatnonzero((comparisons.left >= block.start) & (comparisons.left < block.stop))
    asked = comparisons.take(rows)
    slope, information = _slopes(model, name, ranking, asked)
    left, right = asked.left.astype(np.int64) - block.start, asked.right.astype(np.int64) - block.start
    scores = ranking.scores[block]
    height = _heights(left, right, asked.weights * information, size, a - block.start, b - block.start, model)
    drop = asked.weights * (height[left] - height[right])
    push = drop * (information * (scores[left] - scores[right]) + slope)
    return Pushes(rows, push, left, right, drop * information, height)


def _slopes(model: Any, name: str, ranking: Ranking, asked: Comparisons) -> tuple[FloatArray, FloatArray]:
    """The slope of each answer's log chance in the margin, and the information in it."""
    chance = model.predict(ranking, asked)
    left, right, outcome = chance[:, 0], chance[:, 2], asked.outcome.astype(np.float64)
    if not TRUST[name]:
        lead = left - right  # with ties after Davidson, and without them
        return (outcome - lead) / 2, (left + right - lead**2) / 4
    trust = ranking.annotators[TRUST[name]][asked.annotator]
    if name == "crowd-bt":
        trust = 2 * trust - 1
    margin = ranking.scores[asked.left] - ranking.scores[asked.right]
    steep = trust / (4 * np.cosh(margin / 2) ** 2)
    said = np.where(outcome > 0, left, right)
    decided = asked.outcome != TIE  # these models leave ties out
    return (
        np.where(decided, outcome * steep / said, 0.0),
        np.where(decided, steep**2 / (left * right), 0.0),
    )


def _heights(
    left: IntArray,
    right: IntArray,
    weight: FloatArray,
    size: int,
    a: int,
    b: int,
    model: Any,
) -> FloatArray:
    table = np.bincount(left * size + right, weight, size * size).reshape(size, size)
    table = -(table + table.T)
    table[np.diag_indices(size)] = 1.0 / model.prior_scale**2 - table.sum(axis=1)
    apart = np.zeros(size)
    apart[a], apart[b] = 1.0, -1.0
    return np.asarray(np.linalg.solve(table, apart))
