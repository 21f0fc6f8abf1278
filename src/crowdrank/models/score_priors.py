"""What is believed of the scores before anyone judged: log density, gradient and curvature, item by item.

gaussian       s ~ N(0, scale²)
virtual_node   Chen et al. 2013, §3.2: λ wins and λ losses of each item against one fixed at 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.pairwise.likelihood import FORMULAS


class PriorTerms(NamedTuple):
    value: float
    gradient: FloatArray
    bend: FloatArray


def gaussian(scores: FloatArray, scale: float) -> PriorTerms:
    precision = 1.0 / scale**2
    return PriorTerms(-0.5 * precision * float(scores @ scores), -precision * scores, np.full(len(scores), precision))


def virtual_node(scores: FloatArray, weight: float, formula: int) -> PriorTerms:
    """`formula` is that of the comparisons: LOGISTIC or PROBIT."""
    # a win and a loss of weight λ are one answer, shared half and half, of weight 2λ
    value, slope, bend, *_ = FORMULAS[formula](scores, 0.0, 0.0)
    return PriorTerms(2 * weight * float(value.sum()), 2 * weight * slope, 2 * weight * bend)
