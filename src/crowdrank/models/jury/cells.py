"""The answers of an annotator to a pair as one cell: what it answered, how often, and whether it agrees with itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons

# Cells seen from both sides that a judge needs before its side effect is believed by half.
_CELLS_FOR_SIDE = 5.0
# Repeated cells after which a judge's own reliability counts as much as that of all judges.
_CELLS_FOR_RELIABILITY = 20.0


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
    balanced : array of bool
        Whether the pair was shown in both orders, equally often.
    first, second : array of int
        The items of each pair, the lower code first.
    reliability : array of float
        Correlation between two answers of one annotator on the same pair, without the side effect; NaN if nobody
        answered a pair twice.
    side : array of float
        Side effect of each annotator: 1 if it always chooses left, −1 if right, 0 if the side does not matter.
    mean_square : array of float
        Mean square of an annotator's answers, without the side effect.
    n_annotators : int
        Number of annotators.
    """

    annotator: IntArray
    pair: IntArray
    answer: FloatArray
    count: FloatArray
    balanced: BoolArray
    first: IntArray
    second: IntArray
    reliability: FloatArray
    side: FloatArray
    mean_square: FloatArray
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
        return np.asarray(np.bincount(cell, values, len(codes)), float)

    shown = [total(weight * (order == side)) for side in (1, -1)]
    mean = [
        total(weight * answer * (order == side)) / np.maximum(n, 1e-300) for side, n in zip((1, -1), shown, strict=True)
    ]
    both = (shown[0] > 0) & (shown[1] > 0)
    seen = np.bincount(owner, both, n_annotators)
    lean = np.bincount(owner, np.where(both, (mean[0] - mean[1]) / 2, 0.0), n_annotators)
    side = lean / (seen + _CELLS_FOR_SIDE)
    alone = np.where(shown[0] > 0, mean[0] - side[owner], mean[1] + side[owner])
    corrected = answer - side[who] * order
    count, squares = total(weight), total(weight * corrected**2)
    answers = np.bincount(owner, count, n_annotators)
    mean_square = np.bincount(owner, squares, n_annotators) / np.maximum(answers, 1e-300)
    return Cells(
        annotator=owner,
        pair=codes % len(pairs),
        answer=np.clip(np.where(both, (mean[0] + mean[1]) / 2, alone), -1.0, 1.0),
        count=count,
        balanced=both & (np.abs(shown[0] - shown[1]) < 1e-6),
        first=pairs // size,
        second=pairs % size,
        reliability=_reliability(count, total(weight * corrected), squares, owner, mean_square),
        side=side,
        mean_square=mean_square,
        n_annotators=n_annotators,
    )


def _reliability(
    count: FloatArray, sums: FloatArray, squares: FloatArray, owner: IntArray, mean_square: FloatArray
) -> FloatArray:
    """Mean product of two answers to one pair over the mean square of an answer, per annotator, shrunk to the mean."""
    repeated = count > 1 + 1e-6  # weights that sum to one within rounding are one answer
    judges = len(mean_square)
    if not repeated.any():
        return np.full(judges, np.nan)
    safe = np.maximum(count, 1.0)
    product = np.bincount(owner, np.where(repeated, (sums**2 - squares) / safe, 0.0), judges)
    number = np.bincount(owner, np.where(repeated, count - 1, 0.0), judges)
    possible = number * mean_square
    typical = product.sum() / max(possible.sum(), 1e-12)
    prior = _CELLS_FOR_RELIABILITY * max(possible.sum() / number.sum(), 1e-12)
    return np.asarray(np.clip((product + prior * typical) / (possible + prior), 0.0, 1.0))
