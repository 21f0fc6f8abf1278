"""Answers of each annotator on each pair as one cell: what it answered, how often, and whether it agrees with itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons

# Cells seen from both sides that a judge needs before its side effect is believed by half.
_CELLS_FOR_SIDE = 5.0
# Repeated cells after which a judge's own reliability counts as much as that of all judges.
_CELLS_FOR_RELIABILITY = 5.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """One row per annotator and pair.

    Parameters
    ----------
    annotator, pair : array of int
        Codes of the annotator and the pair of each cell.
    answer : array of float
        Mean answer, from 1 (always the first item) to −1 (always the second). Both orders count the same, and the side
        effect of the annotator is taken out where only one order was shown.
    count : array of float
        Number of answers (sum of weights).
    both_orders : array of bool
        Whether the pair was shown in both orders.
    first, second : array of int
        The items of each pair, the lower code first.
    reliability : array of float
        Correlation between two answers of one annotator on the same pair, without the side effect; NaN if nobody
        answered a pair twice.
    n_annotators : int
        Number of annotators.
    """

    annotator: IntArray
    pair: IntArray
    answer: FloatArray
    count: FloatArray
    both_orders: BoolArray
    first: IntArray
    second: IntArray
    reliability: FloatArray
    n_annotators: int

    @property
    def n_pairs(self) -> int:
        return len(self.first)


def make_cells(comparisons: Comparisons) -> Cells:
    """Gather the answers of each annotator on each pair. Without annotators, all answers are of one."""
    size = len(comparisons.items)
    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    along = np.where(left < right, 1.0, -1.0)
    pairs, pair = np.unique(np.minimum(left, right) * size + np.maximum(left, right), return_inverse=True)
    who = np.zeros(len(left), np.int64) if comparisons.annotator is None else comparisons.annotator.astype(np.int64)
    n_annotators = max(1, len(comparisons.annotators))
    codes, cell = np.unique(who * len(pairs) + pair, return_inverse=True)
    owner, weight = codes // len(pairs), np.asarray(comparisons.weights, float)
    answer = comparisons.outcome * along
    order = along if comparisons.positions_known else np.ones(len(along))

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(cell, values, len(codes))

    shown = [total(weight * (order == side)) for side in (1, -1)]
    mean = [total(weight * answer * (order == side)) / np.maximum(n, 1e-300) for side, n in zip((1, -1), shown, strict=True)]
    both = (shown[0] > 0) & (shown[1] > 0)
    seen = np.bincount(owner, both, n_annotators)
    lean = np.bincount(owner, np.where(both, (mean[0] - mean[1]) / 2, 0.0), n_annotators)
    side = lean / (seen + _CELLS_FOR_SIDE)
    alone = np.where(shown[0] > 0, mean[0] - side[owner], mean[1] + side[owner])
    corrected = answer - side[who] * order
    return Cells(
        annotator=owner,
        pair=codes % len(pairs),
        answer=np.clip(np.where(both, (mean[0] + mean[1]) / 2, alone), -1.0, 1.0),
        count=shown[0] + shown[1],
        both_orders=both,
        first=pairs // size,
        second=pairs % size,
        reliability=_reliability(total(weight), total(weight * corrected), total(weight * corrected**2), owner, n_annotators),
        n_annotators=n_annotators,
    )


def _reliability(
    count: FloatArray, sums: FloatArray, squares: FloatArray, owner: IntArray, n_annotators: int
) -> FloatArray:
    """Mean product of two answers to one pair over the mean square of an answer, per annotator, shrunk to the mean."""
    repeated = count > 1
    if not repeated.any():
        return np.full(n_annotators, np.nan)
    safe = np.maximum(count, 1.0)
    product = np.bincount(owner, np.where(repeated, (sums**2 - squares) / safe, 0.0), n_annotators)
    number = np.bincount(owner, np.where(repeated, count - 1, 0.0), n_annotators)
    variance = np.bincount(owner, squares, n_annotators) / np.maximum(np.bincount(owner, count, n_annotators), 1e-300)
    possible = number * variance
    typical = product.sum() / max(possible.sum(), 1e-12)
    prior = _CELLS_FOR_RELIABILITY * max(possible.sum() / number.sum(), 1e-12)
    return np.asarray(np.clip((product + prior * typical) / (possible + prior), 0.0, 1.0))
