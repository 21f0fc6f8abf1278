"""Adjustment of p-values for the number of tests."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray


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
