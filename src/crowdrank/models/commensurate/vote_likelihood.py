"""The votes of the humans, or of one judge: log-likelihood of their scores, with gradient and Hessian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.data.features import POSITION, feature_columns, typical_size
from crowdrank.inference.curvature import DenseCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, LOGISTIC

# Standard deviations of the priors on the tie parameter θ and on effects β of the side and of features.
_TIE_SCALE, _EFFECT_SCALE = 3.0, 1.0
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
    covariates : array of float, rows × effects
        What favours the left item of each row: 1 for the side itself, and features in units of their typical size.
    effects : mapping of str to float
        Names of the covariates, with their units.
    """

    size: int
    left: IntArray
    right: IntArray
    outcome: FloatArray
    weight: FloatArray
    ties: str
    covariates: FloatArray
    effects: Mapping[str, float]

    @classmethod
    def of(cls, comparisons: Comparisons, rows: AnyArray, ties: str, side: bool, features: Sequence[str] = ()) -> Votes:
        """Count the votes of some rows; with features, each vote is a row."""
        size = len(comparisons.items)
        chosen = rows & (comparisons.outcome != 0) if ties == "drop" else rows
        outcome = comparisons.outcome[chosen].astype(np.int64)
        left, right = comparisons.left[chosen].astype(np.int64), comparisons.right[chosen].astype(np.int64)
        weight = comparisons.weights[chosen].astype(np.float64)
        columns, effects = {}, {}
        for name, column in feature_columns(comparisons, features).items():
            if np.any(here := column[chosen]):
                effects[name] = typical_size(here, weight)
                columns[name] = here / effects[name]
        if not columns:
            cells, place = np.unique((left * size + right) * 3 + outcome + 1, return_inverse=True)
            weight = np.bincount(place, weight, len(cells)).astype(np.float64)
            left, right, outcome = cells // 3 // size, cells // 3 % size, cells % 3 - 1
        if side and comparisons.positions_known and _sides_are_mixed(left, right, weight, size):
            columns, effects = {POSITION: np.ones(len(left)), **columns}, {POSITION: 1.0, **effects}
        covariates = np.stack(list(columns.values()), axis=1) if columns else np.zeros((len(left), 0))
        return cls(size, left, right, outcome.astype(np.float64), weight, ties, covariates, effects)

    @cached_property
    def total(self) -> float:
        """Number of votes, weighted."""
        return float(self.weight.sum())

    @property
    def formula(self) -> int:
        return DAVIDSON if self.ties == "davidson" and bool(np.any(self.outcome == 0)) else LOGISTIC

    @property
    def has_tie(self) -> bool:
        """Whether the parameters have θ, after the scores and before the effects."""
        return self.formula == DAVIDSON

    @property
    def start(self) -> FloatArray:
        """Starting values: equal scores, θ at the share of ties, no effects."""
        x = np.zeros(self.size + self.has_tie + len(self.effects))
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
        size, first = self.size, self.size + self.has_tie
        parts = FORMULAS[self.formula](self._margin(x), self.outcome, self.tie(x))
        value, gradient_term, curvature, tie_gradient, cross, tie_curvature = (self.weight * part for part in parts)
        scores, prior = x[:size], precision @ x[:size]
        gradient, matrix = np.zeros(len(x)), np.zeros((len(x), len(x)))
        gradient[:size] = _against(self.left, self.right, gradient_term, size) - prior
        matrix[:size, :size] = _laplacian(self.left, self.right, curvature, size) + precision
        # −∂²/∂s∂β and −∂²/∂s∂θ are sums over rows of the same derivatives of the margin
        borders = [cross] if self.has_tie else []
        borders += [curvature * column for column in self.covariates.T]
        for n, border in enumerate(borders, start=size):
            matrix[:size, n] = matrix[n, :size] = _against(self.left, self.right, border, size)
        if self.has_tie:
            gradient[size], matrix[size, size] = tie_gradient.sum(), tie_curvature.sum()
            matrix[first:, size] = matrix[size, first:] = self.covariates.T @ cross
        gradient[first:] = self.covariates.T @ gradient_term
        matrix[first:, first:] = self.covariates.T @ (curvature[:, None] * self.covariates)
        weak = np.array([_TIE_SCALE**-2] * self.has_tie + [_EFFECT_SCALE**-2] * len(self.effects))
        gradient[size:] -= weak * x[size:]
        matrix.flat[size * (len(x) + 1) :: len(x) + 1] += weak
        log_prior = -0.5 * (float(scores @ prior) + float(weak @ x[size:] ** 2))
        return Evaluation(float(value.sum()) + log_prior, gradient, DenseCurvature(matrix))

    def _margin(self, x: FloatArray) -> FloatArray:
        return np.asarray(x[self.left] - x[self.right] + self.covariates @ x[self.size + self.has_tie :])


def _against(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Sum a column over the rows of each item, positive on the left and negative on the right."""
    return np.asarray(np.bincount(left, column, size) - np.bincount(right, column, size), np.float64)


def _laplacian(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Sum of c (e_left − e_right)(e_left − e_right)ᵀ over the rows."""
    off = np.bincount(left * size + right, column, size**2).reshape(size, size)
    matrix = -(off + off.T)
    matrix[np.diag_indices(size)] = -matrix.sum(axis=1)
    return np.asarray(matrix)


def item_means(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Least-squares values fᵢ of items with column ≈ f_left − f_right: by how much a feature favours each item."""
    laplacian = _laplacian(left, right, np.ones(len(left)), size)
    return np.asarray(np.linalg.lstsq(laplacian, _against(left, right, column, size), rcond=1e-9)[0])


def _sides_are_mixed(left: IntArray, right: IntArray, weight: FloatArray, size: int) -> bool:
    """Whether a side effect is distinct from scores: not if one system was always shown on the left."""
    if not len(left):
        return False
    against = _against(left, right, weight, size)
    explained = float(against @ np.linalg.lstsq(_laplacian(left, right, weight, size), against, rcond=1e-9)[0])
    return explained < (1 - _MIXED_SIDES) * float(weight.sum())
