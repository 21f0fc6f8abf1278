"""Hyperparameters of Crowd-BT with annotators integrated out: their priors, and the scores at one value of them.

The hyperparameters are the spread of the scores σ and the distribution Beta(α, β) of quality among annotators. Their
coordinates are log σ, log α and log β. For each value, the posterior of the scores is approximated by a normal
distribution at its mode (Laplace), which also gives the evidence of that value. Three ways to integrate over the values
are in `hyperparameter_designs` (a lattice where data are few, a star where items have many answers) and in
`spread_profile`, where items have few answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.laplace import LaplaceApproximation, LaplaceComponent
from crowdrank.inference.newton import OptimizeResult, maximize, maximize_within
from crowdrank.models.crowd.marginal_likelihood import pair_curvature, tie_counts
from crowdrank.models.crowd.marginal_objective import (
    LOG_FACTOR,
    MAX_DENSE_ITEMS,
    AveragedTables,
    Hyperparameters,
    MarginalCurvature,
    MarginalObjective,
    ScaledTables,
    marginal_curvature,
)
from crowdrank.models.crowd.quality_priors import QualityDistribution, TieDistribution, grid_log_evidence

QUALITY_PRIORS = ((2.0, 1.2), (-0.5, 0.7))
"""Normal priors on log α and log β, as (mean, standard deviation). Where annotators are alike, their quality and the
scale of the scores cannot be separated; the prior then leans to a quality near 1, which is Bradley-Terry's model. β is
near or below 1: most annotators are close to the best ones."""
SPREAD_PRIOR = ((0.6, -0.7, 1.1), (0.4, -3.0, 0.6))
"""Prior on the log of the spread that answers show, σ times the root mean square of 2η − 1, as (weight, mean, standard
deviation): a mixture of items that differ and items that do not. Tuned by simulation (seeds below 1000) so that coin
tosses are split into groups in at most 5 % of tables."""
LARGEST_SCALE = 3.0
"""Largest spread of scores that is learnt, unless Bradley-Terry finds a larger one. Where it is larger because
annotators of low quality explain all errors, answers depend on the order of the items alone. The posterior of the
scores is then far from normal."""
IMPLAUSIBLE = 8.0
"""A mode is dropped if the log of its weight is this much below that of the best one."""
QUALITY_BOUNDS = ((-0.7, 6.0), (-2.5, 2.0))
"""Bounds of log α and log β when they are maximised over."""
MAX_STEP = 2.0
"""No score moves further in one Newton step, because the objective is not concave."""
# Distance in standard errors at which the search for a mode stops; the gain that is left is added to the evidence.
_ROUGH_TOLERANCE = 0.2
_SMALLEST_SCALE = 0.02
# Newton's method is trusted to gain at most this many times what its first step predicts.
_REVERSED_GAIN = 3.0
# Starting scores with at least this correlation lead to the same mode; with many answers only one start is used.
_ALIKE, _ONE_START = 0.95, 300_000
# The distribution of quality is estimated from about this many annotators.
_MOST_ANNOTATORS = 2_000
# Distance between points by which derivatives of the evidence are taken.
_DIFFERENCE = 0.02

Coordinates = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mode:
    """Normal approximation of the scores for one value of the hyperparameters.

    Parameters
    ----------
    hyper : Hyperparameters
        The value.
    found : OptimizeResult
        The mode, and the curvature there.
    scores : array of float
        Mean of the approximation: the mode, unless it was refined.
    log_weight : float
        Log evidence of the value, plus the log of its prior and of its quadrature weight.
    root : array of float or None
        Cholesky factor of the precision; None where there are too many items.
    log_prior : float
        Log prior density of the value.
    is_reversed : bool
        Whether this is the mirror image of the most probable reading.
    """

    hyper: Hyperparameters
    found: OptimizeResult
    scores: FloatArray
    log_weight: float
    root: FloatArray | None
    log_prior: float
    is_reversed: bool = False

    @property
    def curvature(self) -> MarginalCurvature:
        return marginal_curvature(self.found.evaluation)

    def distance_to(self, scores: FloatArray) -> float:
        """Distance between this mode and other scores, in standard deviations of this mode."""
        assert self.root is not None
        return float(np.linalg.norm(self.root.T @ (scores - self.scores)))

    def noise(self) -> FloatArray:
        """A random deviation of the scores from their mean; always the same one.

        It has the covariance of the posterior, and is at its typical distance from the mean: the standardised
        deviations are random signs.
        """
        signs = np.random.default_rng(len(self.scores)).choice([-1.0, 1.0], len(self.scores))
        if self.root is None:
            return np.asarray(signs / np.sqrt(self.curvature.diagonal))
        return np.asarray(np.linalg.solve(self.root.T, signs))

    def component(self, items: Items, seed: int) -> LaplaceComponent:
        """The normal distribution at this mode, as a component of the posterior."""
        mode = items.centre(self.scores)
        if self.root is None:
            error, around = self._draw_by_perturbation(items, seed)
            return LaplaceComponent(self.log_weight, mode, error**2, lambda rng, n: around[:n])
        root = self.root
        with limit_blas_threads(len(root)):
            covariance = np.linalg.inv(root)
            variance = np.diag(items.centre(items.centre(covariance.T @ covariance).T)).copy()

        def draw(rng: np.random.Generator, n: int) -> FloatArray:
            with limit_blas_threads(len(root)):
                return items.centre(rng.standard_normal((n, len(root))) @ covariance)

        return LaplaceComponent(self.log_weight, mode, np.maximum(variance, 0.0), draw)

    def _draw_by_perturbation(self, items: Items, seed: int) -> tuple[FloatArray, FloatArray]:
        rows, (diagonal,) = self.curvature.rows.map_and_sum(pair_curvature, len(items))
        precision = np.full(len(items), self.curvature.precision)
        return LaplaceApproximation(rows, diagonal + precision, precision, items.starts).draw(seed)


@dataclass(frozen=True, eq=False)
class Explorer:
    """Finds the values of the hyperparameters that matter, and the mode of the scores at each.

    Parameters
    ----------
    objective : MarginalObjective
        Log posterior of the scores; its hyperparameters are the starting values.
    fixed : tuple of bool
        Which of log σ, log α and log β the user has set.
    rows, items : int
        Number of answers and of items.
    tolerance, max_steps : float and int
        Stopping rule of Newton's method.
    largest_scale : float, default LARGEST_SCALE
        Upper bound of σ, if it is learnt.
    is_allowed : callable, optional
        Whether scores agree with what is known about them, such as gold pairs. By default all do.
    """

    objective: MarginalObjective
    fixed: tuple[bool, bool, bool]
    rows: int
    items: int
    tolerance: float
    max_steps: int
    largest_scale: float = LARGEST_SCALE
    is_allowed: Callable[[FloatArray], bool] = lambda scores: True

    @cached_property
    def _sample(self) -> tuple[int, MarginalObjective]:
        """A sample of the annotators, who suffice for the distribution of quality, and how many each stands for."""
        step = max(1, len(self.objective.grids.grid_of) // _MOST_ANNOTATORS)
        return step, self.objective.of_some_annotators(step)

    @property
    def free(self) -> list[int]:
        return [axis for axis in range(3) if not self.fixed[axis]]

    def best_start(self, starts: list[FloatArray]) -> Mode:
        """The best of the modes found from several starting scores at the first value of the hyperparameters."""
        used = starts if self.rows <= _ONE_START and _are_different(*starts) else starts[-1:]
        modes = [self.mode(coordinates(self.objective.hyper), start) for start in used]
        return max(modes, key=lambda mode: round(mode.log_weight, 6))

    def mode(self, at: Coordinates, start: FloatArray, tie: TieDistribution | None = None) -> Mode:
        """The mode of the scores at one value of the hyperparameters, with its evidence."""
        hyper = self.hyperparameters(at, tie or self.objective.hyper.tie)
        found = maximize(
            self.objective.at(hyper),
            start,
            tolerance=max(self.tolerance, _ROUGH_TOLERANCE),
            max_steps=self.max_steps,
            max_step=MAX_STEP,
        )
        return self.with_evidence(hyper, found)

    def hyperparameters(self, at: Coordinates, tie: TieDistribution) -> Hyperparameters:
        log_scale, log_alpha, log_beta = np.clip(at, -6.0, 7.0)
        if not self.fixed[0]:
            log_scale = min(log_scale, np.log(self.largest_scale))
        alpha, beta = float(np.exp(log_alpha)), float(np.exp(log_beta))
        return Hyperparameters(float(np.exp(log_scale)), QualityDistribution(alpha / (alpha + beta), alpha + beta), tie)

    def with_evidence(self, hyper: Hyperparameters, found: OptimizeResult) -> Mode:
        size = len(found.parameters)
        curvature = marginal_curvature(found.evaluation)
        root = curvature.cholesky() if size <= MAX_DENSE_ITEMS else None
        log_determinant = 2.0 * float(np.sum(np.log(np.diag(root)))) if root is not None else 0.0
        evidence = found.evaluation.value + 0.5 * found.distance**2 if found.converged else found.evaluation.value
        evidence -= size * np.log(hyper.scale) + 0.5 * log_determinant
        log_prior = self._log_prior(coordinates(hyper))
        return Mode(hyper, found, found.parameters, evidence + log_prior, root, log_prior)

    def _log_prior(self, at: Coordinates) -> float:
        log_prior = sum(log_normal(at[axis], *QUALITY_PRIORS[axis - 1]) for axis in self.free if axis > 0)
        return log_prior if self.fixed[0] else log_prior + _log_prior_of_spread(at)

    def reflected(self, mode: Mode) -> Mode | None:
        """The mirror image of a mode at which most annotators answer in reverse, if it is more probable.

        Negated scores and the reflected distribution of quality have the same likelihood, unless something is known.
        """
        if mode.hyper.quality.mean >= 0.5 or self.fixed[1] or not self.is_allowed(-mode.scores):
            return None
        log_scale, log_alpha, log_beta = coordinates(mode.hyper)
        found = self.mode((log_scale, log_beta, log_alpha), -mode.scores, mode.hyper.tie)
        return found if found.log_weight > mode.log_weight else None

    def improved(self, mode: Mode) -> tuple[Hyperparameters, float]:
        """Better hyperparameters, and the factor by which scores and σ are multiplied.

        Quality and the scale of the scores are hard to tell apart, so both are moved together. The log-likelihoods of
        the annotators at their grid points are averaged over the posterior of the scores: at the mode alone, qualities
        would look too high.
        """
        grids, hyper = self.objective.grids, mode.hyper
        log_scale, *quality = coordinates(hyper)
        repeats, sample = self._sample
        scaled = ScaledTables.around(sample.at(hyper), mode.scores, mode.noise(), float(repeats))

        def of_quality(x: FloatArray) -> float:
            at = (log_scale + float(x[2]), float(x[0]), float(x[1]))
            weights = grids.log_weights(self.hyperparameters(at, hyper.tie).quality)
            return scaled.at(float(x[2])).log_likelihood(weights) + self._log_prior(at)

        free = [axis - 1 for axis in self.free if axis > 0] + ([] if self.fixed[0] else [2])
        start, bounds = np.array([*quality, 0.0]), (*QUALITY_BOUNDS, (-LOG_FACTOR, LOG_FACTOR))
        log_alpha, log_beta, log_factor = maximize_within(of_quality, start, free, bounds)
        tie = hyper.tie
        if len(grids.nu):
            tie = fit_ties(self.objective.at(hyper), float(np.exp(log_factor)) * mode.scores)
        if not self.fixed[0]:
            log_scale = self._scale_by_mackay(mode) + log_factor
        return self.hyperparameters((log_scale, float(log_alpha), float(log_beta)), tie), float(np.exp(log_factor))

    def evidence_gradient(self, mode: Mode, tables: FloatArray) -> FloatArray:
        """Gradient of the log evidence by the free coordinates, given annotators' tables at draws of the scores.

        By Fisher's identity it is the posterior mean of the gradient of the log-likelihood and the log prior.
        """
        assert mode.root is not None
        hyper, grids, size = mode.hyper, self.objective.grids, len(mode.scores)
        step, people = self._sample[0], len(grids.grid_of)
        draws = len(tables) // people
        sample = tables.reshape(draws, people, -1)[:, ::step].reshape(-1, tables.shape[1])
        averaged = AveragedTables.of(sample, np.tile(grids.grid_of[::step], draws), step / draws)
        square = float(mode.scores @ mode.scores) + float(np.sum(np.linalg.inv(mode.root) ** 2))

        def expected(at: FloatArray) -> float:
            log_scale, log_alpha, log_beta = (float(one) for one in at)
            quality = self.hyperparameters((log_scale, log_alpha, log_beta), hyper.tie).quality
            of_scores = -size * log_scale - 0.5 * square * float(np.exp(-2.0 * log_scale))
            log_prior = self._log_prior((log_scale, log_alpha, log_beta))
            return averaged.log_likelihood(grids.log_weights(quality)) + of_scores + log_prior

        at, steps = np.array(coordinates(hyper)), _DIFFERENCE * np.eye(3)[self.free]
        return np.array([expected(at + one) - expected(at - one) for one in steps]) / (2.0 * _DIFFERENCE)

    def may_be_reversed(self, mode: Mode) -> bool:
        """Whether the opposite scores may lead to a mode of similar height: a cheap bound by one evaluation."""
        there = self.objective.at(mode.hyper)(-mode.scores)
        gain = float(there.gradient @ there.curvature.solve(there.gradient, 0.1))
        return there.value + _REVERSED_GAIN * gain > mode.found.evaluation.value - IMPLAUSIBLE

    def _scale_by_mackay(self, mode: Mode) -> float:
        """log of σ² = Σ s² / (N − tr(A⁻¹)/σ²), with A the curvature: MacKay 1992."""
        scale, scores = mode.hyper.scale, mode.scores
        if mode.root is not None:
            trace = float(np.sum(np.linalg.inv(mode.root) ** 2))
        else:
            trace = float(np.sum(1.0 / mode.curvature.diagonal))
        determined = max(len(scores) - trace / scale**2, 0.1)
        return float(np.log(max(np.sqrt(float(scores @ scores) / determined), _SMALLEST_SCALE)))


def _are_different(one: FloatArray, other: FloatArray) -> bool:
    """Whether two vectors of starting scores may lead to different modes."""
    return float(one @ other) < _ALIKE * float(np.linalg.norm(one) * np.linalg.norm(other))


def coordinates(hyper: Hyperparameters) -> Coordinates:
    return float(np.log(hyper.scale)), float(np.log(hyper.quality.alpha)), float(np.log(hyper.quality.beta))


def shown_spread(at: Coordinates) -> float:
    """Log of the spread that answers show: σ times the root mean square of 2η − 1."""
    log_scale, log_alpha, log_beta = at
    total = float(np.exp(log_alpha) + np.exp(log_beta))
    square = float(np.tanh((log_alpha - log_beta) / 2.0)) ** 2
    return log_scale + 0.5 * float(np.log((square * total + 1.0) / (total + 1.0)))


def _log_prior_of_spread(at: Coordinates) -> float:
    shown = shown_spread(at)
    parts = [np.log(weight) + log_normal(shown, mean, scale) for weight, mean, scale in SPREAD_PRIOR]
    return float(np.logaddexp.reduce(parts))


def log_normal(x: float, mean: float, scale: float) -> float:
    return -0.5 * ((x - mean) / scale) ** 2 - float(np.log(scale))


# Fit the distribution of ties of Crowd-BT with annotators integrated out, at given scores.

# Normal prior on the log of the spread of log ν among annotators.
_LOG_SPREAD_PRIOR = (-0.7, 0.7)
_BOUNDS = ((-4.0, 4.0), (-3.0, 1.5))
# Factors by which the slope may change in one round, and its range above 0.
_SLOPE_FACTORS, _SLOPE_RANGE = (0.7, 1.0, 1.0 / 0.7), (0.05, 1.5)
_MAX_ROUNDS, _EFFECT_STEPS = 5, 3
# Spread of the item effects at first, and the least one.
_FIRST_EFFECT_SPREAD, _LEAST_EFFECT_SPREAD = 0.5, 0.01


def fit_ties(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """The distribution of ties that fits best at these scores, found from that of the objective."""
    for _ in range(_MAX_ROUNDS):
        before = objective.hyper.tie.slope
        objective = _with_ties(objective, _fit_effects(objective, scores))
        objective = _with_ties(objective, _fit_distribution(objective, scores))
        if objective.hyper.tie.slope == before:
            break
    return objective.hyper.tie


def _with_ties(objective: MarginalObjective, tie: TieDistribution) -> MarginalObjective:
    return objective.at(replace(objective.hyper, tie=tie))


def _fit_effects(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """Item effects by a few steps of Newton's method on the diagonal; the variance of their prior by EM."""
    tie = objective.hyper.tie
    variance = float(np.mean(tie.effect**2)) or _FIRST_EFFECT_SPREAD**2
    for _ in range(_EFFECT_STEPS):
        posterior = objective.posterior(objective.tables(scores)).tie
        excess, information = objective.shards.sum(tie_counts, scores, objective.points, posterior)
        # an effect and those of the items it meets move together, which doubles the information along that direction
        step = (excess - tie.effect / variance) / (2.0 * information + 1.0 / variance)
        tie = tie._replace(effect=tie.effect + step)
        spread = tie.effect**2 + 1.0 / (information + 1.0 / variance)
        variance = max(float(np.mean(spread)), _LEAST_EFFECT_SPREAD**2)
        objective = _with_ties(objective, tie)
    return tie


def _fit_distribution(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """The slope, and the normal distribution of log ν among annotators."""
    grids, tie = objective.grids, objective.hyper.tie
    best, highest = tie, -np.inf
    for slope in sorted({0.0, *np.clip(tie.slope * np.array(_SLOPE_FACTORS), *_SLOPE_RANGE).tolist()}):
        table = _with_ties(objective, tie._replace(slope=slope)).tables(scores).tie

        def value(x: FloatArray, table: FloatArray = table) -> float:
            log_weights = grids.log_tie_weights(tie._replace(mean=float(x[0]), scale=float(np.exp(x[1]))))
            away = (float(x[1]) - _LOG_SPREAD_PRIOR[0]) / _LOG_SPREAD_PRIOR[1]
            return grid_log_evidence(table, log_weights) - 0.5 * away**2

        found = maximize_within(value, np.array([tie.mean, np.log(tie.scale)]), [0, 1], _BOUNDS)
        if value(found) > highest:
            best = tie._replace(mean=float(found[0]), scale=float(np.exp(found[1])), slope=slope)
            highest = value(found)
    return best
