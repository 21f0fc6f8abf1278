"""The normal distribution function in logs, the same name for arrays (SciPy) and inside compiled loops."""

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
