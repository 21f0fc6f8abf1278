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

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.features import POSITION, feature_columns, typical_size
from crowdrank.inference.curvature import DenseCurvature, invert_triangular
from crowdrank.inference.laplace import LaplaceComponent, LaplaceMixture
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize
from crowdrank.models.pairwise.likelihood import DAVIDSON, FORMULAS, LOGISTIC

# The votes of the humans, or of one judge: log-likelihood of their scores, with gradient and Hessian.

# Standard deviations of the priors on the tie parameter θ and on effects β of the side and of features.
_TIE_SCALE, _EFFECT_SCALE = 3.0, 1.0
# Sides tell apart from items if at least this share of the variation of a side effect is not explained by items.
_MIXED_SIDES = 0.5


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of one kind of annotator, one row per pair in the order shown and outcome.

    Parameters
    ----------
    size : int
        Number of items.
    left, right : array of int
        The items of each row.
    outcome : array of float
        1 if left won, −1 if right won, 0 for a tie.
    weight : array of float
        How often.
    ties : {"davidson", "half"}
        How ties count.
    covariates : array of float, rows × effects
        What favours the left item of each row: 1 for the side itself, and features in units of their typical size.
    effects : mapping of str to float
        Names of the covariates, with their units.
    """

    size: int
    left: IntArray
    right: IntArray
    outcome: FloatArray
    weight: FloatArray
    ties: str
    covariates: FloatArray
    effects: Mapping[str, float]

    @classmethod
    def of(cls, comparisons: Comparisons, rows: AnyArray, ties: str, side: bool, features: Sequence[str] = ()) -> Votes:
        """Count the votes of some rows; with features, each vote is a row."""
        size = len(comparisons.items)
        chosen = rows & (comparisons.outcome != 0) if ties == "drop" else rows
        outcome = comparisons.outcome[chosen].astype(np.int64)
        left, right = comparisons.left[chosen].astype(np.int64), comparisons.right[chosen].astype(np.int64)
        weight = comparisons.weights[chosen].astype(np.float64)
        columns, effects = {}, {}
        for name, column in feature_columns(comparisons, features).items():
            if np.any(here := column[chosen]):
                effects[name] = typical_size(here, weight)
                columns[name] = here / effects[name]
        if not columns:
            cells, place = np.unique((left * size + right) * 3 + outcome + 1, return_inverse=True)
            weight = np.bincount(place, weight, len(cells)).astype(np.float64)
            left, right, outcome = cells // 3 // size, cells // 3 % size, cells % 3 - 1
        if side and comparisons.positions_known and _sides_are_mixed(left, right, weight, size):
            columns, effects = {POSITION: np.ones(len(left)), **columns}, {POSITION: 1.0, **effects}
        covariates = np.stack(list(columns.values()), axis=1) if columns else np.zeros((len(left), 0))
        return cls(size, left, right, outcome.astype(np.float64), weight, ties, covariates, effects)

    @cached_property
    def total(self) -> float:
        """Number of votes, weighted."""
        return float(self.weight.sum())

    @property
    def formula(self) -> int:
        return DAVIDSON if self.ties == "davidson" and bool(np.any(self.outcome == 0)) else LOGISTIC

    @property
    def has_tie(self) -> bool:
        """Whether the parameters have θ, after the scores and before the effects."""
        return self.formula == DAVIDSON

    @property
    def start(self) -> FloatArray:
        """Starting values: equal scores, θ at the share of ties, no effects."""
        x = np.zeros(self.size + self.has_tie + len(self.effects))
        if self.has_tie:
            share = float(np.clip(self.weight[self.outcome == 0].sum() / self.total, 0.01, 0.99))
            x[self.size] = np.log(2 * share / (1 - share))
        return x

    def tie(self, x: FloatArray) -> float:
        return float(x[self.size]) if self.has_tie else 0.0

    def log_likelihood(self, x: FloatArray) -> float:
        return float(self.weight @ FORMULAS[self.formula](self._margin(x), self.outcome, self.tie(x))[0])

    def objective(self, x: FloatArray, precision: FloatArray) -> Evaluation:
        """Log posterior at x = (scores, θ, β), with the precision matrix of the normal prior on scores."""
        size, first = self.size, self.size + self.has_tie
        parts = FORMULAS[self.formula](self._margin(x), self.outcome, self.tie(x))
        value, gradient_term, curvature, tie_gradient, cross, tie_curvature = (self.weight * part for part in parts)
        scores, prior = x[:size], precision @ x[:size]
        gradient, matrix = np.zeros(len(x)), np.zeros((len(x), len(x)))
        gradient[:size] = _against(self.left, self.right, gradient_term, size) - prior
        matrix[:size, :size] = _laplacian(self.left, self.right, curvature, size) + precision
        # −∂²/∂s∂β and −∂²/∂s∂θ are sums over rows of the same derivatives of the margin
        borders = [cross] if self.has_tie else []
        borders += [curvature * column for column in self.covariates.T]
        for n, border in enumerate(borders, start=size):
            matrix[:size, n] = matrix[n, :size] = _against(self.left, self.right, border, size)
        if self.has_tie:
            gradient[size], matrix[size, size] = tie_gradient.sum(), tie_curvature.sum()
            matrix[first:, size] = matrix[size, first:] = self.covariates.T @ cross
        gradient[first:] = self.covariates.T @ gradient_term
        matrix[first:, first:] = self.covariates.T @ (curvature[:, None] * self.covariates)
        weak = np.array([_TIE_SCALE**-2] * self.has_tie + [_EFFECT_SCALE**-2] * len(self.effects))
        gradient[size:] -= weak * x[size:]
        matrix.flat[size * (len(x) + 1) :: len(x) + 1] += weak
        log_prior = -0.5 * (float(scores @ prior) + float(weak @ x[size:] ** 2))
        return Evaluation(float(value.sum()) + log_prior, gradient, DenseCurvature(matrix))

    def _margin(self, x: FloatArray) -> FloatArray:
        return np.asarray(x[self.left] - x[self.right] + self.covariates @ x[self.size + self.has_tie :])


def _against(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Sum a column over the rows of each item, positive on the left and negative on the right."""
    return np.asarray(np.bincount(left, column, size) - np.bincount(right, column, size), np.float64)


def _laplacian(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Sum of c (e_left − e_right)(e_left − e_right)ᵀ over the rows."""
    off = np.bincount(left * size + right, column, size**2).reshape(size, size)
    matrix = -(off + off.T)
    matrix[np.diag_indices(size)] = -matrix.sum(axis=1)
    return np.asarray(matrix)


def item_means(left: IntArray, right: IntArray, column: FloatArray, size: int) -> FloatArray:
    """Least-squares values fᵢ of items with column ≈ f_left − f_right: by how much a feature favours each item."""
    laplacian = _laplacian(left, right, np.ones(len(left)), size)
    return np.asarray(np.linalg.lstsq(laplacian, _against(left, right, column, size), rcond=1e-9)[0])


def _sides_are_mixed(left: IntArray, right: IntArray, weight: FloatArray, size: int) -> bool:
    """Whether a side effect is distinct from scores: not if one system was always shown on the left."""
    if not len(left):
        return False
    against = _against(left, right, weight, size)
    explained = float(against @ np.linalg.lstsq(_laplacian(left, right, weight, size), against, rcond=1e-9)[0])
    return explained < (1 - _MIXED_SIDES) * float(weight.sum())


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
