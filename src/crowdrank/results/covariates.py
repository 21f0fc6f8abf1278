"""Effects of covariates, such as the length of an answer, that a model estimated next to the scores of the items."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from crowdrank.errors import SettingError
from crowdrank.results.bias_effects import FEATURE_UNIT_PREFIX
from crowdrank.results.links import link_of
from crowdrank.results.ranking import Ranking

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
