"""Draws from a normal cut off on one side or on both, exact and fast however far out the cuts lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled

# Of an interval around the mean shorter than this, even draws are kept more often than normal ones.
_SHORT = math.sqrt(2.0 * math.pi)


def positive_normals(rng: np.random.Generator, means: AnyArray) -> AnyArray:
    """One draw for each mean from a normal of variance one, given that it is positive."""
    drawn: AnyArray = _positive_normals(rng, np.asarray(means, np.float64))
    return drawn


def positive_normal(rng: Any, mean: float) -> Any:
    """The same, of one mean; for compiled loops."""
    if mean > -0.45:
        while True:
            z = mean + rng.standard_normal()
            if z > 0.0:
                return z
    # Robert 1995: an exponential beyond the bound; the overshoot itself, lest it drown in a large bound.
    rate = 0.5 * (math.sqrt(mean * mean + 4.0) - mean)
    while True:
        z = rng.standard_exponential() / rate
        gap = z - mean - rate
        if 2.0 * rng.standard_exponential() > gap * gap:
            return z


def normals_between(rng: np.random.Generator, means: Any, low: Any, high: Any) -> AnyArray:
    """One draw for each mean from a normal of variance one, given that it lies between `low` and `high`."""
    columns = np.broadcast_arrays(*(np.asarray(column, np.float64) for column in (means, low, high)))
    drawn: AnyArray = _normals_between(rng, *(np.ascontiguousarray(column.ravel()) for column in columns))
    return drawn.reshape(columns[0].shape)


def normal_between(rng: Any, mean: float, low: float, high: float) -> Any:
    """The same, of one mean, for compiled loops; bounds may be infinite. `low` where nothing lies between them."""
    a, b = low - mean, high - mean
    if not a < b:
        return low
    if a > 0.0:
        return min(low + overshoot(rng, a, b - a), high)
    if b < 0.0:
        return max(high - overshoot(rng, -b, b - a), low)
    if b - a > _SHORT:
        while True:
            z = rng.standard_normal()
            if a < z < b:
                return mean + z
    while True:
        z = a + (b - a) * rng.random()
        if 2.0 * rng.standard_exponential() > z * z:
            return min(max(mean + z, low), high)


def overshoot(rng: Any, bound: float, width: float) -> Any:
    """How far beyond a positive bound a standard normal lies, given that it does, by less than `width`."""
    # Robert's exponential, itself cut off at the width: at least six in ten are kept.
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    cut = math.expm1(-rate * width)
    while True:
        z = -math.log1p(cut * rng.random()) / rate
        gap = z - 1.0 / rate  # bound − rate = −1 / rate
        if 2.0 * rng.standard_exponential() > gap * gap:
            return z


@compiled(positive_normal)
def _positive_normals(rng, means):  # type: ignore[no-untyped-def]
    drawn = np.empty_like(means)
    for row in range(len(means)):
        drawn[row] = positive_normal(rng, means[row])
    return drawn


@compiled(overshoot, normal_between)
def _normals_between(rng, means, low, high):  # type: ignore[no-untyped-def]
    drawn = np.empty_like(means)
    for row in range(len(means)):
        drawn[row] = normal_between(rng, means[row], low[row], high[row])
    return drawn
