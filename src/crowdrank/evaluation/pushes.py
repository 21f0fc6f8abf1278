"""How far each judgment pushes one item above another: shares of a score difference that add up to it.

At the optimum of a likelihood with a normal prior the scores are a weighted least squares fit, so the difference of two
of them is a sum over the judgments. With m the margin of a judgment, ℓ' the slope of its log chance in m, I its
information and Λ the prior's: v = (Σ w·I·xxᵀ + Λ)⁻¹(e_a − e_b), and a judgment pushes by
w·(v_left − v_right)·(I·m + ℓ').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.errors import DataError
from crowdrank.judgments import TIE, Comparisons
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]

MOST_ITEMS = 5_000
"""Items of a query up to which the table of its pairs is laid out."""
TRUST = {"bradley-terry": "", "crowd-bt": "quality", "factor-bt": "care"}
"""The models that can be explained, and what they call the trust in an annotator."""


@dataclass(frozen=True)
class Pushes:
    """Of the judgments of one query, in their order."""

    rows: npt.NDArray[np.int64]
    """Which judgments they are."""
    push: Vector
    """Of each, on the score of the one item less that of the other."""
    left: npt.NDArray[np.int64]
    """Items as places within the query."""
    right: npt.NDArray[np.int64]
    current: Vector
    """How much of the comparison of the two items runs from left to right through this judgment."""
    height: Vector
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


def _slopes(model: Any, name: str, ranking: Ranking, asked: Comparisons) -> tuple[Vector, Vector]:
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
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    weight: Vector,
    size: int,
    a: int,
    b: int,
    model: Any,
) -> Vector:
    table = np.bincount(left * size + right, weight, size * size).reshape(size, size)
    table = -(table + table.T)
    table[np.diag_indices(size)] = 1.0 / model.prior_scale**2 - table.sum(axis=1)
    apart = np.zeros(size)
    apart[a], apart[b] = 1.0, -1.0
    return np.asarray(np.linalg.solve(table, apart))
