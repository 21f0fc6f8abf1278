"""Samejima 1969, with annotators: k gives item i a grade above c when αₖ·sᵢ + bₖ + noise > exp(tₖ)·τ_c, noise logistic.

    P(grade = c) = σ(exp(t)·τ_c − b − α·s) − σ(exp(t)·τ_{c−1} − b − α·s)

α is how sharply an annotator sees, b how lenient they are, t how far they pull the grades apart. Parameters lie in one
vector: scores, then b, t and α − 1 of annotators, then thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray


class Graded(NamedTuple):
    """A shard of grades: where the score, bias and the two thresholds of each lie among the parameters."""

    item: IntArray
    bias: IntArray
    low: IntArray
    """The threshold below; any where there is none."""
    high: IntArray
    lowest: BoolArray
    """Whether there is no threshold below."""
    highest: BoolArray
    weight: FloatArray
    annotators: int
    """How many there are: stretches lie so many places after biases, and sharpnesses after stretches."""

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> Sequence[Graded]:
        columns = [np.array_split(column, parts) for column in self[:-1]]
        return [Graded._make((*cut, self.annotators)) for cut in zip(*columns, strict=True)]

    @property
    def places(self) -> IntArray:
        """Of the six parameters each grade depends on: score, bias, stretch, sharpness, low and high threshold."""
        stretch = self.bias + self.annotators
        return np.stack((self.item, self.bias, stretch, stretch + self.annotators, self.low, self.high), axis=1)


class LikelihoodTerms(NamedTuple):
    value: float
    gradient: FloatArray


def slopes(shard: Graded, x: FloatArray) -> LikelihoodTerms:
    """log P of the grades, and its gradient."""
    at = _at(shard, x)
    value = float(np.sum(shard.weight * at.log_chance))
    steep = shard.weight[:, None] * (at.up[:, None] * at.ways_up + at.down[:, None] * at.ways_down)
    return LikelihoodTerms(value, np.bincount(shard.places.ravel(), steep.ravel(), len(x)).astype(np.float64))


def curvature(shard: Graded, x: FloatArray) -> tuple[Any, FloatArray]:
    """Less the second derivatives, as a sparse matrix; and the diagonal of the part of it that is never negative."""
    from scipy.sparse import coo_array

    at, places, size = _at(shard, x), shard.places, len(x)
    ends = np.stack((at.ways_up, at.ways_down), axis=1)
    within = np.stack((np.stack((at.up_bend, -at.pull), 1), np.stack((-at.pull, at.down_bend), 1)), 1)
    bent = ends.transpose(0, 2, 1) @ within @ ends
    steady = np.einsum("rii->ri", bent).copy()
    _add(bent, 0, 3, at.up + at.down)  # of −α·s
    _add(bent, 2, 2, -(at.up * at.ways_up[:, 2] + at.down * at.ways_down[:, 2]))  # of exp(t)·τ
    _add(bent, 2, 5, -at.up * at.ways_up[:, 5])
    _add(bent, 2, 4, -at.down * at.ways_down[:, 4])
    bent *= shard.weight[:, None, None]
    cells = (np.repeat(places, 6, axis=1).ravel(), np.tile(places, 6).ravel())
    diagonal = np.bincount(places.ravel(), (shard.weight[:, None] * steady).ravel(), size).astype(np.float64)
    return coo_array((bent.ravel(), cells), shape=(size, size)).tocsr(), diagonal


class _At(NamedTuple):
    log_chance: FloatArray
    up: FloatArray
    """Slope in the upper end."""
    down: FloatArray
    up_bend: FloatArray
    """Less the second derivatives in the ends."""
    down_bend: FloatArray
    pull: FloatArray
    """The mixed one."""
    ways_up: FloatArray
    """How the upper end moves with the six parameters."""
    ways_down: FloatArray


def _at(shard: Graded, x: FloatArray) -> _At:
    from scipy.special import expit, log_expit

    score, bias, stretch, sharper, low, high = x[shard.places.T]
    factor, sharp = np.exp(stretch), 1.0 + sharper
    upper, lower = factor * high - bias - sharp * score, factor * low - bias - sharp * score
    capped, floored = ~shard.highest, ~shard.lowest
    both = capped & floored
    gap = np.where(both, upper - lower, np.inf)
    crossed = gap <= 0
    gap = np.where(crossed, 1.0, gap)
    # σ(a) − σ(b) = σ(a)·σ(−b)·(1 − exp(b − a)): no digits are lost in either tail
    log_chance = np.where(capped, log_expit(upper), 0.0) + np.where(floored, log_expit(-lower), 0.0)
    log_chance = np.where(crossed, -np.inf, log_chance + np.log(-np.expm1(-gap)))
    push = 1.0 / np.expm1(np.minimum(gap, 700.0)) * both
    above, below = capped * expit(-upper), floored * expit(lower)
    pull = push * (1.0 + push)
    zero = np.zeros(len(score))
    return _At(
        log_chance,
        above + push,
        -below - push,
        above * expit(upper) + pull,
        below * expit(-lower) + pull,
        pull,
        np.stack((-sharp, zero - 1, factor * high, -score, zero, factor), axis=1) * capped[:, None],
        np.stack((-sharp, zero - 1, factor * low, -score, factor, zero), axis=1) * floored[:, None],
    )


def _add(bent: FloatArray, row: int, column: int, more: FloatArray) -> None:
    bent[:, row, column] += more
    if row != column:
        bent[:, column, row] += more


def chance_to_order(apart: FloatArray) -> FloatArray:
    """P(the better of two is seen as better), when what is seen of them lies so far apart, less two logistic noises."""
    q = np.exp(-np.abs(apart))
    near = np.abs(apart) < 1e-3
    gap = np.where(near, 1.0, 1.0 - q)
    sure = np.where(near, 0.5 + np.abs(apart) / 6, (gap - np.abs(apart) * q) / gap**2)
    return np.asarray(np.where(apart < 0, 1.0 - sure, sure))
