"""The spread of scores, learnt by the Laplace evidence: prior_scale="auto" of bradley-terry and thurstone.

Scores have the prior N(0, τ²). With x the parameters at the optimum for τ and H the curvature of the log posterior
there, the evidence is approximately

    log p(judgments | τ) = log p(judgments | x) + log p(x | τ) − ½ log det H + constant.

With few items τ is uncertain: it is integrated out over a grid of log τ, by a mixture of normal approximations weighted
by the evidence. With many items τ is known well, and the best value is taken (MacKay 1992).

The evidence may have two maxima. If only neighbours of a long order are compared, their differences are small next to
τ. Under N(0, τ²) that is so unlikely that equal items and coin tosses, τ = 0, have the higher evidence. Repeated
answers to the same pairs tell such judgments from coin tosses: if they agree, the search starts from a large τ and
takes the first maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gamma
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Items
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.curvature import invert_triangular
from crowdrank.inference.laplace import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize

if TYPE_CHECKING:
    from crowdrank.models.pairwise.paired import PairwiseCurvature

LARGEST_INTEGRATED = 300
"""Up to this many items the spread is integrated out; beyond it, the best value is taken."""
SMALLEST, LARGEST = 0.03, 1000.0
"""Range of τ. Below it all items are alike for any practical purpose."""
_PRIOR_INFORMATION = 0.5
# Grid points that hold less than this share of the weight end the grid.
_NEGLIGIBLE = 0.03
_WIDEST_STEP = 0.6
_MAX_STEPS = 12
# Trace estimates: enough random vectors for a trace of about this many terms.
_TRACE_TERMS = 2_000
# The ratio of the trace to the sum of 1/Hᵢᵢ is estimated again only if log τ has changed by more than this.
_STEADY = 0.3
_LOOSE = 0.3
_LARGE = 300.0
"""A spread that hardly shrinks anything: where the search starts if answers to the same pairs agree."""
# Answers agree if a spread of the differences explains them better than coin tosses by this much log-likelihood.
_CLEAR = 5.0
# … and items were compared with neighbours if win rates spread less than this share of it.
_SHARE_OF_NEIGHBOURS = 0.6
_DIFFERENCE_SPREADS = np.geomspace(0.2, 6.0, 6)
_MAX_COUNTED_ROWS = 300_000


class SpreadPrior(NamedTuple):
    """Prior of τ: density ∝ τ^(power − 1) · tail, and a spike at 0.

    The spike is the probability that all parameters are alike. The tail is 1 / (1 + τ²/scale²), or exp(−τ²/(2·scale²))
    if it is light.
    """

    power: float
    scale: float
    spike: float
    light_tail: bool = False

    def log_density(self, log_scale: float) -> float:
        """Log density of u, up to a constant."""
        if self.light_tail:
            return self.power * log_scale - 0.5 * float(np.exp(2 * log_scale)) / self.scale**2
        return self.power * log_scale - float(np.log1p(np.exp(2 * log_scale) / self.scale**2))

    def derivative(self, log_scale: float) -> float:
        ratio = float(np.exp(2 * log_scale)) / self.scale**2
        if self.light_tail:
            return self.power - ratio
        return self.power - 2.0 * ratio / (1.0 + ratio)

    def spike_width(self) -> float:
        """The width that gives the smallest spread the probability of the spike."""
        if self.light_tail:
            total = 0.5 * (2 * self.scale**2) ** (self.power / 2) * gamma(self.power / 2)
        else:
            total = self.scale**self.power * np.pi / 2 / np.sin(np.pi * self.power / 2)
        return float(self.spike / (1 - self.spike) * total / np.exp(self.log_density(float(np.log(SMALLEST)))))


# Leans to small values. Tuned by simulation: few tables of coin tosses are split, and hardly any true claim is lost.
SCORE_SPREAD_PRIOR = SpreadPrior(0.7, 3.0, 0.025)
# Leans to large values, because the Laplace approximation finds the spread of many deviations with few votes each too
# small. Tuned by simulation: intervals of scores in categories hold, and no difference is claimed where there is none.
DEVIATION_SPREAD_PRIOR = SpreadPrior(1.6, 2.0, 0.001, light_tail=True)


@dataclass(frozen=True, eq=False)
class SpreadFit:
    """The optimum at one value of u = log τ, with what the evidence says there.

    Parameters
    ----------
    log_scale : float
        u.
    found : OptimizeResult
        The optimum.
    items : Items
        The items; parameters beyond their number are those of ties.
    prior : SpreadPrior
        Prior of τ.
    """

    log_scale: float
    found: OptimizeResult
    items: Items
    prior: SpreadPrior = SCORE_SPREAD_PRIOR

    @property
    def precision(self) -> float:
        return float(np.exp(-2 * self.log_scale))

    @property
    def scores(self) -> FloatArray:
        return self.found.parameters[: len(self.items)]

    @cached_property
    def factor(self) -> FloatArray:
        """Cholesky factor L of the curvature, LLᵀ."""
        return np.asarray(np.linalg.cholesky(_curvature(self.found).matrix()))

    @cached_property
    def root(self) -> FloatArray:
        """L⁻¹, so that the covariance is L⁻ᵀL⁻¹."""
        return invert_triangular(self.factor)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the scores, ties integrated out."""
        root = self.root[:, : len(self.items)]
        return np.asarray(root.T @ root)

    @cached_property
    def log_density(self) -> float:
        """Log evidence plus the log prior density of u."""
        size = len(self.items)
        log_determinant = 2 * float(np.sum(np.log(np.diag(self.factor))))
        evidence = self.found.evaluation.value - size * self.log_scale - 0.5 * log_determinant
        return evidence + self.prior.log_density(self.log_scale)

    def derivative(self, trace: float) -> float:
        """Derivative of the log density in u; `trace` is that of the covariance. H is taken as constant in u."""
        return log_scale_derivative(self.scores, trace, self.log_scale, self.prior)

    def extrapolated(self, log_scale: float) -> FloatArray:
        """Parameters to start from at another u: the optimum follows dx/du = H⁻¹ · 2x/τ² for the scores."""
        moved = 2 * self.precision * self.covariance @ self.scores
        start = self.found.parameters.copy()
        start[: len(self.items)] += (log_scale - self.log_scale) * moved
        return start

    def component(self, width: float) -> LaplaceComponent:
        """This point of the grid, which stands for an interval of u of the given width."""
        centre = self.items.centre

        def draw_around(rng: np.random.Generator, count: int) -> FloatArray:
            noise = rng.standard_normal((count, len(self.root)))
            return centre(noise @ self.root[:, : len(self.items)])

        variance = np.diag(centre(centre(self.covariance).T))
        return LaplaceComponent(
            log_weight=self.log_density + float(np.log(width)),
            mode=centre(self.scores),
            variance=np.maximum(variance, 0.0),
            draw_around=draw_around,
        )


Fitter = Callable[[float, FloatArray, float], SpreadFit]
"""Fits at log τ, from starting values, to a tolerance."""


@dataclass(frozen=True, eq=False)
class SpreadPosterior:
    """Points of the grid with their weights; a single point if the best spread was taken."""

    fits: list[SpreadFit]
    widths: FloatArray

    @cached_property
    def mixture(self) -> LaplaceMixture:
        return LaplaceMixture([fit.component(w) for fit, w in zip(self.fits, self.widths, strict=True)])

    @cached_property
    def weights(self) -> FloatArray:
        if len(self.fits) == 1:
            return np.ones(1)
        return self.mixture.weights

    @property
    def scale(self) -> float:
        """The learnt spread: the mean on the log scale."""
        return float(np.exp(self.weights @ [fit.log_scale for fit in self.fits]))

    @property
    def parameters(self) -> FloatArray:
        """Posterior mean of scores and tie parameter."""
        return np.asarray(self.weights @ np.array([fit.found.parameters for fit in self.fits]))

    @property
    def slowest(self) -> OptimizeResult:
        """The optimum that is farthest from convergence."""
        return max((fit.found for fit in self.fits), key=lambda found: (not found.converged, found.distance))


def neighbours_only(comparisons: Comparisons, scores: FloatArray) -> bool:
    """Whether items were compared with their neighbours in a long order: they differ more than their win rates.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments.
    scores : array of float
        Scores by win rates.

    Notes
    -----
    What compared items differ by is seen in how far answers to the same pair agree. The difference of each pair is
    integrated out with the prior N(0, 2τ²), pair by pair, so τ does not depend on which pairs were compared. Judgments
    without repeated pairs, and very many judgments, give False.
    """
    if len(comparisons) > _MAX_COUNTED_ROWS:
        return False
    counts = comparisons.counts
    wins, losses = counts.first_wins, counts.second_wins
    combinations, times = np.unique(np.stack((wins, losses), axis=1), axis=0, return_counts=True)
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    margin = np.sqrt(2.0) * np.outer(_DIFFERENCE_SPREADS, nodes)
    log_won, log_lost = -np.logaddexp(0.0, -margin), -np.logaddexp(0.0, margin)
    log_weights = np.log(weights / weights.sum())
    log_likelihood = np.zeros(len(_DIFFERENCE_SPREADS))
    for (won, lost), n in zip(combinations, times, strict=True):
        gain = won * log_won + lost * log_lost + (won + lost) * np.log(2.0)
        log_likelihood += n * np.logaddexp.reduce(gain + log_weights, axis=1)
    spread = float(_DIFFERENCE_SPREADS[int(np.argmax(log_likelihood))])
    return bool(log_likelihood.max() > _CLEAR and np.std(scores) < _SHARE_OF_NEIGHBOURS * spread)


def learn_spread(
    objective_at: Callable[[float], Callable[[FloatArray], Evaluation]],
    start: FloatArray,
    first: float,
    items: Items,
    tolerance: float,
    max_steps: int,
    from_above: bool = False,
    prior: SpreadPrior = SCORE_SPREAD_PRIOR,
) -> SpreadPosterior:
    """Fit with the spread of scores integrated out or, for many items, with its best value.

    `first` is a guess. With `from_above` it is replaced by the spread of scores that are hardly shrunk.
    """

    def fit(log_scale: float, begin: FloatArray, to: float) -> SpreadFit:
        found = maximize(objective_at(float(np.exp(log_scale))), begin, tolerance=to, max_steps=max_steps)
        return SpreadFit(log_scale, found, items, prior)

    if from_above:
        start = fit(float(np.log(_LARGE)), start, tolerance).found.parameters
        first = max(float(np.std(start[: len(items)])), first)
    log_first = float(np.log(np.clip(first, 10 * SMALLEST, LARGEST / 2)))
    if len(items) > LARGEST_INTEGRATED:
        return _best(fit, log_first, start, len(items), tolerance)
    with limit_blas_threads(len(items)):
        return _integrate(fit, log_first, start, len(items), tolerance)


def _integrate(fit: Fitter, first: float, start: FloatArray, size: int, tolerance: float) -> SpreadPosterior:
    """Find the best spread, then add points on both sides of it until nothing of weight is left."""
    here = fit(first, start, tolerance)
    fits = [here]
    for _ in range(_MAX_STEPS):
        shrinkage = np.eye(size) - here.precision * here.covariance
        information = 2 * float(np.sum(shrinkage**2)) + _PRIOR_INFORMATION
        step = _clip_step(here, here.derivative(float(np.trace(here.covariance))) / information)
        if abs(step) * np.sqrt(information) < 0.5:
            break
        here = fit(here.log_scale + step, here.extrapolated(here.log_scale + step), tolerance)
        fits.append(here)
    width = min(1.25 / float(np.sqrt(information)), _WIDEST_STEP)
    best = max(fits, key=lambda one: one.log_density)
    grid = [best]
    total = 1.0  # weight so far, in units of that of the best
    for direction in (-1, 1):
        at = best
        while True:
            log_scale = at.log_scale + direction * width
            if not np.log(SMALLEST) <= log_scale <= np.log(LARGEST):
                break
            at = fit(log_scale, at.extrapolated(log_scale), tolerance)
            grid.append(at)
            weight = float(np.exp(at.log_density - best.log_density))
            total += weight
            if weight < _NEGLIGIBLE * total:
                break
    grid.sort(key=lambda one: one.log_scale)
    widths = np.full(len(grid), width)
    if grid[0].log_scale - width < np.log(SMALLEST):  # else the judgments rule out that all items are alike
        grid.insert(0, fit(float(np.log(SMALLEST)), grid[0].extrapolated(float(np.log(SMALLEST))), tolerance))
        widths = np.append(best.prior.spike_width(), widths)
    return SpreadPosterior(grid, widths)


def _best(fit: Fitter, first: float, start: FloatArray, size: int, tolerance: float) -> SpreadPosterior:
    """The best spread: steps on u by the slope of the evidence, with the trace of the covariance estimated."""
    here = fit(first, start, max(tolerance, _LOOSE))
    measured_at = ratio = np.inf
    for _ in range(_MAX_STEPS):
        curvature = _curvature(here.found)
        variance = 1.0 / curvature.diagonal[:size]
        if abs(here.log_scale - measured_at) > _STEADY:
            measured_at, ratio = here.log_scale, _trace(curvature, variance) / float(variance.sum())
        information = information_of(variance, here.log_scale)
        step = _clip_step(here, here.derivative(ratio * float(variance.sum())) / information)
        settled = abs(step) < max(0.02, 0.3 / np.sqrt(information))
        here = fit(here.log_scale + step, here.found.parameters, tolerance if settled else max(tolerance, _LOOSE))
        if settled:
            return SpreadPosterior([here], np.ones(1))
    return SpreadPosterior([fit(here.log_scale, here.found.parameters, tolerance)], np.ones(1))


def log_scale_derivative(values: FloatArray, trace: float, log_scale: float, prior: SpreadPrior) -> float:
    """Derivative of the log density in u = log τ, for parameters N(0, τ²) whose covariance has this trace."""
    explained = float(np.exp(-2 * log_scale)) * (float(values @ values) + trace)
    return explained - len(values) + prior.derivative(log_scale)


def information_of(variance: FloatArray, log_scale: float) -> float:
    """How much is known about u: minus the derivative of the slope, from the variances of the parameters."""
    return 2 * float(np.sum((1 - float(np.exp(-2 * log_scale)) * variance) ** 2)) + _PRIOR_INFORMATION


def _trace(curvature: PairwiseCurvature, variance: FloatArray) -> float:
    """Trace of the covariance of the scores: 1/Hᵢᵢ, corrected by random vectors (Hutchinson 1990).

    The diagonal is a control variate: zᵀ(H⁻¹ − D⁻¹)z varies far less than zᵀH⁻¹z.
    """
    rng, size = np.random.default_rng(0), len(variance)
    probes = 1 + _TRACE_TERMS // size
    correction = 0.0
    for _ in range(probes):
        signs = np.zeros(len(curvature.diagonal))
        signs[:size] = rng.choice((-1.0, 1.0), size)
        correction += float(signs @ curvature.solve(signs, 0.03)) - float(variance.sum())
    return float(variance.sum()) + correction / probes


def _curvature(found: OptimizeResult) -> PairwiseCurvature:
    return found.evaluation.curvature  # type: ignore[return-value]


def _clip_step(here: SpreadFit, step: float) -> float:
    """At most a factor of e, and inside the range."""
    target = np.clip(here.log_scale + np.clip(step, -1.0, 1.0), np.log(SMALLEST), np.log(LARGEST))
    return float(target - here.log_scale)
