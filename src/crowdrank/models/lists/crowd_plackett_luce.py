"""Plackett-Luce model of lists by annotators of different precision, with the annotators integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import solve_factored, solve_transposed
from crowdrank.inference.laplace import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.base import (
    FitOptions,
    IterativeModel,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.lists.crowd_likelihood import (
    PRECISION,
    SPREADS,
    CrowdLists,
    CrowdLogLikelihood,
    Population,
    class_posterior,
    class_quality,
    summarise,
)
from crowdrank.results import Convergence, Ranking, Uncertainty

# Posterior of the scores behind lists of annotators: modes, Laplace approximations and their evidence.
#
# The hyperparameters are the spread τ of the scores, s ~ N(0, τ²), and the population of annotators: the spread ω of
# their log precision and the shares of random and reversed ones. Where data are few, τ and ω are integrated over a
# grid. For each ω, τ rises from .03, where the posterior has a single mode near zero, and each mode is the start of
# the next; so the majority decides the sign of the scores. Where data are many, the best τ and ω are used.

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


MAX_ITEMS = 3_000
"""Items per query up to which the Hessian is factored."""
# Up to these sizes hyperparameters are integrated over a grid; beyond, the data fix them.
_FEW_ITEMS, _FEW_ROWS = 200, 5_000
# Items up to which the Hessian is one matrix; beyond, queries are taken as independent given the hyperparameters.
_LARGEST_JOINT = 500
_DRAWS = 1_000
# Components of less weight are left out of the annotators' estimates.
_SMALLEST_WEIGHT = 1e-3


@dataclass(frozen=True, kw_only=True)
class CrowdPlackettLuce(IterativeModel):
    """Plackett-Luce where each annotator has a precision, which is integrated out.

    Parameters
    ----------
    prior_scale : float or "auto", default "auto"
        Standard deviation τ of the normal prior on scores. "auto" learns it from all queries together.
    precision_spread : float or "auto", default "auto"
        Standard deviation ω of the log precision of regular annotators. 0 makes all annotators alike, without random
        and reversed ones. "auto" learns it.
    two_sided : bool, default True
        Let the bottom of a list count as much as its top: the list is also drawn from the bottom up. False draws from
        the top only, as plackett-luce does.
    tolerance : float, default 1e-4
        Stop when √(gᵀH⁻¹g), the distance to the optimum in standard errors, is below this.
    max_steps : int, default 200
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k draws a list from the top, each next item with probability ∝ exp(κₖ·s) among the remaining. The
    precision κₖ has a distribution on a grid: log κ ~ N(0, ω²) for regular annotators, κ = 0 for random ones and κ = −1
    for reversed ones. The likelihood of an annotator's lists is averaged over this grid, so an annotator with a single
    list is not overfitted. The shares of random and reversed annotators are learnt; the prior favours regular ones.

    With little data, τ and ω are integrated over a grid: Laplace approximations at each value, mixed by their evidence.
    The score is the posterior mean. The reported quality of an annotator is the probability that they order two items
    of a query right. Lists without annotators count as made by one annotator each.

    References: Luce (1959), Individual choice behavior; Plackett (1975), The analysis of permutations; Rue, Martino &
    Chopin (2009), Approximate Bayesian inference for latent Gaussian models.

    Examples
    --------
    >>> lists = [[["a"], ["b"], ["c"], ["d"]]] * 4 + [[["a"], ["c"], ["b"], ["d"]], [["d"], ["c"], ["b"], ["a"]]]
    >>> people = ["ann", "bob", "cat", "dan", "eve", "fay"]
    >>> ranking = CrowdPlackettLuce().fit(Rankings.of_lists(lists, annotator=people))
    >>> ranking.table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c', 'd']
    >>> bool(ranking.annotators["fay"]["quality"].value < ranking.annotators["ann"]["quality"].value)
    True
    """

    reads: ClassVar[type] = Rankings
    models_annotators: ClassVar[bool] = True
    shares_scores: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] = "auto"
    precision_spread: float | Literal["auto"] = "auto"
    two_sided: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        scale, spread = self.prior_scale, self.precision_spread
        if scale != "auto" and (isinstance(scale, str) or not 0 < scale < np.inf):
            raise SettingError(f'prior_scale must be positive or "auto", got {scale!r}.')
        if spread != "auto" and (isinstance(spread, str) or not 0 <= spread < np.inf):
            raise SettingError(f'precision_spread must be zero or more, or "auto", got {spread!r}.')

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        _check(lists)
        items = lists.items
        posterior = CrowdPosterior(
            CrowdLists.of(lists, PRECISION, _block_starts(items), two_sided=self.two_sided),
            len(items),
            None if isinstance(self.prior_scale, str) else self.prior_scale,
            None if isinstance(self.precision_spread, str) else self.precision_spread,
            self.tolerance,
            self.max_steps,
        )
        few = len(items) <= _FEW_ITEMS and len(lists.item) <= _FEW_ROWS
        with limit_blas_threads(len(items)):
            modes = posterior.on_grid() if few else [posterior.best()]
            mixture = LaplaceMixture([mode.component(items) for mode in modes])
        best = modes[int(np.argmax(mixture.weights))]
        ranking = build_ranking(
            self,
            lists,
            mixture.mean,
            log_likelihood=best.curvature.likelihood.value,
            parameters=_parameters(modes, mixture.weights),
            convergence=Convergence(best.found.converged, best.steps, best.found.distance),
            measure=lambda: Uncertainty(
                mixture.draw(_DRAWS, self.seed), mixture.std_error, _describe(len(modes)), sampled=True
            ),
        )
        return with_annotators(ranking, lists, lambda: _estimates(items, ranking.scores, modes, mixture.weights))


def _check(lists: Rankings) -> None:
    if not np.any(lists.place):
        raise DataError("No list orders any two items, so there is nothing to rank.")
    largest = int(np.diff(lists.items.starts).max())
    if largest > MAX_ITEMS:
        raise DataError(
            f"A query has {largest:,} items; crowd-plackett-luce needs a matrix of all pairs and accepts at most "
            f"{MAX_ITEMS:,}. Use plackett-luce instead."
        )
    check_connected(diagnose(lists), has_prior=True)


def _block_starts(items: Items) -> IntArray:
    return np.array([0, len(items)]) if len(items) <= _LARGEST_JOINT else np.asarray(items.starts, np.int64)


def _describe(components: int) -> str:
    return "Laplace approximation" if components == 1 else "Laplace approximations, mixed over the hyperparameters"


def _parameters(modes: list[CrowdMode], weights: FloatArray) -> dict[str, float]:
    """Posterior means of the hyperparameters; of the spread of scores, the geometric one."""
    shares = weights @ np.array([mode.population.shares for mode in modes])
    return {
        "prior_scale": float(np.exp(weights @ np.log([mode.scale for mode in modes]))),
        "precision_spread": float(weights @ np.array([mode.population.spread for mode in modes])),
        "random_share": float(shares[1]),
        "reversed_share": float(shares[2]),
    }


def _estimates(
    items: Items, scores: FloatArray, modes: list[CrowdMode], weights: FloatArray
) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
    kept = [(mode, weight) for mode, weight in zip(modes, weights, strict=True) if weight >= _SMALLEST_WEIGHT]
    posterior = sum(weight * mode.class_posterior() for mode, weight in kept) / sum(weight for _, weight in kept)
    return {
        "quality": summarise(np.asarray(posterior), class_quality(items, scores)),
        "precision": summarise(np.asarray(posterior), PRECISION),
    }
