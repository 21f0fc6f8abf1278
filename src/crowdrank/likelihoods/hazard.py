"""log Φ and its slope, the hazard φ / Φ, by a table of cubics that fits a core's nearest memory; for compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.likelihoods.normal import HALF_LOG_TWO_PI, log_cdf_of_number

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
