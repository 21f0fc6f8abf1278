"""Posterior of the humans' scores, given what the judges' votes say about the judges' scores.

The scores are s = Σₖ bₖzₖ + Σᵣ bᵣxᵣ + δ with δ ~ N(0, τ²D) and D diagonal. Judge k's scores zₖ are known up to
N(ẑₖ, Cₖ). Regressors xᵣ say what biases the judges: the items of a judge's own family, and features. The weights have
the prior b ~ N(0, Ω), for judges wide in common and narrower in what sets one judge apart from the others. Given τ,
scores have the prior N(0, W) with

    W = τ²D + Σₖ bₖ²Cₖ + ZᵀΩZ,

where the rows of Z are ẑₖ and xᵣ, and bₖ in the second term is the posterior mean of the weight, found by iteration.
The scores have a normal approximation at their mode. The mixture of these over a grid of log τ, weighted by the Laplace
evidence, is the posterior. That τ is uncertain when votes are few is thus part of every interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.inference.laplace_mixture import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import OptimizeResult, maximize
from crowdrank.inference.positive_definite import invert_triangular
from crowdrank.models.commensurate.vote_likelihood import Votes

# The grid of log τ: its step, its first and highest point, and how far below the best point its log density ends.
_STEP = 0.4
_FIRST, _HIGHEST = -3, 10
_NEGLIGIBLE = 5.0
# Prior standard deviations of the sum of the weights, and of the differences between judges times √K.
_WEIGHT_SCALE, _WEIGHT_DIFFERENCE = 2.0, 0.5
# The weights are iterated until they change by less than this.
_SETTLED, _MAX_ROUNDS = 0.01, 30


@dataclass(frozen=True, eq=False)
class ScaleFit:
    """The fit at one value of log τ.

    Parameters
    ----------
    log_scale : float
        log τ.
    weights : array of float
        Posterior mean of the weight bₖ of each judge.
    found : OptimizeResult
        The mode, with the curvature there.
    precision : array
        W⁻¹.
    log_density : float
        Log evidence, plus the log prior density of log τ.
    items : Items
        The items.
    """

    log_scale: float
    weights: FloatArray
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
        return invert_triangular(np.asarray(np.linalg.cholesky(_curvature(self.found))))

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
    def effect_errors(self) -> FloatArray:
        """Posterior standard deviation of θ and β."""
        size = len(self.fits[0].items)
        modes = np.array([fit.found.parameters[size:] for fit in self.fits])
        variances = np.array([np.sum(fit.root[:, size:] ** 2, axis=0) for fit in self.fits])
        return np.asarray(np.sqrt(self.weights @ (variances + (modes - self.parameters[size:]) ** 2)))

    def weight_moments(self, said: Prediction) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and covariance of the weights of judges and regressors."""
        means = np.array([said.mean_weights(fit) for fit in self.fits])
        mean = self.weights @ means
        covariance = np.zeros((len(mean), len(mean)))
        for probability, fit, apart in zip(self.weights, self.fits, means - mean, strict=True):
            covariance += probability * (said.weight_covariance(fit) + np.outer(apart, apart))
        return mean, covariance

    @cached_property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the centred scores: within the fits and between them."""
        centre = self.fits[0].items.centre
        total = np.zeros_like(self.fits[0].covariance)
        for weight, fit in zip(self.weights, self.fits, strict=True):
            apart = centre(fit.scores) - self.mixture.mean
            total += weight * (centre(centre(fit.covariance).T) + np.outer(apart, apart))
        return total


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the judges say about the scores.

    Parameters
    ----------
    scores : array of float, judges × items
        ẑₖ.
    covariances : sequence of arrays, items × items
        Cₖ.
    shape : array of float
        Diagonal of D.
    regressors : mapping of str to array of float
        xᵣ by name.
    bias_scale : float, default 0.15
        Prior standard deviation of the weight of a regressor.
    """

    scores: FloatArray
    covariances: Sequence[FloatArray]
    shape: FloatArray
    regressors: Mapping[str, FloatArray] = field(default_factory=dict)
    bias_scale: float = 0.15

    @classmethod
    def none(cls, items: Items) -> Prediction:
        """No judges."""
        return cls(np.zeros((0, len(items))), (), np.ones(len(items)))

    @cached_property
    def rows(self) -> FloatArray:
        """Z: the judges' scores, then the regressors."""
        return np.concatenate((self.scores, *(values[None] for values in self.regressors.values())))

    @cached_property
    def weight_prior(self) -> FloatArray:
        """Ω: judges who order the items alike have like weights, and one who answers in reverse the negative."""
        count = len(self.scores)
        prior = self.bias_scale**2 * np.eye(len(self.rows))
        if count:
            direction = np.linalg.eigh(self.scores @ self.scores.T)[1][:, -1]
            together = np.where(direction < 0, -1.0, 1.0) / count**0.5
            shared = np.outer(together, together)
            apart = np.eye(count) - shared
            prior[:count, :count] = (_WEIGHT_SCALE**2 * shared + _WEIGHT_DIFFERENCE**2 * apart) / count
        return prior

    def error(self, log_scale: float, weights: FloatArray) -> FloatArray:
        """Covariance of the scores around the prediction, for known weights."""
        total = np.diag(np.exp(2 * log_scale) * self.shape)
        for weight, covariance in zip(weights[: len(self.scores)], self.covariances, strict=True):
            total += weight**2 * covariance
        return total

    def mean_weights(self, fit: ScaleFit) -> FloatArray:
        """Posterior mean of the weights."""
        return np.asarray(self.weight_prior @ self.rows @ (fit.precision @ fit.scores))

    def weight_covariance(self, fit: ScaleFit) -> FloatArray:
        """Posterior covariance of the weights."""
        # the marginal precision of the votes' own estimate of the scores, (W + information⁻¹)⁻¹
        marginal = fit.precision - fit.precision @ fit.covariance @ fit.precision
        explained = self.weight_prior @ self.rows
        return np.asarray(self.weight_prior - explained @ marginal @ explained.T)


@dataclass(frozen=True, kw_only=True)
class Solver:
    """How to fit: when Newton's method stops, and the prior of τ or its value.

    Parameters
    ----------
    tolerance, max_steps : float, int
        Of Newton's method.
    log_prior : callable
        Log prior density of log τ.
    lowest : int, default -9
        Lowest point of the grid of log τ, in steps.
    scale : float, optional
        τ, if it is not learnt.
    """

    tolerance: float
    max_steps: int
    log_prior: Callable[[float], float]
    lowest: int = -9
    scale: float | None = None

    def fit(self, votes: Votes, items: Items, judges: Prediction) -> ScalePosterior:
        """The posterior of the scores, given the votes and what the judges say."""
        at = partial(self._fit_at, votes, items, judges)
        equal = np.zeros(len(judges.rows))
        if self.scale is not None:
            return ScalePosterior([at(float(np.log(self.scale)), votes.start, equal)])
        first = at(_FIRST * _STEP, votes.start, equal)
        fits = {_FIRST: first}
        for direction in (1, -1):
            place, last = _FIRST + direction, first
            while self.lowest <= place <= _HIGHEST:
                last = fits[place] = at(place * _STEP, last.found.parameters, last.weights)
                if last.log_density < max(fit.log_density for fit in fits.values()) - _NEGLIGIBLE:
                    break
                place += direction
        return ScalePosterior([fits[place] for place in sorted(fits)])

    def _fit_at(
        self,
        votes: Votes,
        items: Items,
        judges: Prediction,
        log_scale: float,
        start: FloatArray,
        weights: FloatArray,
    ) -> ScaleFit:
        """The mode at one τ, with the weights in the prior equal to their posterior mean."""
        for _ in range(_MAX_ROUNDS):
            fit = self._fit_given(votes, items, judges, log_scale, start, weights)
            before, weights, start = weights, judges.mean_weights(fit), fit.found.parameters
            if not len(weights) or np.max(np.abs(weights - before)) < _SETTLED:
                break
        return fit

    def _fit_given(
        self,
        votes: Votes,
        items: Items,
        judges: Prediction,
        log_scale: float,
        start: FloatArray,
        weights: FloatArray,
    ) -> ScaleFit:
        prior = judges.error(log_scale, weights) + judges.rows.T @ judges.weight_prior @ judges.rows
        root = invert_triangular(np.asarray(np.linalg.cholesky(prior)))
        precision = np.asarray(root.T @ root)
        objective = partial(votes.objective, precision=precision)
        found = maximize(objective, start, tolerance=self.tolerance, max_steps=self.max_steps)
        factor = np.linalg.cholesky(_curvature(found))
        # log det W = −2 Σ log of the diagonal of the inverse factor
        evidence = found.evaluation.value - float(np.log(np.diag(factor)).sum()) + float(np.log(np.diag(root)).sum())
        return ScaleFit(log_scale, weights, found, precision, evidence + self.log_prior(log_scale), items)


def _curvature(found: OptimizeResult) -> FloatArray:
    return found.evaluation.curvature.matrix  # type: ignore[attr-defined,no-any-return]
