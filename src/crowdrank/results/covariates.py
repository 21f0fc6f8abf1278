"""Effects of covariates, such as the length of an answer, that a model estimated next to the scores of the items."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError
from crowdrank.results.ranking import Ranking
from crowdrank.results.scales import link_of

COVARIATE_PREFIX = "effect_of_"
"""Parameters whose names start with this are coefficients of covariates, per unit of the covariate."""
COVARIATE_ERROR_PREFIX = "error_of_effect_of_"
"""Parameters whose names start with this are the standard errors of these coefficients."""
UNCONTROLLED_RANK = "uncontrolled_rank"
"""Name of the item parameter that holds the rank of each item without covariates."""


class CovariateEffect(NamedTuple):
    """The effect of a covariate on the difference of two scores.

    Parameters
    ----------
    feature : str
        Name of the covariate.
    effect : float
        Coefficient: what one more unit of the covariate on the left adds to the score of the left item.
    std_error : float
        Standard error of the coefficient.
    low, high : float
        Interval of the coefficient.
    unit : float
        Typical difference between the two sides: root mean square of the covariate, or 1.
    probability : float
        Probability that the left one of two equally good items wins if it has one typical difference more.
    """

    feature: str
    effect: float
    std_error: float
    low: float
    high: float
    unit: float
    probability: float


def covariate_effects(ranking: Ranking, level: float = 0.95) -> list[CovariateEffect]:
    """Return the coefficient of each covariate, with its interval.

    Parameters
    ----------
    ranking : Ranking
        A ranking by bradley-terry or thurstone with `covariates`.
    level : float, default 0.95
        Coverage of the intervals.

    Returns
    -------
    list of CovariateEffect
        Empty if the model has no covariates.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> longer = [1, -1, 1, -1] * 10
    >>> winner = ["a", "b", "a", "b", "a", "a", "b", "b"] * 5
    >>> votes = Comparisons.of(["a"] * 40, ["b"] * 40, winner, features={"longer": longer})
    >>> (effect,) = covariate_effects(BradleyTerry(covariates=("longer",)).fit(votes))
    >>> effect.feature, effect.low > 0
    ('longer', True)
    """
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")
    z, parameters = NormalDist().inv_cdf(0.5 + level / 2), ranking.parameters
    found = []
    for name in (key.removeprefix(COVARIATE_PREFIX) for key in parameters if key.startswith(COVARIATE_PREFIX)):
        effect, error = parameters[f"{COVARIATE_PREFIX}{name}"], parameters[f"{COVARIATE_ERROR_PREFIX}{name}"]
        unit = parameters.get(f"{FEATURE_UNIT_PREFIX}{name}", 1.0)
        probability = float(link_of(ranking, "control covariates")(np.array([effect * unit]))[0])
        found.append(CovariateEffect(name, effect, error, effect - z * error, effect + z * error, unit, probability))
    return found


def rank_changes(ranking: Ranking) -> pl.DataFrame:
    """Return the rank of each item with and without covariates, best first.

    Parameters
    ----------
    ranking : Ranking
        A ranking that `crowdrank.rank` made with ``control=True``.

    Returns
    -------
    polars.DataFrame
        Columns query (if there are queries), item, rank, rank_without and change: places won by the control.
    """
    if UNCONTROLLED_RANK not in ranking.item_parameters:
        raise SettingError("This ranking was not compared with one without covariates: rank with control=True.")
    order, items = ranking.order, ranking.items
    rank, without = ranking.rank[order], ranking.item_parameters[UNCONTROLLED_RANK][order].astype(np.int64)
    columns = {"query": items.queries[items.query[order]].tolist()} if items.has_queries else {}
    columns |= {"item": items.labels[order].tolist()}
    return pl.DataFrame(columns | {"rank": rank, "rank_without": without, "change": without - rank})


# How far features that should not matter, such as the side of the screen, change the answers of a crowd.

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
