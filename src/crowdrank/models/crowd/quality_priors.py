"""Grids of quality and of the tendency to tie, and the distributions of both in the population of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array
from crowdrank.data import EncodedSideInformation
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.models.crowd.marginal_likelihood import GridPoints, GridTables

# Points of the common grid: enough for the answers of one annotator, at least and at most this many.
_FEWEST_POINTS, _MOST_POINTS = 16, 40
# Spacing of grid points in standard deviations of an annotator's posterior. The trapezoidal rule has a relative error
# of 2·exp(−2π²/1.5²) = 3e-4 there.
_SPACING = 1.5
_TIE_POINTS, _TIE_RANGE = 24, (-5.0, 5.0)
_MIN_VARIANCE = 1e-24


class QualityDistribution(NamedTuple):
    """Beta distribution of quality among annotators.

    Parameters
    ----------
    mean : float
        Mean quality.
    concentration : float
        α + β; large where annotators are alike.
    """

    mean: float
    concentration: float

    @property
    def alpha(self) -> float:
        return self.mean * self.concentration

    @property
    def beta(self) -> float:
        return (1.0 - self.mean) * self.concentration


class TieDistribution(NamedTuple):
    """How ties arise.

    Parameters
    ----------
    mean, scale : float
        Normal distribution of log ν, the tendency to tie, among annotators.
    slope : float
        How much a difference of scores counts for ties: 1 in Davidson's model, 0 if ties say nothing about the scores.
    effect : array of float
        How much more than others each item is tied, on the scale of log ν; empty if ties are not modelled.
    """

    mean: float
    scale: float
    slope: float
    effect: FloatArray

    @property
    def numbers(self) -> tuple[float, float, float]:
        return self.mean, self.scale, self.slope


NO_TIES = TieDistribution(0.0, 1.0, 0.0, np.zeros(0))


@dataclass(frozen=True, eq=False)
class EffectGrids:
    """The grid of each annotator, in the angle φ with η = sin²φ.

    In φ the posterior of an annotator with n answers has a standard deviation of about 1/(2√n), whatever η is, so equal
    steps in φ suit all values. Annotators with more answers than the common grid resolves have a finer grid of their
    own around their estimate; known qualities are grids of a single value.

    Parameters
    ----------
    angle : array of float, grids × points
        φ of each grid point.
    step : array of float
        Distance between the points of each grid; 0 for known qualities.
    grid_of : array of int
        Which grid each annotator has. Grid 0 is the common one.
    nu : array of float
        Tendencies to tie; empty if ties are not modelled.
    """

    angle: FloatArray
    step: FloatArray
    grid_of: Int32Array
    nu: FloatArray

    def points(self, tie: TieDistribution) -> GridPoints:
        """The values that the likelihood sums over, with the slope and the item effects of ties."""
        return GridPoints(np.sin(self.angle) ** 2, self.grid_of, self.nu, tie.slope, tie.effect)

    def log_weights(self, quality: QualityDistribution) -> FloatArray:
        """Log prior weight of every grid point (grids × points): Beta(α, β) in φ, times the step."""
        alpha, beta = quality.alpha, quality.beta
        log_sin, log_cos, log_step, is_known = self._logarithms
        weights = (2.0 * alpha - 1.0) * log_sin + (2.0 * beta - 1.0) * log_cos + (log_step - _log_beta(alpha, beta))
        # the common grid covers all qualities, so its weights sum to one; known qualities have no prior
        weights[0] -= _log_sum(weights[0])
        weights[is_known] = -np.log(self.angle.shape[1])
        return np.asarray(weights)

    @cached_property
    def _logarithms(self) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        with np.errstate(divide="ignore"):
            log_step = np.log(2.0 * self.step)[:, None]
            return np.log(np.sin(self.angle)), np.log(np.cos(self.angle)), log_step, self.step == 0

    def log_tie_weights(self, tie: TieDistribution) -> FloatArray:
        """Log prior weight of every tendency to tie."""
        weights = -0.5 * ((np.log(self.nu) - tie.mean) / tie.scale) ** 2
        return np.asarray(weights - _log_sum(weights)) if len(weights) else weights

    def recentred(self, tables: GridTables, quality: QualityDistribution, answers: FloatArray) -> EffectGrids:
        """The same, with the own grids around the current posterior means of their annotators."""
        own = np.flatnonzero(self.grid_of > 0)
        own = own[self.step[self.grid_of[own]] > 0]
        if not len(own):
            return self
        weights = grid_posterior(tables.quality, self.log_weights(quality)[self.grid_of])[own]
        centre = np.sum(weights * self.angle[self.grid_of[own]], axis=1)
        angle = self.angle.copy()
        angle[self.grid_of[own]] = _around(centre, self.step[self.grid_of[own]], angle.shape[1])
        return EffectGrids(angle, self.step, self.grid_of, self.nu)


def make_grids(
    answers: FloatArray, agreement: FloatArray, known: EncodedSideInformation, gold_annotator: int | None, ties: bool
) -> EffectGrids:
    """Grids for annotators with this many answers, whose share of agreement with initial scores is given."""
    for value in (*known.quality.values(), *(end for ends in known.between.values() for end in ends)):
        if not 0 <= value <= 1:
            raise SettingError(f"The quality of an annotator must lie between 0 and 1, got {value}.")
    most = float(np.max(answers, initial=1.0))
    points = int(np.clip(np.ceil(np.pi * np.sqrt(most) / _SPACING), _FEWEST_POINTS, _MOST_POINTS))
    step = 0.5 * np.pi / points
    angles, steps = [(np.arange(points) + 0.5) * step], [step]
    grid_of = np.zeros(len(answers), np.int32)
    fixed = dict(known.quality) | ({} if gold_annotator is None else {gold_annotator: 1.0})
    for k in np.flatnonzero(np.pi * np.sqrt(answers) / _SPACING > points).tolist():
        if k not in fixed and k not in known.between:
            own = 0.5 * _SPACING / np.sqrt(answers[k])
            grid_of[k] = len(angles)
            centre = np.arcsin(np.sqrt(np.clip(agreement[k], 0.0, 1.0)))
            angles.append(_around(np.array([centre]), np.array([own]), points)[0])
            steps.append(own)
    for k, value in fixed.items():
        grid_of[k] = len(angles)
        angles.append(np.full(points, np.arcsin(np.sqrt(value))))
        steps.append(0.0)
    for k, (low, high) in known.between.items():
        ends = np.arcsin(np.sqrt(np.clip((low, high), 0.0, 1.0)))
        grid_of[k] = len(angles)
        own = float(ends[1] - ends[0]) / points
        angles.append(ends[0] + (np.arange(points) + 0.5) * own)
        steps.append(own)
    nu = np.exp(np.linspace(*_TIE_RANGE, _TIE_POINTS)) if ties else np.zeros(0)
    return EffectGrids(np.array(angles), np.array(steps), grid_of, nu)


def _around(centre: FloatArray, step: FloatArray, points: int) -> FloatArray:
    """Equally spaced angles around each centre, shifted to lie strictly between 0 and π/2."""
    reach = 0.5 * points * step
    centre = np.clip(centre, reach, 0.5 * np.pi - reach)
    return np.asarray(centre[:, None] + (np.arange(points) + 0.5 - 0.5 * points) * step[:, None])


def _log_beta(alpha: float, beta: float) -> float:
    return lgamma(alpha) + lgamma(beta) - lgamma(alpha + beta)


def _log_sum(values: FloatArray) -> float:
    largest = float(np.max(values))
    return largest + float(np.log(np.sum(np.exp(values - largest))))


def grid_posterior(log_likelihood: FloatArray, log_prior: FloatArray) -> FloatArray:
    """Posterior weights of the grid points of each annotator (rows sum to one)."""
    joint = log_likelihood + log_prior
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def grid_log_evidence(log_likelihood: FloatArray, log_prior: FloatArray) -> float:
    """Sum over annotators of the log-likelihood with their grid summed out."""
    return float(np.sum(grid_log_evidences(log_likelihood, log_prior)))


def grid_log_evidences(log_likelihood: FloatArray, log_prior: FloatArray) -> FloatArray:
    """Log-likelihood of each annotator with their grid summed out."""
    joint = log_likelihood + log_prior
    largest = joint.max(axis=1)
    return np.asarray(largest + np.log(np.sum(np.exp(joint - largest[:, None]), axis=1)))


def grid_quantiles(weights: FloatArray, values: FloatArray, levels: tuple[float, ...]) -> list[FloatArray]:
    """Quantiles of each annotator's posterior over its grid, interpolated between the points."""
    order = np.cumsum(weights, axis=1) - 0.5 * weights
    return [
        np.array([np.interp(level, own, points) for own, points in zip(order, values, strict=True)]) for level in levels
    ]


class WeighedGrids(NamedTuple):
    """Posterior weights of the grid points of every annotator, alone and times orthogonal polynomials.

    Parameters
    ----------
    weights : array of float, (1 + rank) × annotators × points
        Weights p, p·z₁ and, for rank 2, p·z₂ with polynomials z of the points that are orthonormal under p.
    log_evidence : float
        Sum over annotators of the log-likelihood with their grid summed out.
    """

    weights: FloatArray
    log_evidence: float


def weigh_grids(
    log_likelihood: FloatArray,
    log_prior: FloatArray,
    points: FloatArray,
    grid_of: Int32Array,
    rank: int,
    compile_loops: bool,
) -> WeighedGrids:
    """Posterior weights, given the log-likelihood of every annotator and the log prior of every grid at its points."""
    if compile_loops:
        found = np.zeros((1 + rank, *log_likelihood.shape))
        value = _weigh_loop(log_likelihood, log_prior, points, grid_of, found, _MIN_VARIANCE)
        return WeighedGrids(found, float(value))
    own = log_prior[grid_of]
    weights = grid_posterior(log_likelihood, own)
    found = with_polynomials(weights, points[grid_of], rank)
    return WeighedGrids(found, grid_log_evidence(log_likelihood, own))


def with_polynomials(weights: FloatArray, values: FloatArray, rank: int) -> FloatArray:
    """Stack p, p·z₁ and, for rank 2, p·z₂: polynomials of the values that are orthonormal under p, per row."""
    found = np.empty((1 + rank, *weights.shape))
    found[0] = weights
    mean = np.einsum("kg,kg->k", weights, values)
    centred = values - mean[:, None]
    first = weights * centred
    # an annotator whose posterior is a single point has no such direction
    scale = _inverse_root(np.einsum("kg,kg->k", first, centred))[:, None]
    linear = centred * scale
    np.multiply(first, scale, out=found[1])
    if rank == 2:
        square = linear * linear
        skewness = np.einsum("kg,kg->k", found[1], square)[:, None]
        quadratic = np.where(scale > 0.0, square - 1.0 - skewness * linear, 0.0)
        weighted = weights * quadratic
        np.multiply(weighted, _inverse_root(np.einsum("kg,kg->k", weighted, quadratic))[:, None], out=found[2])
    return found


def _inverse_root(variance: FloatArray) -> FloatArray:
    return np.asarray(np.where(variance > _MIN_VARIANCE, 1.0 / np.sqrt(np.maximum(variance, _MIN_VARIANCE)), 0.0))


@compiled()
def _weigh_loop(log_likelihood, log_prior, points, grid_of, found, min_variance):  # type: ignore[no-untyped-def]
    rank, size = found.shape[0] - 1, log_likelihood.shape[1]
    value = 0.0
    for k in range(len(grid_of)):
        prior, x, weights = log_prior[grid_of[k]], points[grid_of[k]], found[0, k]
        largest = -np.inf
        for g in range(size):
            largest = max(largest, log_likelihood[k, g] + prior[g])
        total, mean, variance = 0.0, 0.0, 0.0
        for g in range(size):
            weights[g] = np.exp(log_likelihood[k, g] + prior[g] - largest)
            total += weights[g]
        value += largest + np.log(total)
        for g in range(size):
            weights[g] /= total
            mean += weights[g] * x[g]
        for g in range(size):
            variance += weights[g] * (x[g] - mean) ** 2
        if variance <= min_variance:
            continue
        scale = 1.0 / np.sqrt(variance)
        skewness = 0.0
        for g in range(size):
            linear = (x[g] - mean) * scale
            found[1, k, g] = weights[g] * linear
            skewness += weights[g] * linear**3
        if rank == 1:
            continue
        square = 0.0
        for g in range(size):
            linear = (x[g] - mean) * scale
            quadratic = linear * linear - 1.0 - skewness * linear
            found[2, k, g] = weights[g] * quadratic
            square += weights[g] * quadratic * quadratic
        scale = 1.0 / np.sqrt(square) if square > min_variance else 0.0
        for g in range(size):
            found[2, k, g] *= scale
    return value
