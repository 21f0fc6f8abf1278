"""Posterior of the scores behind lists of annotators: modes, Laplace approximations and their evidence.

The hyperparameters are the spread τ of the scores, s ~ N(0, τ²), and the population of annotators: the spread ω of
their log precision and the shares of random and reversed ones. Where data are few, τ and ω are integrated over a grid.
For each ω, τ rises from .03, where the posterior has a single mode near zero, and each mode is the start of the next;
so the majority decides the sign of the scores. Where data are many, the best τ and ω are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.inference.laplace_mixture import LaplaceComponent
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.inference.positive_definite import solve_factored, solve_transposed
from crowdrank.models.lists.annotator_classes import SPREADS, Population
from crowdrank.models.lists.crowd_likelihood import CrowdLists, CrowdLogLikelihood, class_posterior

SCALES = tuple(0.03 * 2.0**k for k in range(9))
"""Values of τ, the spread of the scores, that are tried: .03 to 7.7."""
# Stop raising τ when the log evidence is this far below the best.
_NEGLIGIBLE = 6.0
# Rounds of learning the population and maximising over the scores, at one value of τ and ω, and for the best of all.
_ROUNDS_ON_GRID, _ROUNDS = 3, 40
_STEPS_PER_ROUND = 3
_LOOSE = 1e-2
# Largest change of a score in a Newton step: the marginal likelihood is not concave.
_MAX_STEP = 2.0


@dataclass(frozen=True, eq=False)
class BlockCurvature:
    """Negative Hessian of the log posterior, block by block, at some scores."""

    lists: CrowdLists
    likelihood: CrowdLogLikelihood
    precision: float

    @cached_property
    def factors(self) -> list[FloatArray]:
        """Cholesky factors; of the information given the classes where the Hessian is not positive definite."""
        blocks = self.lists.blocks
        pairs = zip(blocks.matrices(self.likelihood.hessian), blocks.matrices(self.likelihood.information), strict=True)
        return [self._factor(hessian, information) for hessian, information in pairs]

    def _factor(self, hessian: FloatArray, information: FloatArray) -> FloatArray:
        prior = np.diag(np.full(len(hessian), self.precision))
        try:
            return np.asarray(np.linalg.cholesky(hessian + prior))
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.cholesky(information + prior))

    def solve(self, vector: FloatArray, tolerance: float = 0.0) -> FloatArray:
        parts = np.split(vector, self.lists.blocks.starts[1:-1])
        return np.concatenate([solve_factored(f, v) for f, v in zip(self.factors, parts, strict=True)])

    @cached_property
    def covariances(self) -> list[FloatArray]:
        return [solve_factored(factor, np.eye(len(factor))) for factor in self.factors]

    @property
    def log_determinant(self) -> float:
        return 2 * sum(float(np.log(np.diag(factor)).sum()) for factor in self.factors)

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draws from the normal distribution around zero, as rows."""
        noise = [rng.standard_normal((len(factor), count)) for factor in self.factors]
        solved = [solve_transposed(f, z) for f, z in zip(self.factors, noise, strict=True)]
        return np.concatenate(solved).T


@dataclass(frozen=True, eq=False)
class CrowdMode:
    """The mode of the scores at one value of the hyperparameters."""

    scale: float
    population: Population
    found: OptimizeResult
    steps: int

    @property
    def curvature(self) -> BlockCurvature:
        assert isinstance(self.found.evaluation.curvature, BlockCurvature)
        return self.found.evaluation.curvature

    @cached_property
    def log_evidence(self) -> float:
        """Log evidence by Laplace's method, times the prior density of the shares."""
        value = self.found.evaluation.value - len(self.found.parameters) * np.log(self.scale)
        return float(value - 0.5 * self.curvature.log_determinant + self.population.log_prior)

    def class_posterior(self) -> FloatArray:
        """Posterior of the classes of each annotator at the mode."""
        return class_posterior(self.curvature.likelihood.classes, self.population.log_weight)[0]

    def component(self, items: Items) -> LaplaceComponent:
        curvature = self.curvature
        variance = []
        for covariance, start in zip(curvature.covariances, curvature.lists.blocks.starts[:-1], strict=True):
            query = items.query[start : start + len(covariance)]
            same = query[:, None] == query
            centring = np.eye(len(covariance)) - same / same.sum(axis=1)
            variance.append(np.einsum("ij,jk,ik->i", centring, covariance, centring, optimize=True))
        return LaplaceComponent(
            self.log_evidence,
            items.centre(self.found.parameters),
            np.concatenate(variance),
            lambda rng, count: items.centre(curvature.draw(rng, count)),
        )


@dataclass(frozen=True, eq=False)
class CrowdPosterior:
    """The posterior of the scores, as a function of the hyperparameters.

    Parameters
    ----------
    lists : CrowdLists
        The lists.
    n_items : int
        Number of items.
    scale, spread : float or None
        τ and ω; None to learn them.
    tolerance : float
        Distance to the optimum, in standard errors, at which Newton's method stops.
    max_steps : int
        Maximum number of Newton steps.
    """

    lists: CrowdLists
    n_items: int
    scale: float | None
    spread: float | None
    tolerance: float
    max_steps: int

    def on_grid(self) -> list[CrowdMode]:
        """Modes at all values of the hyperparameters that matter; the other ω begin where the first one found data."""
        scales, spreads = self._scales, self._spreads
        first = self._path(scales, Population.prior(spreads[0]), np.zeros(self.n_items))
        highest = max(mode.log_evidence for mode in first)
        n = next(n for n, mode in enumerate(first) if mode.log_evidence > highest - _NEGLIGIBLE)
        modes = first[n:]
        for spread in spreads[1:]:
            shares = first[n].population.shares
            modes += self._path(scales[n:], Population(spread, shares), first[n].found.parameters)
        return modes

    @property
    def _scales(self) -> tuple[float, ...]:
        return SCALES if self.scale is None else (self.scale,)

    @property
    def _spreads(self) -> tuple[float, ...]:
        return SPREADS if self.spread is None else (self.spread,)

    def _path(self, scales: tuple[float, ...], population: Population, scores: FloatArray) -> list[CrowdMode]:
        """Modes for rising τ, each the start of the next, as long as the evidence is not negligible."""
        modes: list[CrowdMode] = []
        for scale in scales:
            modes.append(self._mode(scale, population, scores))
            scores, population = modes[-1].found.parameters, modes[-1].population
            if modes[-1].log_evidence < max(mode.log_evidence for mode in modes) - _NEGLIGIBLE:
                break
        return modes

    def _mode(self, scale: float, population: Population, scores: FloatArray) -> CrowdMode:
        """The mode at one τ and ω, with the most probable shares."""
        steps = 0
        for _ in range(_ROUNDS_ON_GRID):
            found = self._maximize(scale, population, scores, _LOOSE, min(_STEPS_PER_ROUND, self.max_steps))
            scores, steps = found.parameters, steps + found.steps
            if steps >= self.max_steps:
                return CrowdMode(scale, population, found, steps)
            updated = population.learn(_classes(found), self.lists.annotator_weight)
            settled = np.max(np.abs(updated.shares - population.shares)) < _LOOSE
            population = updated
            if settled:
                break
        found = self._maximize(scale, population, scores, self.tolerance, self.max_steps - steps)
        return CrowdMode(scale, population, found, steps + found.steps)

    def best(self) -> CrowdMode:
        """The mode at the most probable hyperparameters, by EM for τ and by trial for ω."""
        spreads = self._spreads
        population = Population.prior(spreads[0])
        scores, scale, steps = np.zeros(self.n_items), self.scale or 1.0, 0
        for _ in range(_ROUNDS):
            found = self._maximize(scale, population, scores, _LOOSE, min(_STEPS_PER_ROUND, self.max_steps - steps))
            scores, steps = found.parameters, steps + found.steps
            if steps >= self.max_steps:
                return CrowdMode(scale, population, found, steps)
            updated, moved = self._learn(found, population, spreads), self.scale or self._learn_scale(found)
            settled = updated.spread == population.spread and abs(np.log(moved / scale)) < 2 * _LOOSE
            settled = settled and bool(np.max(np.abs(updated.shares - population.shares)) < _LOOSE) and found.converged
            population, scale = updated, moved
            if settled:
                break
        found = self._maximize(scale, population, scores, self.tolerance, self.max_steps - steps)
        return CrowdMode(scale, population, found, steps + found.steps)

    def _learn(self, found: OptimizeResult, population: Population, spreads: tuple[float, ...]) -> Population:
        classes, weight = _classes(found), self.lists.annotator_weight
        candidates = [Population(s, population.shares).learn(classes, weight) if s else population for s in spreads]
        return max(candidates, key=lambda each: each.log_posterior(classes, weight))

    def _learn_scale(self, found: OptimizeResult) -> float:
        """The EM step for τ: its square is the posterior mean of the squared scores."""
        curvature = found.evaluation.curvature
        assert isinstance(curvature, BlockCurvature)
        variance = sum(float(np.trace(covariance)) for covariance in curvature.covariances)
        square = (float(found.parameters @ found.parameters) + variance) / self.n_items
        return float(np.clip(np.sqrt(square), SCALES[0], SCALES[-1]))

    def _maximize(
        self, scale: float, population: Population, start: FloatArray, tolerance: float, max_steps: int
    ) -> OptimizeResult:
        log_weight, precision = population.log_weight, 1.0 / scale**2

        def log_posterior(scores: FloatArray) -> Evaluation:
            likelihood = self.lists.evaluate(scores, log_weight)
            value = likelihood.value - 0.5 * precision * float(scores @ scores)
            return Evaluation(
                value,
                likelihood.gradient - precision * scores,
                BlockCurvature(self.lists, likelihood, precision),
            )

        return maximize(log_posterior, start, tolerance=tolerance, max_steps=max_steps, max_step=_MAX_STEP)


def _classes(found: OptimizeResult) -> FloatArray:
    assert isinstance(found.evaluation.curvature, BlockCurvature)
    return found.evaluation.curvature.likelihood.classes
