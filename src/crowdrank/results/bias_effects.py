"""How far features that should not matter, such as the side of the screen, change the answers of a crowd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.results.ranking import Ranking

ATTENTION = "attention"
"""Name of the estimate: the probability that an annotator answers by the items and not by the features."""
FEATURE_WEIGHT_PREFIX = "weight_of_"
"""Estimates whose names start with this are weights of features, one value per annotator."""
FEATURE_UNIT_PREFIX = "unit_of_"
"""Parameters whose names start with this are the units in which effects of features are reported."""
_Z_95 = 1.96


class BiasEffect(NamedTuple):
    """Change of the probability that an average annotator answers "left" when both items are equally good.

    Parameters
    ----------
    feature : str
        Name of the feature.
    unit : float
        Value of the feature for which the effect is given: its root mean square, or 1.
    effect : float
        Mean change of the probability.
    low, high : float
        95 % interval of the effect.
    """

    feature: str
    unit: float
    effect: float
    low: float
    high: float


def bias_effects(ranking: Ranking) -> list[BiasEffect]:
    """Return the effect of each feature on an average annotator.

    Parameters
    ----------
    ranking : Ranking
        A ranking of a model with features, such as factor-bt.

    Returns
    -------
    list of BiasEffect
        Empty if the model has no features or the judgments do not name annotators.

    Notes
    -----
    The effect is the mean over annotators of (1 − c)·(σ(w·u) − ½), with attention c, feature weight w and unit u. Its
    standard error combines the errors of c and w (delta method) with the spread between annotators, who count as a
    sample from a larger crowd.
    """
    if not ranking.has_annotators:
        return []
    estimates = ranking.annotators.estimates
    names = [name for name in estimates if name.startswith(FEATURE_WEIGHT_PREFIX)]
    return [_bias_effect(ranking, name.removeprefix(FEATURE_WEIGHT_PREFIX)) for name in names]


def _bias_effect(ranking: Ranking, feature: str) -> BiasEffect:
    estimates = ranking.annotators.estimates
    unit = ranking.parameters.get(f"{FEATURE_UNIT_PREFIX}{feature}", 1.0)
    attention, *ends = (np.clip(part, 1e-12, 1 - 1e-12) for part in estimates[ATTENTION])
    weight, low, high = (part * unit for part in estimates[f"{FEATURE_WEIGHT_PREFIX}{feature}"])
    logit_error = (_logit(ends[1]) - _logit(ends[0])) / (2 * _Z_95)
    shift = 0.5 * np.tanh(weight / 2)  # σ(w) − ½
    by_attention = attention * (1 - attention) * shift * logit_error
    by_weight = (1 - attention) * (0.25 - shift**2) * (high - low) / (2 * _Z_95)
    effects = (1 - attention) * shift
    between = np.var(effects, ddof=1) if len(effects) > 1 else 0.0
    error = np.sqrt((between + np.mean(by_attention**2 + by_weight**2)) / len(effects))
    mean = float(np.mean(effects))
    return BiasEffect(feature, float(unit), mean, mean - _Z_95 * float(error), mean + _Z_95 * float(error))


def _logit(probability: FloatArray) -> FloatArray:
    return np.asarray(np.log(probability) - np.log1p(-probability))
