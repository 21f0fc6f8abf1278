"""The votes of the humans, or of one judge: log-likelihood of their scores, with gradient and Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.inference.curvature import DenseCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, LOGISTIC

# Standard deviations of the priors on the tie parameter θ and on the side effect β.
_TIE_SCALE, _SIDE_SCALE = 3.0, 1.0
# Sides tell apart from items if at least this share of the variation of a side effect is not explained by items.
_MIXED_SIDES = 0.5


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of one kind of annotator, one row per pair in the order shown and outcome.

    Parameters
    ----------
    size : int
        Number of items.
    left, right : array of int
        The items of each row.
    outcome : array of float
        1 if left won, −1 if right won, 0 for a tie.
    weight : array of float
        How often.
    ties : {"davidson", "half"}
        How ties count.
    side : bool
        Whether to estimate a preference for the left side.
    """

    size: int
    left: IntArray
    right: IntArray
    outcome: FloatArray
    weight: FloatArray
    ties: str
    side: bool

    @classmethod
    def of(cls, comparisons: Comparisons, rows: AnyArray, ties: str, side: bool) -> Votes:
        """Count the votes of some rows."""
        size = len(comparisons.items)
        chosen = rows & (comparisons.outcome != 0) if ties == "drop" else rows
        outcome = comparisons.outcome[chosen].astype(np.int64)
        cell = (comparisons.left[chosen].astype(np.int64) * size + comparisons.right[chosen]) * 3 + outcome + 1
        cells, place = np.unique(cell, return_inverse=True)
        weight = np.bincount(place, comparisons.weights[chosen], len(cells)).astype(np.float64)
        pair = cells // 3
        found = cls(size, pair // size, pair % size, (cells % 3 - 1).astype(np.float64), weight, ties, side=False)
        mixed = side and comparisons.positions_known and found._sides_are_mixed()
        return cls(size, found.left, found.right, found.outcome, weight, ties, side=mixed)

    @cached_property
    def total(self) -> float:
        """Number of votes, weighted."""
        return float(self.weight.sum())

    @property
    def formula(self) -> int:
        return DAVIDSON if self.ties == "davidson" and bool(np.any(self.outcome == 0)) else LOGISTIC

    @property
    def has_tie(self) -> bool:
        """Whether the parameters end with θ, before β."""
        return self.formula == DAVIDSON

    @property
    def start(self) -> FloatArray:
        """Starting values: equal scores, θ at the share of ties, no side effect."""
        x = np.zeros(self.size + self.has_tie + self.side)
        if self.has_tie:
            share = float(np.clip(self.weight[self.outcome == 0].sum() / self.total, 0.01, 0.99))
            x[self.size] = np.log(2 * share / (1 - share))
        return x

    def tie(self, x: FloatArray) -> float:
        return float(x[self.size]) if self.has_tie else 0.0

    def log_likelihood(self, x: FloatArray) -> float:
        return float(self.weight @ FORMULAS[self.formula](self._margin(x), self.outcome, self.tie(x))[0])

    def objective(self, x: FloatArray, precision: FloatArray) -> Evaluation:
        """Log posterior at x = (scores, θ, β), with the precision matrix of the normal prior on scores."""
        size, extra = self.size, len(x) - self.size
        parts = FORMULAS[self.formula](self._margin(x), self.outcome, self.tie(x))
        value, gradient_term, curvature, tie_gradient, cross, tie_curvature = (self.weight * part for part in parts)
        scores, prior = x[:size], precision @ x[:size]
        gradient, matrix = np.zeros(len(x)), np.zeros((len(x), len(x)))
        gradient[:size] = self._against(gradient_term) - prior
        matrix[:size, :size] = self._laplacian(curvature) + precision
        # −∂²/∂s∂β and −∂²/∂s∂θ are sums over rows of the same derivatives of the margin
        borders = ([cross] if self.has_tie else []) + ([curvature] if self.side else [])
        for n, border in enumerate(borders, start=size):
            matrix[:size, n] = matrix[n, :size] = self._against(border)
        if self.has_tie:
            gradient[size], matrix[size, size] = tie_gradient.sum(), tie_curvature.sum()
        if self.side:
            gradient[-1], matrix[-1, -1] = gradient_term.sum(), curvature.sum()
        if extra == 2:
            matrix[-1, -2] = matrix[-2, -1] = cross.sum()
        weak = np.array([_TIE_SCALE**-2] * self.has_tie + [_SIDE_SCALE**-2] * self.side)
        gradient[size:] -= weak * x[size:]
        matrix.flat[size * (len(x) + 1) :: len(x) + 1] += weak
        log_prior = -0.5 * (float(scores @ prior) + float(weak @ x[size:] ** 2))
        return Evaluation(float(value.sum()) + log_prior, gradient, DenseCurvature(matrix))

    def _margin(self, x: FloatArray) -> FloatArray:
        return np.asarray(x[self.left] - x[self.right] + (x[-1] if self.side else 0.0))

    def _against(self, column: FloatArray) -> FloatArray:
        """Sum a column over the rows of each item, positive on the left and negative on the right."""
        return np.asarray(
            np.bincount(self.left, column, self.size) - np.bincount(self.right, column, self.size), np.float64
        )

    def _laplacian(self, column: FloatArray) -> FloatArray:
        """Sum of c (e_left − e_right)(e_left − e_right)ᵀ over the rows."""
        off = np.bincount(self.left * self.size + self.right, column, self.size**2).reshape(self.size, self.size)
        matrix = -(off + off.T)
        matrix[np.diag_indices(self.size)] = -matrix.sum(axis=1)
        return np.asarray(matrix)

    def _sides_are_mixed(self) -> bool:
        """Whether a side effect is distinct from scores: not if one system was always shown on the left."""
        if not len(self.left):
            return False
        against = self._against(self.weight)
        explained = float(against @ np.linalg.lstsq(self._laplacian(self.weight), against, rcond=1e-9)[0])
        return explained < (1 - _MIXED_SIDES) * self.total
