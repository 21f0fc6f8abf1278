"""Posterior of scores whose prior covariance has unknown parts, with the variances learnt by the evidence.

The scores have the prior N(0, W) with W = τ²D + Σₖ vₖKₖ. The matrices are given: Kₖ has the second moments of the scores
of judge k, and D is diagonal. For each τ on a grid, the variances vₖ maximise the Laplace evidence (empirical Bayes) and the scores have a
normal approximation at their mode. The mixture of these over τ, weighted by the evidence, is the posterior. That τ is
uncertain when votes are few is thus part of every interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.inference.laplace_mixture import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import OptimizeResult, maximize
from crowdrank.inference.positive_definite import invert_triangular
from crowdrank.models.commensurate.votes import Votes

# The grid of log τ: its step and range, and how far below the best point its log density ends.
_STEP = 0.4
_LOWEST, _HIGHEST = -13, 10
_NEGLIGIBLE = 5.0
# Prior of √v: density ∝ x^(a − 1) / (1 + x²/A²), as for the spread in bradley-terry.
_POWER, _VARIANCE_SCALE = 0.7, 3.0
# Fisher scoring on log v: information of the prior, largest step, when to stop, and the range.
_PRIOR_INFORMATION, _LARGEST_STEP, _SETTLED, _MAX_ROUNDS = 0.05, 1.5, 0.03, 40
_LOWEST_LOG_VARIANCE, _HIGHEST_LOG_VARIANCE = -12.0, 8.0


@dataclass(frozen=True, eq=False)
class ScaleFit:
    """The fit at one value of log τ.

    Parameters
    ----------
    log_scale : float
        log τ.
    log_variances : array of float
        log vₖ of each judge.
    found : OptimizeResult
        The mode, with the curvature there.
    precision : array
        W⁻¹.
    log_density : float
        Log evidence, plus the log prior densities of log τ and of the log vₖ.
    items : Items
        The items.
    """

    log_scale: float
    log_variances: FloatArray
    found: OptimizeResult
    precision: FloatArray
    log_density: float
    items: Items

    @property
    def scores(self) -> FloatArray:
        return self.found.parameters[: len(self.items)]

    @cached_property
    def root(self) -> FloatArray:
        """L⁻¹ for the curvature LLᵀ of all parameters."""
        return invert_triangular(np.linalg.cholesky(_curvature(self.found)))

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the scores, ties integrated out."""
        root = self.root[:, : len(self.items)]
        return np.asarray(root.T @ root)

    @property
    def information(self) -> FloatArray:
        """Curvature of the log-likelihood in the scores."""
        size = len(self.items)
        return np.asarray(_curvature(self.found)[:size, :size] - self.precision)

    def component(self) -> LaplaceComponent:
        centre, size = self.items.centre, len(self.items)

        def draw_around(rng: np.random.Generator, count: int) -> FloatArray:
            return centre(rng.standard_normal((count, len(self.root))) @ self.root[:, :size])

        variance = np.diag(centre(centre(self.covariance).T))
        return LaplaceComponent(self.log_density, centre(self.scores), np.maximum(variance, 0.0), draw_around)


@dataclass(frozen=True, eq=False)
class ScalePosterior:
    """The fits on the grid of log τ, with their posterior weights."""

    fits: Sequence[ScaleFit]

    @cached_property
    def mixture(self) -> LaplaceMixture:
        return LaplaceMixture([fit.component() for fit in self.fits])

    @property
    def weights(self) -> FloatArray:
        return self.mixture.weights

    @property
    def scale(self) -> float:
        """The learnt τ: its mean on the log scale."""
        return float(np.exp(self.weights @ [fit.log_scale for fit in self.fits]))

    @property
    def parameters(self) -> FloatArray:
        """Posterior mean of the scores, θ and β."""
        return np.asarray(self.weights @ np.array([fit.found.parameters for fit in self.fits]))

    @property
    def slowest(self) -> OptimizeResult:
        """The optimum that is farthest from convergence."""
        return max((fit.found for fit in self.fits), key=lambda found: (not found.converged, found.distance))

    @cached_property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the centred scores: within the fits and between them."""
        centre = self.fits[0].items.centre
        total = np.zeros_like(self.fits[0].covariance)
        for weight, fit in zip(self.weights, self.fits, strict=True):
            apart = centre(fit.scores) - self.mixture.mean
            total += weight * (centre(centre(fit.covariance).T) + np.outer(apart, apart))
        return total


@dataclass(frozen=True, kw_only=True)
class Solver:
    """How to fit: when Newton's method stops, and the prior of τ or its value.

    Parameters
    ----------
    tolerance, max_steps : float, int
        Of Newton's method.
    prior_scale, prior_power : float
        A and a in the prior density of τ, ∝ τ^(a − 1) / (1 + τ²/A²).
    scale : float, optional
        τ, if it is not learnt.
    """

    tolerance: float
    max_steps: int
    prior_scale: float
    prior_power: float
    scale: float | None = None

    def fit(
        self, votes: Votes, items: Items, kernels: Sequence[FloatArray] = (), shape: FloatArray | None = None
    ) -> ScalePosterior:
        """The posterior of the scores, given the matrices Kₖ and the diagonal of D, by default ones."""
        at = partial(self._fit_at, votes, items, kernels, np.ones(len(items)) if shape is None else shape)
        if self.scale is not None:
            return ScalePosterior([at(float(np.log(self.scale)), votes.start, np.zeros(len(kernels)))])
        first = at(-3 * _STEP, votes.start, np.zeros(len(kernels)))
        fits = {-3: first}
        for direction in (1, -1):
            place, last = -3 + direction, first
            while _LOWEST <= place <= _HIGHEST:
                last = fits[place] = at(place * _STEP, last.found.parameters, last.log_variances)
                if last.log_density < max(fit.log_density for fit in fits.values()) - _NEGLIGIBLE:
                    break
                place += direction
        return ScalePosterior([fits[place] for place in sorted(fits)])

    def _fit_at(
        self,
        votes: Votes,
        items: Items,
        kernels: Sequence[FloatArray],
        shape: FloatArray,
        log_scale: float,
        start: FloatArray,
        log_variances: FloatArray,
    ) -> ScaleFit:
        """The mode at one τ, with the variances at their best: Fisher scoring on log v."""
        for _ in range(_MAX_ROUNDS if kernels else 1):
            fit = self._fit_given(votes, items, kernels, shape, log_scale, start, log_variances)
            if not kernels:
                break
            step = _scoring_step(fit, kernels)
            start = fit.found.parameters
            moved = np.clip(log_variances + step, _LOWEST_LOG_VARIANCE, _HIGHEST_LOG_VARIANCE)
            if np.max(np.abs(moved - log_variances)) < _SETTLED:
                break
            log_variances = moved
        return fit

    def _fit_given(
        self,
        votes: Votes,
        items: Items,
        kernels: Sequence[FloatArray],
        shape: FloatArray,
        log_scale: float,
        start: FloatArray,
        log_variances: FloatArray,
    ) -> ScaleFit:
        prior = np.diag(np.exp(2 * log_scale) * shape)
        for log_variance, kernel in zip(log_variances, kernels, strict=True):
            prior += np.exp(log_variance) * kernel
        root = invert_triangular(np.linalg.cholesky(prior))
        precision = np.asarray(root.T @ root)
        objective = partial(votes.objective, precision=precision)
        found = maximize(objective, start, tolerance=self.tolerance, max_steps=self.max_steps)
        factor = np.linalg.cholesky(_curvature(found))
        # log det W = −2 Σ log of the diagonal of the inverse factor
        evidence = found.evaluation.value - float(np.log(np.diag(factor)).sum()) + float(np.log(np.diag(root)).sum())
        log_prior = _log_prior(log_scale, self.prior_scale, self.prior_power) + sum(
            _log_prior(0.5 * value, _VARIANCE_SCALE, _POWER / len(kernels)) for value in log_variances
        )
        return ScaleFit(log_scale, log_variances, found, precision, evidence + log_prior, items)


def _scoring_step(fit: ScaleFit, kernels: Sequence[FloatArray]) -> FloatArray:
    """Step on log v by the gradient of the evidence and its expected information; H is taken as constant."""
    shrunk = fit.precision @ fit.scores
    # the marginal precision of the votes' own estimate of the scores, (W + information⁻¹)⁻¹
    marginal = fit.precision - fit.precision @ fit.covariance @ fit.precision
    variances = np.exp(fit.log_variances)
    products = [variance * (marginal @ kernel) for variance, kernel in zip(variances, kernels, strict=True)]
    gradient = np.array(
        [
            0.5 * (variance * float(shrunk @ kernel @ shrunk) - float(np.trace(product)))
            for variance, kernel, product in zip(variances, kernels, products, strict=True)
        ]
    )
    information = np.array([[0.5 * float(np.sum(a * b.T)) for b in products] for a in products])
    ratio = variances / _VARIANCE_SCALE**2
    gradient += 0.5 * _POWER / len(kernels) - ratio / (1 + ratio)
    information += np.diag(ratio / (1 + ratio) ** 2 + _PRIOR_INFORMATION)
    return np.clip(np.linalg.solve(information, gradient), -_LARGEST_STEP, _LARGEST_STEP)


def _log_prior(log_scale: float, scale: float, power: float) -> float:
    """Log prior density of the log of a standard deviation, up to a constant."""
    return power * log_scale - float(np.log1p(np.exp(2 * log_scale) / scale**2))


def _curvature(found: OptimizeResult) -> FloatArray:
    return found.evaluation.curvature.matrix  # type: ignore[attr-defined,no-any-return]
