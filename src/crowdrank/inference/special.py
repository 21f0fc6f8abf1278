"""The normal distribution function in logs, the same name for arrays (SciPy) and inside compiled loops.

log Φ and its slope, the hazard φ / Φ, by a table of cubics that fits a core's nearest memory; for compiled loops.

How far log Γ lies above its tangent: lnΓ(x) − lnΓ(y) − (x − y)ψ(y), without the digits that its terms would cancel.

Divergences of Betas are sums of it. lnΓ(x) = lnΓ(x + 1) − ln x moves both up until Stirling's series holds, and every
term of the sum is itself the height of a convex function above its tangent:

x(t) = t − ln(1 + t) for −ln,   y(t² − (1 + t)·x(t)) + x(t)/2 for (y − ½)ln y with t = (x − y)/y,
(ρ − 1)²(ρᵐ⁻¹ + 2ρᵐ⁻² + … + m)/(ρyᵐ) for y⁻ᵐ with ρ = y/x.

Elementwise, so that one text serves arrays and compiled loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
ROOT_HALF = math.sqrt(0.5)


def log_cdf(x: Any) -> Any:
    """log Φ(x) of an array."""
    from scipy.special import log_ndtr

    return log_ndtr(x)


def log_cdf_of_number(x: float) -> float:
    """log Φ(x) of one number, accurate in both tails."""
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x * ROOT_HALF))
    if x > -35.0:
        return math.log(0.5 * math.erfc(-x * ROOT_HALF))
    # erfc underflows near -38: from here its asymptotic series is exact to double precision.
    y = 1.0 / (x * x)
    return -0.5 * x * x - HALF_LOG_TWO_PI - math.log(-x) + math.log1p(-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


def hazard(x: Any) -> Any:
    """φ(x) / Φ(x)."""
    # through logs: both underflow long before their ratio does
    return np.exp(-0.5 * x * x - HALF_LOG_TWO_PI - log_cdf(x))


_ready = False


def teach_numba() -> None:
    """Let compiled loops call `log_cdf` on single numbers."""
    global _ready
    if _ready:
        return
    from numba.extending import overload, register_jitable

    register_jitable(log_cdf_of_number)

    # without annotations: Numba wants both signatures to be the same, and a lambda cannot carry any
    overload(log_cdf)(lambda x: lambda x: log_cdf_of_number(x))

    _ready = True


_LOW, _HIGH, _A_UNIT = -12.0, 8.0, 32.0


def _cubics() -> Any:
    """Between neighbours the cubic with log Φ and the hazard at both ends, by powers from the left one."""
    nodes = np.arange(_LOW * _A_UNIT, _HIGH * _A_UNIT + 2) / _A_UNIT
    value = np.array([log_cdf_of_number(float(x)) for x in nodes])
    slope = np.exp(-0.5 * nodes**2 - HALF_LOG_TWO_PI - value) / _A_UNIT
    rise = np.diff(value)
    square, cube = 3 * rise - 2 * slope[:-1] - slope[1:], slope[:-1] + slope[1:] - 2 * rise
    return np.stack((value[:-1], slope[:-1], square, cube), axis=1)


_TABLE = _cubics()


def hazard_by_table(x: float) -> Any:
    """φ(x) / Φ(x), to five digits: enough to choose a direction."""
    if x >= _HIGH:
        return 0.0
    if x < _LOW:
        return -x - 1.0 / x
    place = (x - _LOW) * _A_UNIT
    node = int(place)
    t = place - node
    return (_TABLE[node, 1] + t * (2.0 * _TABLE[node, 2] + 3.0 * t * _TABLE[node, 3])) * _A_UNIT


def log_cdf_by_table(x: float) -> Any:
    """log Φ(x), to eight digits."""
    if x >= _HIGH:
        return 0.0
    if x < _LOW:
        return log_cdf_of_number(x)
    place = (x - _LOW) * _A_UNIT
    node = int(place)
    t = place - node
    return _TABLE[node, 0] + t * (_TABLE[node, 1] + t * (_TABLE[node, 2] + t * _TABLE[node, 3]))


# How far up: from here on the first term of Stirling's series that is left out is below 1e-14 of the sum.
_STEPS = 10
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def excess(t: Any) -> Any:
    """t − ln(1 + t), for t > −1."""
    # the series where the difference would lose more than a digit or two
    small = (np.abs(t) < 0.01) * 1.0
    tail = 1 / 6 - t * (1 / 7 - t * (1 / 8 - t / 9))
    series = t * t * (0.5 - t * (1 / 3 - t * (1 / 4 - t * (1 / 5 - t * tail))))
    return small * series + (1.0 - small) * (t - np.log1p(t))


def above_tangent(x: Any, y: Any) -> Any:
    """lnΓ(x) − lnΓ(y) − (x − y)ψ(y), for positive x and y."""
    gap = x - y
    total = 0.0 * gap
    for step in range(_STEPS):
        total = total + excess(gap / (y + step))
    y = y + _STEPS
    t = gap / y
    bent = excess(t)
    total = total + y * (t * t - (1.0 + t) * bent) + 0.5 * bent
    ratio = 1.0 / (1.0 + t)
    weight = (ratio - 1.0) * (ratio - 1.0) / (ratio * y)
    heap, power = 1.0, 1.0
    for coefficient in _STIRLING:
        total = total + coefficient * weight * heap
        heap = ratio * (ratio * heap + (power + 1.0)) + (power + 2.0)
        power = power + 2.0
        weight = weight / (y * y)
    return total
