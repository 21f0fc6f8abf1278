"""Plackett 1975, Luce 1959: lists drawn from the top, and best-of-a-set choices (Crowd-BT eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines import ShardedData
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import DenseCurvature, MatrixFreeCurvature, conjugate_gradients
from crowdrank.inference.laplace import draw_from_covariance
from crowdrank.inference.newton import Evaluation, maximize
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    check_solver,
    diagnose,
    require_kind,
)
from crowdrank.models.lists import plackett_luce_likelihood as likelihood
from crowdrank.models.lists.plackett_luce_likelihood import Lists, ListSlopes
from crowdrank.models.score_priors import gaussian
from crowdrank.results import Convergence, Ranking, Uncertainty

_LARGEST_FACTORED = 300
_LARGEST_INVERTED = 2_000
_SOLVED_DRAWS = 128


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(Model):
    """Scores that make whole lists likeliest: the next item is drawn ∝ exp(score).

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> PlackettLuce().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    distributable: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    """Standard deviation of the normal prior on scores; None for plain maximum likelihood."""
    tolerance: float = 1e-4
    """Stop when no combination of scores is further than this from the optimum, in standard errors."""
    max_steps: int = 100
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        if self.prior_scale is not None and not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, or None for no prior, got {self.prior_scale}.")
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        self._check_connected(rankings)
        held = options.engine.load(Lists(rankings.item, rankings.place, rankings.offsets, rankings.weights))
        objective = ListObjective(held, rankings.items, self.prior_scale)
        found = maximize(objective, np.zeros(len(rankings.items)), tolerance=self.tolerance, max_steps=self.max_steps)
        curvature = found.evaluation.curvature
        assert isinstance(curvature, ListCurvature)
        return build_ranking(
            self,
            rankings,
            found.parameters,
            log_likelihood=curvature.slopes.value,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=lambda: curvature.measure(self.seed),
        )

    def _check_connected(self, rankings: Rankings) -> None:
        if not np.any(rankings.place):
            raise DataError("These lists order no two items: nothing can be ranked.")
        check_connected(diagnose(rankings), has_prior=self.prior_scale is not None)


@dataclass(frozen=True)
class ListCurvature:
    """Curvature of the lists' likelihood and the prior at some scores."""

    held: ShardedData
    items: Items
    scores: FloatArray
    slopes: ListSlopes
    prior: FloatArray

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if len(self.scores) <= _LARGEST_FACTORED:
            return DenseCurvature(self._matrix()).solve(vector)
        return MatrixFreeCurvature(self._product, self.slopes.diagonal + self.prior).solve(vector, tolerance)

    def _matrix(self) -> FloatArray:
        (matrix,) = self.held.sum(likelihood.matrix, self.scores)
        matrix[np.diag_indices(len(self.scores))] += self.prior
        if not self.prior.any():
            together = self.items.query[:, None] == self.items.query
            matrix += together * (self.slopes.diagonal.mean() / len(self.scores))
        return np.asarray(matrix)

    def _product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self.held.sum(likelihood.product, self.scores, vector)[0] + self.prior * vector)

    def measure(self, seed: int) -> Uncertainty:
        size = len(self.scores)
        if size <= _LARGEST_INVERTED:
            with limit_blas_threads(size):
                covariance = np.asarray(np.linalg.inv(self._matrix()), np.float64)
            error, drawn = draw_from_covariance(covariance, self.items.centre, seed)
        else:
            rng = np.random.default_rng(seed)
            columns = [self._solve_for_noise(rng) for _ in range(_SOLVED_DRAWS)]
            drawn = np.array(columns)
            error = self.items.centre(drawn).std(axis=0)
        return Uncertainty(self.items.centre(self.scores + drawn), error, "curvature at the optimum")

    def _solve_for_noise(self, rng: np.random.Generator) -> FloatArray:
        """Noise with the curvature as its covariance, solved for, has the inverse as its covariance."""
        (shaken,) = self.held.sum(likelihood.noise, self.scores, int(rng.integers(1 << 62)))
        shaken = shaken + np.sqrt(self.prior) * rng.standard_normal(len(shaken))
        found: FloatArray = conjugate_gradients(self._product, shaken, self.slopes.diagonal + self.prior, 1e-3)
        return found


@dataclass(frozen=True)
class ListObjective:
    """log P(lists | scores) + log prior."""

    held: ShardedData
    items: Items
    prior_scale: float | None

    def __call__(self, scores: FloatArray) -> Evaluation:
        slopes = self.held.sum(likelihood.slopes, scores)
        value, gradient, bend = slopes.value, slopes.gradient, np.zeros(len(scores))
        if self.prior_scale is not None:
            prior = gaussian(scores, self.prior_scale)
            value, gradient, bend = value + prior.value, gradient + prior.gradient, prior.curvature
        return Evaluation(value, gradient, ListCurvature(self.held, self.items, scores, slopes, bend))
