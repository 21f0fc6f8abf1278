"""Means with standard errors, intervals of proportions, and correction for multiple tests."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error.

    Parameters
    ----------
    value : float
        The mean.
    std_error : float
        Its standard error; nan if unknown.
    """

    value: float
    std_error: float

    @property
    def clearly_positive(self) -> bool:
        """Whether the mean is more than two standard errors above zero."""
        return self.value > 2 * self.std_error


def clustered_mean(values: FloatArray, weight: FloatArray, cluster: IntArray) -> Estimate:
    """Return the weighted mean with the larger of the plain and the cluster-robust standard error."""
    mean = float(np.average(values, weights=weight))
    deviation = weight * (values - mean)
    by_cluster = np.bincount(cluster, deviation)
    variance = max(float(np.sum(deviation**2)), float(np.sum(by_cluster**2)))
    return Estimate(mean, float(np.sqrt(variance)) / float(np.sum(weight)))


def wilson_interval(count: npt.ArrayLike, total: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's (1927) interval of a proportion; 0 to 1 where the total is zero.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    n = np.asarray(total, np.float64)
    share = np.divide(count, n, out=np.full(n.shape, 0.5), where=n > 0)
    middle = (share * n + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(n * share * (1 - share) + z * z / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995); nan is kept and not counted.

    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.02, np.nan])).tolist()
    [0.03, 0.5, 0.03, nan]
    """
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known])]
    scaled = p_values[order] * len(known) / np.arange(1, len(known) + 1)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted
