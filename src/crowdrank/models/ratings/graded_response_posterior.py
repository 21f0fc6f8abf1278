"""Posterior of the graded response model: layout of the parameters, log posterior and Laplace approximation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Ratings
from crowdrank.engines import ShardedData
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import DataError
from crowdrank.inference.curvature import DAMPINGS, DampedCurvature
from crowdrank.inference.laplace import LaplaceComponent, draw_from_covariance
from crowdrank.inference.newton import Evaluation, OptimizeResult
from crowdrank.models.ratings import graded_response_likelihood as formulas
from crowdrank.models.ratings.dawid_skene import GradeClasses
from crowdrank.models.ratings.graded_response_likelihood import RatingShard, ordering_probability
from crowdrank.models.ratings.shrinkage import normal_uncertainty
from crowdrank.results import Uncertainty

# Parameters up to which Newton steps factor the dense Hessian; above, they use conjugate gradients.
_LARGEST_FACTORED = 300
# Items up to which the covariance of the scores is computed by inversion.
_LARGEST_INVERTED = 2_000
# Size of the score × other-parameter block up to which standard errors account for unknown annotators and thresholds.
_MAX_CELLS = 20_000_000
# Standard deviation of the prior on thresholds: weak, because many grades inform each threshold.
_THRESHOLD_SCALE = 10.0


class PriorScales(NamedTuple):
    """Standard deviations of the priors on scores, leniency, log stretch and discrimination."""

    score: float
    leniency: float
    stretch: float
    discrimination: float


@dataclass(frozen=True)
class ParameterLayout:
    """Layout of the parameter vector: scores, then leniency, stretch and discrimination − 1, then thresholds.

    Parameters
    ----------
    shard : RatingShard
        The ratings with the positions of their parameters.
    items, annotators : int
        Numbers of items and annotators.
    thresholds : array
        Starting values of the thresholds: the logits of the cumulative class frequencies.
    """

    shard: RatingShard
    items: int
    annotators: int
    thresholds: FloatArray

    @classmethod
    def of(cls, ratings: Ratings, classes: GradeClasses) -> ParameterLayout:
        items, annotators = len(ratings.items), max(1, len(ratings.annotators))
        query = ratings.items.query[ratings.item] if classes.per_query else np.zeros(len(ratings), np.int64)
        # The thresholds of a scale are adjacent, one below each class in use except the lowest.
        cells, code = np.unique(query * np.int64(classes.size) + classes.code, return_inverse=True)
        scale = cells // classes.size
        is_lowest = np.append(True, scale[1:] != scale[:-1])
        if is_lowest.all():
            raise DataError("All grades are equal, so they do not order any two items.")
        weight = np.bincount(code, ratings.weights)
        first = items + 3 * annotators
        threshold = first + np.cumsum(~is_lowest) - 1
        is_highest = np.append(is_lowest[1:], True)
        who = np.zeros(len(ratings), np.int64) if ratings.annotator is None else ratings.annotator.astype(np.int64)
        shard = RatingShard(
            ratings.item.astype(np.int64),
            items + who,
            np.where(is_lowest, first, threshold)[code],
            np.where(is_highest, first, threshold + 1)[code],
            is_lowest[code],
            is_highest[code],
            np.asarray(ratings.weights),
            annotators,
        )
        below = np.cumsum(weight) - weight
        below -= np.maximum.accumulate(np.where(is_lowest, below, 0.0))
        fraction = (below / np.bincount(scale, weight)[scale])[~is_lowest]
        return cls(shard, items, annotators, np.log(fraction / (1 - fraction)))

    @property
    def start(self) -> FloatArray:
        """Starting point: scores 0, identical annotators."""
        return np.concatenate((np.zeros(self.items + 3 * self.annotators), self.thresholds))

    def discrimination(self, x: FloatArray) -> FloatArray:
        """α of the annotators."""
        return 1.0 + x[self.items + 2 * self.annotators : self.items + 3 * self.annotators]

    def with_opposite_sign(self, x: FloatArray) -> FloatArray:
        """Scores and discriminations with opposite signs: the same likelihood, but another prior density."""
        flipped = x.copy()
        flipped[: self.items] *= -1.0
        flipped[self.items + 2 * self.annotators : self.items + 3 * self.annotators] = -self.discrimination(x) - 1.0
        return flipped

    def prior_scales(self, scales: PriorScales) -> FloatArray:
        """Prior standard deviation of each parameter."""
        return np.concatenate(
            (
                np.full(self.items, scales.score),
                np.repeat(scales[1:], self.annotators),
                np.full(len(self.thresholds), _THRESHOLD_SCALE),
            )
        )


@dataclass(frozen=True)
class NegativeHessian:
    """Negative Hessian of the log posterior at `x`.

    Parameters
    ----------
    held : Held
        The shards of ratings.
    x : array
        The parameters.
    log_likelihood : float
        Log-likelihood of the grades at `x`, without the priors.
    prior : array
        Prior precision of each parameter.
    """

    held: ShardedData
    x: FloatArray
    log_likelihood: float
    prior: FloatArray

    @cached_property
    def _matrix_and_diagonal(self) -> tuple[Any, FloatArray]:
        """The sparse matrix, and the diagonal of its positive semi-definite part."""
        from scipy.sparse import diags_array

        matrix, diagonal = self.held.sum(formulas.hessian, self.x)
        return (matrix + diags_array(self.prior)).tocsr(), diagonal + self.prior

    @property
    def matrix(self) -> Any:
        return self._matrix_and_diagonal[0]

    def damped(self, damping: float) -> Any:
        """The matrix with an increased diagonal, for points where it is not positive definite."""
        from scipy.sparse import diags_array

        matrix, diagonal = self._matrix_and_diagonal
        return matrix + diags_array(damping * diagonal)

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        matrix, diagonal = self._matrix_and_diagonal
        small = len(vector) <= _LARGEST_FACTORED
        return DampedCurvature(lambda v: matrix @ v, diagonal, matrix.toarray if small else None).solve(
            vector, tolerance
        )


@dataclass(frozen=True)
class LogPosterior:
    """log P(grades | parameters) + log prior, as a function of the parameter vector."""

    held: ShardedData
    layout: ParameterLayout
    scales: PriorScales

    @cached_property
    def _precision(self) -> FloatArray:
        return self.layout.prior_scales(self.scales) ** -2.0

    def __call__(self, x: FloatArray) -> Evaluation:
        value, gradient = self.held.sum(formulas.log_likelihood, x)
        prior_gradient = self._precision * x
        hessian = NegativeHessian(self.held, x, value, self._precision)
        return Evaluation(value - 0.5 * float(x @ prior_gradient), gradient - prior_gradient, hessian)


@dataclass(frozen=True)
class GradedResponseLaplace:
    """Normal approximation of the posterior at its mode, marginal for items and annotators."""

    optimum: OptimizeResult
    layout: ParameterLayout
    ratings: Ratings
    seed: int

    @property
    def hessian(self) -> NegativeHessian:
        assert isinstance(self.optimum.evaluation.curvature, NegativeHessian)
        return self.optimum.evaluation.curvature

    @property
    def scores(self) -> FloatArray:
        return self.optimum.parameters[: self.layout.items]

    def variances(self, marginal: bool = True) -> tuple[FloatArray, FloatArray]:
        """Variances of the scores and of the discriminations; given all other parameters unless `marginal`."""
        if marginal and self.is_joint:
            return np.asarray(np.diag(self._marginal[0])), self.annotator_errors[2] ** 2
        people = self.layout.annotators
        return 1.0 / self.hessian.matrix.diagonal()[: self.layout.items], self._conditional_variances[2 * people :]

    @property
    def annotator_errors(self) -> FloatArray:
        """Standard errors of leniency, log stretch and discrimination, as rows."""
        errors = np.sqrt(self._conditional_variances + (self._from_scores if self.is_joint else 0.0))
        return np.asarray(errors.reshape(3, self.layout.annotators))

    def component(self, log_scale: float, log_width: float) -> LaplaceComponent:
        """This approximation as one of a mixture over the logarithm of the scores' prior scale."""
        covariance, _, log_determinant = self._marginal
        evidence = self.optimum.evaluation.value - self.layout.items * log_scale - 0.5 * log_determinant
        centre = self.ratings.items.centre
        centred = centre(centre(covariance).T)

        def draw_around(rng: np.random.Generator, count: int) -> FloatArray:
            with limit_blas_threads(self.layout.items):
                return centre(rng.standard_normal((count, self.layout.items)) @ np.linalg.cholesky(covariance).T)

        variance = np.maximum(np.diag(centred), 0.0)
        return LaplaceComponent(evidence + log_width, centre(self.scores), variance, draw_around)

    @property
    def is_joint(self) -> bool:
        """Whether the joint covariance is small enough to compute."""
        items, others = self.layout.items, len(self.optimum.parameters) - self.layout.items
        return items <= _LARGEST_INVERTED and items * others <= _MAX_CELLS

    @cached_property
    def _marginal(self) -> tuple[FloatArray, FloatArray, float]:
        """Covariance of the scores, how the other parameters depend on them, and log determinant of the Hessian.

        The score block of the Hessian is diagonal, since a grade involves one item. The other parameters are eliminated
        by a Schur complement.
        """
        from scipy.sparse.linalg import splu

        items = self.layout.items
        for damping in DAMPINGS:
            matrix = self.hessian.damped(damping)
            cross = matrix[items:, :items]
            others = splu(matrix[items:, items:].tocsc())
            solved = others.solve(cross.toarray())
            schur = matrix[:items, :items].toarray() - cross.T @ solved
            with limit_blas_threads(items), suppress(np.linalg.LinAlgError):
                root = np.linalg.cholesky(schur)  # fails unless the matrix is positive definite
                break
        with limit_blas_threads(items):
            covariance = np.linalg.inv(schur)
        log_determinant = float(np.sum(np.log(np.abs(others.U.diagonal()))) + 2.0 * np.sum(np.log(np.diag(root))))
        return covariance, solved, log_determinant

    @cached_property
    def _from_scores(self) -> FloatArray:
        """Variances of the annotators' parameters that come from those of the scores."""
        covariance, solved, _ = self._marginal
        solved = solved[: 3 * self.layout.annotators]
        return np.asarray(np.sum((solved @ covariance) * solved, axis=1))

    @property
    def _conditional_variances(self) -> FloatArray:
        """Variances of the annotators' parameters given scores and thresholds: one 3 × 3 block per annotator."""
        items, people = self.layout.items, self.layout.annotators
        part = self.hessian.matrix[items : items + 3 * people, items : items + 3 * people]
        blocks = np.empty((people, 3, 3))
        for a in range(3):
            for b in range(a, 3):
                blocks[:, a, b] = blocks[:, b, a] = part.diagonal((b - a) * people)[a * people : (a + 1) * people]
        return np.asarray(np.linalg.inv(blocks)[:, range(3), range(3)].T.ravel())

    def uncertainty(self) -> Uncertainty:
        """Standard errors and joint draws of the scores."""
        centre = self.ratings.items.centre
        if self.is_joint:
            error, noise = draw_from_covariance(self._marginal[0], centre, self.seed)
            method = "Laplace approximation of scores and annotators jointly"
            return Uncertainty(centre(self.scores) + noise, error, method)
        error = 1.0 / np.sqrt(self.hessian.matrix.diagonal()[: self.layout.items])
        method = "Laplace approximation of the scores, given the annotators"
        return normal_uncertainty(centre(self.scores), error, method, self.seed)

    def estimates(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Quality and leniency of the annotators, with 95 % intervals.

        Quality is the probability of ordering two items correctly whose scores differ by one standard deviation.
        """
        items, people = self.layout.items, self.layout.annotators
        leniency, _, discrimination = self.optimum.parameters[items : items + 3 * people].reshape(3, people)
        leniency_width, _, discrimination_width = 1.96 * self.annotator_errors
        gap = float(np.std(self.scores))
        quality, low, high = (
            ordering_probability(gap * (1 + discrimination + sign * discrimination_width)) for sign in (0, -1, 1)
        )
        return {
            "quality": (quality, low, high),
            "leniency": (leniency, leniency - leniency_width, leniency + leniency_width),
        }
