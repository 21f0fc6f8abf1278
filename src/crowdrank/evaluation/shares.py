"""Shares of a count, with their intervals."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def wilson(part: npt.ArrayLike, whole: npt.ArrayLike, level: float = 0.95) -> tuple[Vector, Vector]:
    """Wilson's interval (1927) of a share; from 0 to 1 where there is nothing to share.

    >>> low, high = wilson(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    n = np.asarray(whole, np.float64)
    share = np.divide(part, n, out=np.full(n.shape, 0.5), where=n > 0)
    middle = (share * n + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(n * share * (1 - share) + z * z / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
