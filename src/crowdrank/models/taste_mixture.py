"""Mixture of Bradley–Terry rankings over annotators: each follows one of K rankings, with a quality of their own.

An answer x is +1 for left and −1 for right. An annotator who follows ranking k with the slope c = 2η − 1 answers with
P(x) = ½(1 + c·x·a), a = tanh(Δ/2), where Δ is the difference of the two scores in ranking k. The slope has a
distribution on a grid that is learnt with the scores, so random and reversed annotators need no ranking of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.inference.curvature import DenseCurvature, MatrixFreeCurvature

SLOPES = np.array([-0.97, -0.5, 0.0, 0.5, 0.97])
"""Grid of 2η − 1."""
_PRIOR_VARIANCE = 4.0
"""Of the scores. Only differences in fit matter here, so it is not learnt."""
_MAX_FACTORED = 250
_MAX_STEP = 2.0
_TOLERANCE = 1e-3
"""Stop when the log-likelihood grows by less than this per annotator."""


@dataclass(frozen=True)
class AnswerTable:
    """Decided answers with dense codes of annotators.

    Parameters
    ----------
    left, right : array of int
        The two items of each answer.
    answer : array of float
        +1 for left, −1 for right.
    annotator : array of int
        Annotator of each answer.
    n_items, n_annotators : int
        Number of items and of annotators.
    """

    left: IntArray
    right: IntArray
    answer: FloatArray
    annotator: IntArray
    n_items: int
    n_annotators: int

    def __len__(self) -> int:
        return len(self.answer)

    def take(self, rows: IntArray | BoolArray) -> AnswerTable:
        return AnswerTable(
            self.left[rows],
            self.right[rows],
            self.answer[rows],
            self.annotator[rows],
            self.n_items,
            self.n_annotators,
        )

    def by_annotator(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.annotator, values, self.n_annotators).astype(np.float64)

    def expected(self, scores: FloatArray) -> FloatArray:
        """Mean of each answer for an annotator of quality 1."""
        return np.asarray(np.tanh((scores[self.left] - scores[self.right]) / 2))

    def log_likelihoods(self, scores: FloatArray) -> FloatArray:
        """Log-likelihood of each annotator's answers, annotators × rankings × slopes; `scores` is rankings × items."""
        found = np.empty((self.n_annotators, len(scores), len(SLOPES)))
        for k, ranking in enumerate(scores):
            agreement = self.answer * self.expected(ranking)
            for g, slope in enumerate(SLOPES):
                found[:, k, g] = self.by_annotator(np.log1p(slope * agreement))
        found -= np.log(2) * self.by_annotator(np.ones(len(self)))[:, None, None]
        return found


@dataclass(frozen=True)
class TasteMixture:
    """A fitted mixture.

    Parameters
    ----------
    scores : array of float, rankings × items
        Scores of the items in each ranking.
    log_share : array of float, rankings × slopes
        Log of the share of annotators with each ranking and slope.
    membership : array of float, annotators × rankings × slopes
        Posterior probability of each ranking and slope.
    log_likelihood : float
        At the estimate.
    """

    scores: FloatArray
    log_share: FloatArray
    membership: FloatArray
    log_likelihood: float

    def predict(self, held_out: AnswerTable) -> FloatArray:
        """Log predictive probability of each annotator's held-out answers, given their other answers."""
        joint = np.log(np.maximum(self.membership, 1e-300)) + held_out.log_likelihoods(self.scores)
        return _log_sum(joint)


def fit_mixture(
    table: AnswerTable, start: FloatArray, scores: FloatArray | None = None, max_steps: int = 40
) -> TasteMixture:
    """Fit by generalised EM: one Fisher scoring step on the scores for each update of the memberships.

    Parameters
    ----------
    table : AnswerTable
        The answers.
    start : array of float, annotators × rankings
        Memberships to start from.
    scores : array of float, rankings × items, optional
        Scores to start from; zero by default.
    max_steps : int, default 40
        Largest number of EM steps.
    """
    rankings = start.shape[1]
    # The first steps take everyone as nearly honest: the sign of a ranking follows its first members.
    membership = start[:, :, None] * np.array([0.0, 0.0, 0.1, 0.3, 0.6])
    scores = np.zeros((rankings, table.n_items)) if scores is None else scores.copy()
    for _ in range(3 if not scores.any() else 0):
        scores = np.array([_scoring_step(table, scores[k], membership[:, k]) for k in range(rankings)])
    value = -np.inf
    for _ in range(max_steps):
        log_share = _log_shares(membership)
        joint = log_share + table.log_likelihoods(scores)
        total = _log_sum(joint)
        membership = np.exp(joint - total[:, None, None])
        before, value = value, float(total.sum()) - float(np.sum(scores**2)) / (2 * _PRIOR_VARIANCE)
        if value - before < _TOLERANCE * table.n_annotators:
            break
        scores = np.array([_scoring_step(table, scores[k], membership[:, k]) for k in range(rankings)])
    return TasteMixture(scores, log_share, membership, float(total.sum()))


def _log_shares(membership: FloatArray) -> FloatArray:
    """Shares with one more annotator spread evenly, so that none is zero."""
    count = membership.sum(axis=0) + 1 / membership[0].size
    return np.asarray(np.log(count / count.sum()))


def _log_sum(joint: FloatArray) -> FloatArray:
    top = joint.max(axis=(1, 2))
    return np.asarray(top + np.log(np.exp(joint - top[:, None, None]).sum(axis=(1, 2))))


def _scoring_step(table: AnswerTable, scores: FloatArray, membership: FloatArray) -> FloatArray:
    """One step of Fisher scoring on the scores of one ranking; `membership` is annotators × slopes."""
    expected = table.expected(scores)
    agreement = table.answer * expected
    variance = 1 - expected**2
    gain, information = np.zeros(len(table)), np.full(len(table), 1e-3)
    for g, slope in enumerate(SLOPES):
        if slope == 0 or not membership[:, g].any():
            continue
        share = membership[table.annotator, g] * slope
        gain += share / (1 + slope * agreement)
        information += share * slope * variance / (1 - (slope * expected) ** 2)
    force = gain * table.answer * variance / 2
    gradient = np.bincount(table.left, force, table.n_items) - np.bincount(table.right, force, table.n_items)
    step = _solve(table, information * variance / 4 + 1e-9, gradient - scores / _PRIOR_VARIANCE)
    return np.asarray(scores + np.clip(step, -_MAX_STEP, _MAX_STEP))


def _solve(table: AnswerTable, weight: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve with the weighted Laplacian of the pairs plus the prior's precision."""
    size, left, right = table.n_items, table.left, table.right
    diagonal = np.full(size, 1 / _PRIOR_VARIANCE)
    diagonal += np.bincount(left, weight, size) + np.bincount(right, weight, size)
    if size <= _MAX_FACTORED:
        matrix = np.bincount(left * size + right, -weight, size * size).astype(np.float64).reshape(size, size)
        matrix += matrix.T
        matrix.flat[:: size + 1] = diagonal
        return DenseCurvature(matrix).solve(gradient)

    def product(vector: FloatArray) -> FloatArray:
        flow = weight * (vector[left] - vector[right])
        return np.asarray(
            np.bincount(left, flow, size) - np.bincount(right, flow, size) + vector / _PRIOR_VARIANCE, np.float64
        )

    return MatrixFreeCurvature(product, diagonal).solve(gradient, 1e-2)
