"""Plackett-Luce model (Plackett 1975, Luce 1959) of lists, top-k lists and best-of-a-set choices (Crowd-BT eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines import ShardedData
from crowdrank.engines.local import limit_blas_threads
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
from crowdrank.models.lists import plackett_luce_likelihood as formulas
from crowdrank.models.lists.plackett_luce_likelihood import ListLogLikelihood, RankedLists
from crowdrank.models.pairwise.likelihood import gaussian
from crowdrank.results import Convergence, Ranking, Uncertainty

# Items up to which Newton steps factor the dense Hessian; above, they use conjugate gradients.
_LARGEST_FACTORED = 300
# Items up to which the covariance is computed by inversion; above, draws are solved for one by one.
_LARGEST_INVERTED = 2_000
_SOLVED_DRAWS = 128


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(Model):
    """Scores that maximise the likelihood of whole lists, with each next item chosen ∝ exp(score).

    Parameters
    ----------
    prior_scale : float or None, default 3.0
        Standard deviation of the normal prior on scores. None gives plain maximum likelihood, which needs connected
        judgments in which no item only wins or only loses.
    tolerance : float, default 1e-4
        Stop when √(gᵀH⁻¹g), the distance to the optimum in standard errors, is below this.
    max_steps : int, default 100
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    P(list) = Πⱼ exp(sⱼ) / Σ_{k not above j} exp(sₖ), over all places but the last. Items tied on the last place were
    left unordered, which makes top-k lists and choices of the best item special cases. Items tied higher up share one
    denominator (Breslow 1974). Uncertainty is the normal approximation at the optimum.

    References: Luce (1959), Individual choice behavior; Plackett (1975), The analysis of permutations.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> PlackettLuce().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    distributable: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    tolerance: float = 1e-4
    max_steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if self.prior_scale is not None and not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, or None for no prior, got {self.prior_scale}.")
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        self._check_connected(rankings)
        held = options.engine.load(RankedLists(rankings.item, rankings.place, rankings.offsets, rankings.weights))
        objective = LogPosterior(held, rankings.items, self.prior_scale)
        found = maximize(objective, np.zeros(len(rankings.items)), tolerance=self.tolerance, max_steps=self.max_steps)
        curvature = found.evaluation.curvature
        assert isinstance(curvature, NegativeHessian)
        return build_ranking(
            self,
            rankings,
            found.parameters,
            log_likelihood=curvature.likelihood.value,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=lambda: curvature.uncertainty(self.seed),
        )

    def _check_connected(self, rankings: Rankings) -> None:
        if not np.any(rankings.place):
            raise DataError("The lists order no two items, so there is nothing to rank.")
        check_connected(diagnose(rankings), has_prior=self.prior_scale is not None)


@dataclass(frozen=True)
class NegativeHessian:
    """Negative Hessian of the log posterior at some scores; `prior` is the prior's part of the diagonal."""

    held: ShardedData
    items: Items
    scores: FloatArray
    likelihood: ListLogLikelihood
    prior: FloatArray

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if len(self.scores) <= _LARGEST_FACTORED:
            return DenseCurvature(self._matrix()).solve(vector)
        return MatrixFreeCurvature(self._product, self.likelihood.hessian_diag + self.prior).solve(vector, tolerance)

    def _matrix(self) -> FloatArray:
        (matrix,) = self.held.sum(formulas.hessian, self.scores)
        matrix[np.diag_indices(len(self.scores))] += self.prior
        if not self.prior.any():
            # Without a prior the Hessian is singular along a common shift of a query's scores; pin the query means.
            same_query = self.items.query[:, None] == self.items.query
            matrix += same_query * (self.likelihood.hessian_diag.mean() / len(self.scores))
        return np.asarray(matrix)

    def _product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self.held.sum(formulas.hessian_product, self.scores, vector)[0] + self.prior * vector)

    def uncertainty(self, seed: int) -> Uncertainty:
        """Normal approximation of the posterior of the scores."""
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
        """One draw: if z has covariance H, then H⁻¹z has covariance H⁻¹."""
        (noise,) = self.held.sum(formulas.gradient_noise, self.scores, int(rng.integers(1 << 62)))
        noise = noise + np.sqrt(self.prior) * rng.standard_normal(len(noise))
        solved: FloatArray = conjugate_gradients(self._product, noise, self.likelihood.hessian_diag + self.prior, 1e-3)
        return solved


@dataclass(frozen=True)
class LogPosterior:
    """log P(lists | scores) + log prior, as a function of the scores."""

    held: ShardedData
    items: Items
    prior_scale: float | None

    def __call__(self, scores: FloatArray) -> Evaluation:
        likelihood = self.held.sum(formulas.log_likelihood, scores)
        value, gradient, precision = likelihood.value, likelihood.gradient, np.zeros(len(scores))
        if self.prior_scale is not None:
            prior = gaussian(scores, self.prior_scale)
            value, gradient, precision = value + prior.value, gradient + prior.gradient, prior.curvature
        return Evaluation(value, gradient, NegativeHessian(self.held, self.items, scores, likelihood, precision))
