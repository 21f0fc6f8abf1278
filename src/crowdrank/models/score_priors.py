"""Priors on scores: log density, gradient and curvature (negative second derivative) per item.

gaussian       s ~ N(0, scale²)
virtual_node   Chen et al. 2013, §3.2: λ wins and λ losses of each item against a virtual item with score 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.pairwise.likelihood import FORMULAS


class PriorTerms(NamedTuple):
    value: float
    gradient: FloatArray
    curvature: FloatArray


def gaussian(scores: FloatArray, scale: float) -> PriorTerms:
    precision = 1.0 / scale**2
    return PriorTerms(-0.5 * precision * float(scores @ scores), -precision * scores, np.full(len(scores), precision))


def virtual_node(scores: FloatArray, weight: float, formula: int) -> PriorTerms:
    """λ wins and losses of every item against a virtual item; `formula` is LOGISTIC or PROBIT."""
    # a win and a loss of weight λ equal one tied answer of weight 2λ
    value, gradient, curvature, *_ = FORMULAS[formula](scores, 0.0, 0.0)
    return PriorTerms(2 * weight * float(value.sum()), 2 * weight * gradient, 2 * weight * curvature)
