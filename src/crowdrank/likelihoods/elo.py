"""Elo 1978: a += K·w·(result − E), b −= the same, where E = 1/(1 + e^{slope·(b − a)}) was expected of a."""

from __future__ import annotations

import numpy as np

from crowdrank.likelihoods.compiled import compiled


@compiled()
def fold(left, right, outcome, weight, scores, step, slope):  # type: ignore[no-untyped-def]
    """Row by row, in place."""
    for row in range(len(left)):
        i, j = left[row], right[row]
        chance = 1.0 / (1.0 + np.exp(slope * (scores[j] - scores[i])))
        move = step * weight[row] * (0.5 + 0.5 * outcome[row] - chance)
        scores[i] += move
        scores[j] -= move
