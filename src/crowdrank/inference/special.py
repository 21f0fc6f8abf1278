"""Special functions (log Φ and φ/Φ of the normal distribution, a Bregman divergence of lnΓ), truncated normal draws.

log Φ comes in three forms: for arrays (SciPy, `log_normal_cdf`), for single numbers in compiled loops
(`log_normal_cdf_scalar`, full precision) and by a table of cubics small enough for the first-level cache of a processor
(`log_normal_cdf_table`, `inverse_mills_table`).

`log_gamma_bregman` is lnΓ(x) − lnΓ(y) − (x − y)ψ(y) without cancellation; Kullback–Leibler divergences of Beta
distributions are sums of it. The recurrence lnΓ(x) = lnΓ(x + 1) − ln x moves both arguments up until Stirling's series
holds, and every term of the sum is itself the Bregman divergence of a convex function:

    e(t) = t − ln(1 + t) for −ln,   y(t² − (1 + t)·e(t)) + e(t)/2 for (y − ½)ln y with t = (x − y)/y,
    (ρ − 1)²(ρᵐ⁻¹ + 2ρᵐ⁻² + … + m)/(ρyᵐ) for y⁻ᵐ with ρ = y/x.

All of these but `log_normal_cdf` use elementwise operations only, so the same code serves arrays and compiled loops.

Draws from truncated normal distributions are exact, and fast however far out the bounds lie; they are for compiled
loops. The samplers are rejection samplers after Robert (1995), Simulation of truncated normal variables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
ROOT_HALF = math.sqrt(0.5)


def log_normal_cdf(x: Any) -> Any:
    """log Φ(x), elementwise. Compiled loops may call it on single numbers after `register_numba_overloads`."""
    from scipy.special import log_ndtr

    return log_ndtr(x)


def log_normal_cdf_scalar(x: float) -> float:
    """log Φ(x) of a single number, accurate in both tails."""
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x * ROOT_HALF))
    if x > -35.0:
        return math.log(0.5 * math.erfc(-x * ROOT_HALF))
    # erfc underflows near -38: from here its asymptotic series is exact to double precision.
    y = 1.0 / (x * x)
    return -0.5 * x * x - HALF_LOG_TWO_PI - math.log(-x) + math.log1p(-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


def inverse_mills(x: Any) -> Any:
    """Inverse Mills ratio φ(x) / Φ(x), elementwise."""
    # Through logarithms: φ and Φ underflow long before their ratio does.
    return np.exp(-0.5 * x * x - HALF_LOG_TWO_PI - log_normal_cdf(x))


_registered = False


def register_numba_overloads() -> None:
    """Let compiled loops call `log_normal_cdf` on single numbers."""
    global _registered
    if _registered:
        return
    from numba.extending import overload, register_jitable

    register_jitable(log_normal_cdf_scalar)

    # Numba requires both signatures to agree, and a lambda has no annotations that could differ.
    overload(log_normal_cdf)(lambda x: lambda x: log_normal_cdf_scalar(x))

    _registered = True


_LOW, _HIGH, _NODES_PER_UNIT = -12.0, 8.0, 32.0


def _cubic_coefficients() -> Any:
    """Hermite cubics of log Φ between neighbouring nodes, as coefficients of powers from the left node."""
    nodes = np.arange(_LOW * _NODES_PER_UNIT, _HIGH * _NODES_PER_UNIT + 2) / _NODES_PER_UNIT
    value = np.array([log_normal_cdf_scalar(float(x)) for x in nodes])
    derivative = np.exp(-0.5 * nodes**2 - HALF_LOG_TWO_PI - value) / _NODES_PER_UNIT
    increase = np.diff(value)
    square, cube = 3 * increase - 2 * derivative[:-1] - derivative[1:], derivative[:-1] + derivative[1:] - 2 * increase
    return np.stack((value[:-1], derivative[:-1], square, cube), axis=1)


_TABLE = _cubic_coefficients()


def inverse_mills_table(x: float) -> Any:
    """φ(x) / Φ(x) to five digits: enough for gradients of proposals."""
    if x >= _HIGH:
        return 0.0
    if x < _LOW:
        return -x - 1.0 / x
    position = (x - _LOW) * _NODES_PER_UNIT
    node = int(position)
    t = position - node
    return (_TABLE[node, 1] + t * (2.0 * _TABLE[node, 2] + 3.0 * t * _TABLE[node, 3])) * _NODES_PER_UNIT


def log_normal_cdf_table(x: float) -> Any:
    """log Φ(x) to eight digits."""
    if x >= _HIGH:
        return 0.0
    if x < _LOW:
        return log_normal_cdf_scalar(x)
    position = (x - _LOW) * _NODES_PER_UNIT
    node = int(position)
    t = position - node
    return _TABLE[node, 0] + t * (_TABLE[node, 1] + t * (_TABLE[node, 2] + t * _TABLE[node, 3]))


# With arguments shifted up by this much, the first omitted term of Stirling's series is below 1e-14 of the sum.
_SHIFT = 10
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def x_minus_log1p(t: Any) -> Any:
    """t − ln(1 + t) for t > −1."""
    # A series near zero, where the difference would lose more than a digit or two.
    small = (np.abs(t) < 0.01) * 1.0
    tail = 1 / 6 - t * (1 / 7 - t * (1 / 8 - t / 9))
    series = t * t * (0.5 - t * (1 / 3 - t * (1 / 4 - t * (1 / 5 - t * tail))))
    return small * series + (1.0 - small) * (t - np.log1p(t))


def log_gamma_bregman(x: Any, y: Any) -> Any:
    """Bregman divergence lnΓ(x) − lnΓ(y) − (x − y)ψ(y) for positive x and y."""
    difference = x - y
    total = 0.0 * difference
    for step in range(_SHIFT):
        total = total + x_minus_log1p(difference / (y + step))
    y = y + _SHIFT
    t = difference / y
    curved = x_minus_log1p(t)
    total = total + y * (t * t - (1.0 + t) * curved) + 0.5 * curved
    ratio = 1.0 / (1.0 + t)
    weight = (ratio - 1.0) * (ratio - 1.0) / (ratio * y)
    polynomial, power = 1.0, 1.0
    for coefficient in _STIRLING:
        total = total + coefficient * weight * polynomial
        polynomial = ratio * (ratio * polynomial + (power + 1.0)) + (power + 2.0)
        power = power + 2.0
        weight = weight / (y * y)
    return total


# Truncated normal draws

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
