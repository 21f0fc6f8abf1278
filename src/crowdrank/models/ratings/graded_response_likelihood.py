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


class SparsePattern(NamedTuple):
    """Where the sums of the 6 × 6 blocks of all ratings are in a compressed sparse matrix.

    Parameters
    ----------
    place : array
        Place of every cell of every block in the data of the matrix.
    columns, starts : arrays
        Column of every number, and where each row of the matrix begins.
    """

    place: IntArray
    columns: IntArray
    starts: IntArray

    @classmethod
    def of(cls, positions: IntArray, size: int) -> SparsePattern:
        """From the positions of each rating's parameters among `size`."""
        cells = positions[:, :, None] * size + positions[:, None, :]
        used, place = np.unique(cells.ravel(), return_inverse=True)
        starts = np.searchsorted(used, np.arange(size + 1) * size)
        return cls(place, (used % size).astype(np.int32), starts.astype(np.int32))


class RatingShard(NamedTuple):
    """A shard of ratings, with the positions of their parameters in the parameter vector.

    Parameters
    ----------
    item : array
        Position of the item's score.
    leniency : array
        Position of the annotator's leniency.
    low, high : array
        Positions of the thresholds below and above the grade; arbitrary if there is none.
    is_lowest, is_highest : array of bool
        Whether there is no threshold below, or above.
    weight : array
        Weight of each rating.
    annotators : int
        Number of annotators: the stretches follow the leniencies at this distance, and the discriminations them.
    pattern : SparsePattern, optional
        The cells of the Hessian; found anew for every Hessian if there is none.
    """

    item: IntArray
    leniency: IntArray
    low: IntArray
    high: IntArray
    is_lowest: BoolArray
    is_highest: BoolArray
    weight: FloatArray
    annotators: int
    pattern: SparsePattern | None = None

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> Sequence[RatingShard]:
        columns = [np.array_split(column, parts) for column in self[:-2]]
        return [RatingShard(*cut, self.annotators) for cut in zip(*columns, strict=True)]

    @property
    def positions(self) -> IntArray:
        """Positions of each rating's six parameters: score, leniency, stretch, discrimination, low, high threshold."""
        stretch = self.leniency + self.annotators
        return np.stack((self.item, self.leniency, stretch, stretch + self.annotators, self.low, self.high), axis=1)


def with_pattern(shard: RatingShard, size: int) -> tuple[RatingShard, tuple[()]]:
    """The shard with the cells of its Hessian for `size` parameters."""
    return shard._replace(pattern=SparsePattern.of(shard.positions, size)), ()


class ValueAndGradient(NamedTuple):
    """A function value with its gradient."""

    value: float
    gradient: FloatArray


def log_likelihood(shard: RatingShard, x: FloatArray) -> ValueAndGradient:
    """Log-likelihood of the ratings, and its gradient."""
    d = _derivatives(shard, x)
    value = float(np.sum(shard.weight * d.log_probability))
    rows = shard.weight[:, None] * (d.upper[:, None] * d.upper_jacobian + d.lower[:, None] * d.lower_jacobian)
    return ValueAndGradient(value, np.bincount(shard.positions.ravel(), rows.ravel(), len(x)).astype(np.float64))


def hessian(shard: RatingShard, x: FloatArray) -> tuple[Any, FloatArray]:
    """Negative Hessian as a sparse matrix, and the diagonal of its positive semi-definite (Gauss-Newton) part."""
    from scipy.sparse import csr_array

    d, positions, size = _derivatives(shard, x), shard.positions, len(x)
    jacobian = np.stack((d.upper_jacobian, d.lower_jacobian), axis=1)
    inner = np.stack((np.stack((d.upper_upper, -d.mixed), 1), np.stack((-d.mixed, d.lower_lower), 1)), 1)
    # Chain rule: JᵀHJ, plus the gradient times the second derivatives of the interval's ends.
    blocks = jacobian.transpose(0, 2, 1) @ inner @ jacobian
    gauss_newton = np.einsum("rii->ri", blocks).copy()
    _add_symmetric(blocks, 0, 3, d.upper + d.lower)  # from −α·s
    _add_symmetric(blocks, 2, 2, -(d.upper * d.upper_jacobian[:, 2] + d.lower * d.lower_jacobian[:, 2]))  # exp(t)·τ
    _add_symmetric(blocks, 2, 5, -d.upper * d.upper_jacobian[:, 5])
    _add_symmetric(blocks, 2, 4, -d.lower * d.lower_jacobian[:, 4])
    blocks *= shard.weight[:, None, None]
    pattern = shard.pattern or SparsePattern.of(positions, size)
    sums = np.bincount(pattern.place, blocks.ravel(), len(pattern.columns))
    diagonal = np.bincount(positions.ravel(), (shard.weight[:, None] * gauss_newton).ravel(), size)
    matrix = csr_array((sums, pattern.columns, pattern.starts), shape=(size, size))
    return matrix, diagonal.astype(np.float64)


class _Derivatives(NamedTuple):
    """Per rating: log P, its derivatives in the upper and lower end of the interval, and the ends' Jacobians.

    `upper` and `lower` are first derivatives; `upper_upper`, `lower_lower` are negative second derivatives and `mixed`
    the mixed one. The Jacobians are with respect to the six parameters of `RatingShard.positions`.
    """

    log_probability: FloatArray
    upper: FloatArray
    lower: FloatArray
    upper_upper: FloatArray
    lower_lower: FloatArray
    mixed: FloatArray
    upper_jacobian: FloatArray
    lower_jacobian: FloatArray


def _derivatives(shard: RatingShard, x: FloatArray) -> _Derivatives:
    from scipy.special import expit, log_expit

    score, leniency, stretch, excess, low, high = x[shard.positions.T]
    factor, discrimination = np.exp(stretch), 1.0 + excess
    upper = factor * high - leniency - discrimination * score
    lower = factor * low - leniency - discrimination * score
    has_upper, has_lower = ~shard.is_highest, ~shard.is_lowest
    both = has_upper & has_lower
    gap = np.where(both, upper - lower, np.inf)
    crossed = gap <= 0
    gap = np.where(crossed, 1.0, gap)
    # σ(a) − σ(b) = σ(a)·σ(−b)·(1 − exp(b − a)): no digits are lost in either tail.
    log_probability = np.where(has_upper, log_expit(upper), 0.0) + np.where(has_lower, log_expit(-lower), 0.0)
    log_probability = np.where(crossed, -np.inf, log_probability + np.log(-np.expm1(-gap)))
    gap_gradient = 1.0 / np.expm1(np.minimum(gap, 700.0)) * both  # d log(1 − exp(−gap)) / d gap
    above, below = has_upper * expit(-upper), has_lower * expit(lower)
    mixed = gap_gradient * (1.0 + gap_gradient)
    zero = np.zeros(len(score))
    return _Derivatives(
        log_probability,
        above + gap_gradient,
        -below - gap_gradient,
        above * expit(upper) + mixed,
        below * expit(-lower) + mixed,
        mixed,
        np.stack((-discrimination, zero - 1, factor * high, -score, zero, factor), axis=1) * has_upper[:, None],
        np.stack((-discrimination, zero - 1, factor * low, -score, factor, zero), axis=1) * has_lower[:, None],
    )


def _add_symmetric(blocks: FloatArray, row: int, column: int, value: FloatArray) -> None:
    blocks[:, row, column] += value
    if row != column:
        blocks[:, column, row] += value


def ordering_probability(difference: FloatArray) -> FloatArray:
    """P(difference + ε₁ − ε₂ > 0), ε standard logistic: the probability of ordering two items correctly."""
    size = np.abs(difference)
    q = np.exp(-size)
    near_zero = size < 1e-3  # the formula is 0/0 at zero: use its series ½ + x/6
    gap = np.where(near_zero, 1.0, 1.0 - q)
    probability = np.where(near_zero, 0.5 + size / 6, (gap - size * q) / gap**2)
    return np.asarray(np.where(difference < 0, 1.0 - probability, probability))
