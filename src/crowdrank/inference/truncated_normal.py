"""Exact draws from truncated normal distributions, fast however far out the bounds lie; for compiled loops.

The samplers are rejection samplers after Robert (1995), Simulation of truncated normal variables.
"""

from __future__ import annotations

import math
from typing import Any

# In an interval around the mean shorter than this, uniform proposals are accepted more often than normal ones.
_SHORT = math.sqrt(2.0 * math.pi)


def sample_positive_normal(rng: Any, mean: float) -> Any:
    """Draw from N(mean, 1) truncated to positive values."""
    if mean > -0.45:
        while True:
            z = mean + rng.standard_normal()
            if z > 0.0:
                return z
    # Robert's exponential proposal. It draws the excess over the bound, which would be lost in a large bound.
    rate = 0.5 * (math.sqrt(mean * mean + 4.0) - mean)
    while True:
        z = rng.standard_exponential() / rate
        gap = z - mean - rate
        if 2.0 * rng.standard_exponential() > gap * gap:
            return z


def sample_truncated_normal(rng: Any, mean: float, low: float, high: float) -> Any:
    """Draw from N(mean, 1) truncated to [low, high]; bounds may be infinite. Returns `low` if the interval is empty."""
    a, b = low - mean, high - mean
    if not a < b:
        return low
    if a > 0.0:
        return min(low + sample_tail_excess(rng, a, b - a), high)
    if b < 0.0:
        return max(high - sample_tail_excess(rng, -b, b - a), low)
    if b - a > _SHORT:
        while True:
            z = rng.standard_normal()
            if a < z < b:
                return mean + z
    while True:
        z = a + (b - a) * rng.random()
        if 2.0 * rng.standard_exponential() > z * z:
            return min(max(mean + z, low), high)


def sample_tail_excess(rng: Any, bound: float, width: float) -> Any:
    """Draw how far a standard normal exceeds a positive bound, given that it does by less than `width`."""
    # Robert's exponential proposal, truncated at the width: at least six in ten are accepted.
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    cut = math.expm1(-rate * width)
    while True:
        z = -math.log1p(cut * rng.random()) / rate
        gap = z - 1.0 / rate  # bound − rate = −1 / rate
        if 2.0 * rng.standard_exponential() > gap * gap:
            return z
