"""Graded response likelihood (Samejima 1969) with annotators.

Annotator k grades item i above class c if αₖ·sᵢ + bₖ + ε > exp(tₖ)·τ_c, with ε standard logistic:

    P(grade = c) = σ(exp(t)·τ_c − b − α·s) − σ(exp(t)·τ_{c−1} − b − α·s)

α is the annotator's discrimination, b the leniency, t the log stretch of the thresholds. The parameter vector holds the
scores, then b, t and α − 1 of the annotators, then the thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray


class RatingShard(NamedTuple):
    """A shard of ratings, with the numbers of the parameters that they depend on.

    Parameters
    ----------
    item, annotator : array
        Item and annotator of each rating.
    low, high : array
        The thresholds below and above the grade; arbitrary if there is none.
    is_lowest, is_highest : array of bool
        Whether there is no threshold below, or above.
    weight : array
        Weight of each rating.
    items, annotators : int
        Numbers of items and annotators.
    """

    item: IntArray
    annotator: IntArray
    low: IntArray
    high: IntArray
    is_lowest: BoolArray
    is_highest: BoolArray
    weight: FloatArray
    items: int
    annotators: int

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> Sequence[RatingShard]:
        columns = [np.array_split(column, parts) for column in self[:-2]]
        return [RatingShard._make((*cut, self.items, self.annotators)) for cut in zip(*columns, strict=True)]


class ValueAndGradient(NamedTuple):
    """A function value with its gradient."""

    value: float
    gradient: FloatArray


class HessianBlocks(NamedTuple):
    """Blocks of the negative Hessian.

    Parameters
    ----------
    item : array of shape (items,)
        The diagonal block of the scores: a grade involves one item.
    annotator : array of shape (annotators, 3, 3)
        The diagonal blocks of the annotators' parameters.
    threshold : sparse array, thresholds × thresholds
        The block of the thresholds.
    item_annotator, item_threshold, annotator_threshold : sparse array
        The blocks off the diagonal; the annotators' parameters are in the order of the parameter vector.
    positive : array
        Diagonal of the positive semi-definite (Gauss-Newton) part, for damping.
    """

    item: FloatArray
    annotator: FloatArray
    threshold: Any
    item_annotator: Any
    item_threshold: Any
    annotator_threshold: Any
    positive: FloatArray


def log_likelihood(shard: RatingShard, x: FloatArray) -> ValueAndGradient:
    """Log-likelihood of the ratings, and its gradient."""
    d = _derivatives(shard, x)
    value = float(np.sum(shard.weight * d.log_probability))
    upper, lower = shard.weight * d.upper, shard.weight * d.lower
    predictor = -(upper + lower)
    annotators, thresholds = shard.annotators, len(x) - shard.items - 3 * shard.annotators
    gradient = np.concatenate(
        (
            np.bincount(shard.item, predictor * d.discrimination, shard.items),
            np.bincount(shard.annotator, predictor, annotators),
            np.bincount(shard.annotator, upper * d.high + lower * d.low, annotators),
            np.bincount(shard.annotator, predictor * d.score, annotators),
            np.bincount(shard.high, upper * d.stretch, thresholds)
            + np.bincount(shard.low, lower * d.stretch, thresholds),
        )
    )
    return ValueAndGradient(value, gradient)


def hessian(shard: RatingShard, x: FloatArray, residual: float = 1.0) -> HessianBlocks:
    """The negative Hessian, by blocks.

    The ends of the grade's interval depend on the predictor η = b + α·s, on the stretch and on one threshold each. The
    chain rule adds the gradient in η times ∂²η/∂s∂α = 1, and that in the ends times their second derivatives in the
    stretch. The expectation of these terms is zero; `residual=0` leaves them out, and the matrix is positive
    semi-definite (Gauss-Newton).
    """
    from scipy.sparse import coo_array

    d, weight = _derivatives(shard, x), shard.weight
    items, annotators = shard.items, shard.annotators
    thresholds = len(x) - items - 3 * annotators
    uu, ll, mixed = weight * d.upper_upper, weight * d.lower_lower, weight * d.mixed
    upper, lower = residual * weight * d.upper, residual * weight * d.lower
    predictor, high_predictor, low_predictor = uu + ll - 2 * mixed, mixed - uu, mixed - ll
    stretch_predictor = d.high * high_predictor + d.low * low_predictor
    stretch = d.high**2 * uu + d.low**2 * ll - 2 * d.high * d.low * mixed
    second = upper * d.high + lower * d.low
    high_stretch = d.stretch * (d.high * uu - d.low * mixed - upper)
    low_stretch = d.stretch * (d.low * ll - d.high * mixed - lower)
    by_annotator = [
        np.bincount(shard.annotator, values, annotators)
        for values in (
            predictor,
            stretch_predictor,
            predictor * d.score,
            stretch - second,
            stretch_predictor * d.score,
            predictor * d.score**2,
        )
    ]
    item = np.bincount(shard.item, predictor * d.discrimination**2, items)
    own_threshold = np.bincount(shard.high, uu * d.stretch**2, thresholds).astype(np.float64)
    own_threshold += np.bincount(shard.low, ll * d.stretch**2, thresholds)
    positive = (by_annotator[0], np.bincount(shard.annotator, stretch, annotators), by_annotator[5])

    def sparse(values: list[FloatArray], rows: list[IntArray], columns: list[IntArray], shape: tuple[int, int]) -> Any:
        cells = (np.concatenate(rows), np.concatenate(columns))
        return coo_array((np.concatenate(values), cells), shape=shape).tocsr()

    who = [shard.annotator + n * annotators for n in range(3)]
    cross = [d.discrimination * values for values in (predictor, stretch_predictor, predictor * d.score)]
    cross[2] = cross[2] + upper + lower
    high = (d.stretch * high_predictor, high_stretch, d.stretch * high_predictor * d.score)
    low = (d.stretch * low_predictor, low_stretch, d.stretch * low_predictor * d.score)
    pairs = np.arange(thresholds)
    between = -mixed * d.stretch**2
    return HessianBlocks(
        item.astype(np.float64),
        np.stack(by_annotator, axis=1)[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]].astype(np.float64),
        sparse(
            [own_threshold.astype(np.float64), between, between],
            [pairs, shard.low, shard.high],
            [pairs, shard.high, shard.low],
            (thresholds, thresholds),
        ),
        sparse(cross, [shard.item] * 3, who, (items, 3 * annotators)),
        sparse(
            [d.discrimination * high[0], d.discrimination * low[0]],
            [shard.item] * 2,
            [shard.high, shard.low],
            (items, thresholds),
        ),
        sparse([*high, *low], who * 2, [shard.high] * 3 + [shard.low] * 3, (3 * annotators, thresholds)),
        np.concatenate((item, *positive, own_threshold)),
    )


class _Derivatives(NamedTuple):
    """Per rating: log P, its derivatives in the upper and lower end of the interval, and its parameters.

    `upper` and `lower` are first derivatives; `upper_upper`, `lower_lower` are negative second derivatives and `mixed`
    the mixed one. `high` and `low` are the stretched thresholds, zero where there is none.
    """

    log_probability: FloatArray
    upper: FloatArray
    lower: FloatArray
    upper_upper: FloatArray
    lower_lower: FloatArray
    mixed: FloatArray
    score: FloatArray
    discrimination: FloatArray
    stretch: FloatArray
    high: FloatArray
    low: FloatArray


def _derivatives(shard: RatingShard, x: FloatArray) -> _Derivatives:
    from scipy.special import expit

    items, annotators = shard.items, shard.annotators
    score = x[shard.item]
    leniency, log_stretch, excess = x[items : items + 3 * annotators].reshape(3, annotators)[:, shard.annotator]
    thresholds = x[items + 3 * annotators :]
    factor, discrimination = np.exp(log_stretch), 1.0 + excess
    high, low = factor * thresholds[shard.high], factor * thresholds[shard.low]
    predictor = leniency + discrimination * score
    upper, lower = high - predictor, low - predictor
    has_upper, has_lower = ~shard.is_highest, ~shard.is_lowest
    both = has_upper & has_lower
    gap = np.where(both, high - low, np.inf)
    crossed = gap <= 0
    gap = np.where(crossed, 1.0, gap)
    above, below = has_upper * expit(-upper), has_lower * expit(lower)
    # σ(a) − σ(b) = σ(a)·σ(−b)·(1 − exp(b − a)): no digits are lost in either tail.
    log_probability = _log_expit(upper, has_upper) + _log_expit(-lower, has_lower) + np.log(-np.expm1(-gap))
    gap_gradient = 1.0 / np.expm1(np.minimum(gap, 700.0)) * both  # d log(1 − exp(−gap)) / d gap
    mixed = gap_gradient * (1.0 + gap_gradient)
    return _Derivatives(
        np.where(crossed, -np.inf, log_probability),
        above + gap_gradient,
        -below - gap_gradient,
        above * expit(upper) + mixed,
        below * expit(-lower) + mixed,
        mixed,
        score,
        discrimination,
        factor,
        high * has_upper,
        low * has_lower,
    )


def _log_expit(z: FloatArray, exists: BoolArray) -> FloatArray:
    """log σ(z), without overflow; zero where there is no such end."""
    return np.asarray(np.where(exists, np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z))), 0.0))


def leading_pattern(shard: RatingShard, thresholds: FloatArray, steps: int = 60) -> tuple[FloatArray, FloatArray]:
    """Scores of items, with unit variance, and loadings of annotators that explain the grades best: a rank-one fit.

    A grade counts as the middle of its interval between the thresholds, or 1 beyond the last. Power iteration on these
    values, centred by annotator, from equal loadings, so that it follows the majority.
    """
    low, high = thresholds[shard.low], thresholds[shard.high]
    value = 0.5 * (np.where(shard.is_lowest, high - 2.0, low) + np.where(shard.is_highest, low + 2.0, high))
    total = np.bincount(shard.annotator, shard.weight, shard.annotators)
    mean = np.bincount(shard.annotator, shard.weight * value, shard.annotators) / np.maximum(total, 1e-12)
    residual = shard.weight * (value - mean[shard.annotator])
    loadings, scores = np.ones(shard.annotators), np.zeros(shard.items)
    for _ in range(steps):
        scores = np.asarray(np.bincount(shard.item, residual * loadings[shard.annotator], shard.items), np.float64)
        scores /= max(float(np.std(scores)), 1e-12)
        loadings = np.asarray(np.bincount(shard.annotator, residual * scores[shard.item], shard.annotators), np.float64)
        loadings /= max(float(np.abs(loadings).max()), 1e-12)
    return (scores, loadings) if loadings.sum() >= 0 else (-scores, -loadings)


def ordering_probability(difference: FloatArray) -> FloatArray:
    """P(difference + ε₁ − ε₂ > 0), ε standard logistic: the probability of ordering two items correctly."""
    size = np.abs(difference)
    q = np.exp(-size)
    near_zero = size < 1e-3  # the formula is 0/0 at zero: use its series ½ + x/6
    gap = np.where(near_zero, 1.0, 1.0 - q)
    probability = np.where(near_zero, 0.5 + size / 6, (gap - size * q) / gap**2)
    return np.asarray(np.where(difference < 0, 1.0 - probability, probability))
