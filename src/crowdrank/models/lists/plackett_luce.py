"""Plackett-Luce model (Plackett 1975, Luce 1959) of lists, top-k lists and best-of-a-set choices (Crowd-BT eq. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines import ShardedData
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import DenseCurvature, MatrixFreeCurvature, conjugate_gradients
from crowdrank.inference.laplace import QuadraticExpansion, draw_from_covariance
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
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
_DRAWS = 1_000
# Learning the spread of the scores: where to start, and when to stop.
_FIRST_SCALE, _SCALE_TOLERANCE, _MAX_ROUNDS, _LOOSE = 1.0, 0.2, 8, 0.5


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(Model):
    """Scores that maximise the likelihood of whole lists, with each next item chosen ∝ exp(score).

    Parameters
    ----------
    prior_scale : float, "auto" or None, default "auto"
        Standard deviation of the normal prior on scores. "auto" learns it from all queries together. None gives plain
        maximum likelihood, which needs connected judgments in which no item only wins or only loses.
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
    denominator (Breslow 1974). Uncertainty is the normal approximation at the optimum. A learnt spread of the scores
    maximises the evidence by Laplace's method. With few items it is integrated out, and the score is the posterior
    mean.

    References: Luce (1959), Individual choice behavior; Plackett (1975), The analysis of permutations.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> PlackettLuce().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    distributable: ClassVar[bool] = True
    shares_scores: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] | None = "auto"
    tolerance: float = 1e-4
    max_steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        scale = self.prior_scale
        if scale is not None and scale != "auto" and (isinstance(scale, str) or not 0 < scale < np.inf):
            raise SettingError(f'prior_scale must be positive, or None for no prior, got {scale!r}. "auto" learns it.')
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        self._check_connected(rankings)
        held = options.engine.load(RankedLists(rankings.item, rankings.place, rankings.offsets, rankings.weights))
        if isinstance(self.prior_scale, str):
            return self._fit_scale(rankings, held)
        objective = LogPosterior(held, rankings.items, self.prior_scale)
        found = maximize(objective, np.zeros(len(rankings.items)), tolerance=self.tolerance, max_steps=self.max_steps)
        curvature = negative_hessian(found)
        return self._build(rankings, found, found.parameters, lambda: curvature.uncertainty(self.seed), {})

    def _fit_scale(self, rankings: Rankings, held: ShardedData) -> Ranking:
        """Estimate the scores and their spread alternately; if items are few, integrate the spread out afterwards."""
        items = rankings.items
        scale, scores, steps, settled = _FIRST_SCALE, np.zeros(len(items)), 0, False
        for n in range(_MAX_ROUNDS):
            # The expansion holds at any scores, so those of a spread that will change need not be exact.
            tolerance = self.tolerance if settled or n == _MAX_ROUNDS - 1 else max(self.tolerance, _LOOSE)
            objective = LogPosterior(held, items, scale)
            found = maximize(objective, scores, tolerance=tolerance, max_steps=self.max_steps - steps)
            scores, steps = found.parameters, steps + found.steps
            curvature = negative_hessian(found)
            expansion = curvature.expand()
            if settled or steps >= self.max_steps:
                break
            best = expansion.best_scale()
            settled = abs(np.log(best / scale)) < _SCALE_TOLERANCE
            scale = best
        found = replace(found, steps=steps, converged=found.converged and tolerance == self.tolerance)
        parameters = {"prior_scale": scale}
        if len(items) > _LARGEST_FACTORED:
            return self._build(rankings, found, found.parameters, lambda: curvature.uncertainty(self.seed), parameters)
        mixture = expansion.mixture(items.centre)

        def measure() -> Uncertainty:
            return Uncertainty(
                mixture.draw(_DRAWS, self.seed),
                mixture.std_error,
                "Laplace approximation, averaged over the spread of scores",
                True,
            )

        return self._build(rankings, found, mixture.mean, measure, parameters)

    def _build(
        self,
        rankings: Rankings,
        found: OptimizeResult,
        scores: FloatArray,
        measure: Callable[[], Uncertainty],
        parameters: dict[str, float],
    ) -> Ranking:
        return build_ranking(
            self,
            rankings,
            scores,
            log_likelihood=negative_hessian(found).likelihood.value,
            parameters=parameters,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=measure,
        )

    def _check_connected(self, rankings: Rankings) -> None:
        if not np.any(rankings.place):
            raise DataError("No list orders any two items, so there is nothing to rank.")
        check_connected(diagnose(rankings), has_prior=self.prior_scale is not None)


def negative_hessian(found: OptimizeResult) -> NegativeHessian:
    """The curvature that a maximisation ended with."""
    assert isinstance(found.evaluation.curvature, NegativeHessian)
    return found.evaluation.curvature


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
            return DenseCurvature(self._matrix).solve(vector)
        return MatrixFreeCurvature(self._product, self.likelihood.hessian_diag + self.prior).solve(vector, tolerance)

    @cached_property
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
                covariance = np.asarray(np.linalg.inv(self._matrix), np.float64)
            error, drawn = draw_from_covariance(covariance, self.items.centre, seed)
        else:
            rng = np.random.default_rng(seed)
            columns = [self._solve_for_noise(rng) for _ in range(_SOLVED_DRAWS)]
            drawn = np.array(columns)
            error = self.items.centre(drawn).std(axis=0)
        centred = self.items.centre(self.scores + drawn)
        return Uncertainty(centred, error, "Laplace approximation", sampled=bool(self.prior.any()))

    def expand(self) -> QuadraticExpansion:
        """The log-likelihood to second order around the scores; of many items, by the diagonal alone."""
        precision = float(self.prior[0])
        if len(self.scores) > _LARGEST_FACTORED:
            curvature = self.likelihood.hessian_diag
            return QuadraticExpansion(curvature, curvature * self.scores + self.likelihood.gradient)
        with limit_blas_threads(len(self.scores)):
            values, vectors = np.linalg.eigh(self._matrix - precision * np.eye(len(self.scores)))
        values = np.maximum(values, 0.0)
        linear = values * (self.scores @ vectors) + self.likelihood.gradient @ vectors
        return QuadraticExpansion(values, linear, vectors)

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
