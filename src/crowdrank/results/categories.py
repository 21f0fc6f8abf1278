"""Categories of a leaderboard: where an item differs from its overall score."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.errors import SettingError
from crowdrank.results.ranking import Ranking

DEVIATION, DEVIATION_ERROR = "deviation", "deviation_error"
"""Names of the item parameters that hold how far the score in a category is from the overall one, and its error."""


def category_differences(ranking: Ranking, level: float = 0.95) -> pl.DataFrame:
    """Return how far each item is above or below its overall score in each category, largest difference first.

    Parameters
    ----------
    ranking : Ranking
        A ranking that `crowdrank.rank` made with ``by=``, or a model with ``pooling="partial"``.
    level : float, default 0.95
        Share of the differences that are called sure which are expected to have the right sign.

    Returns
    -------
    polars.DataFrame
        Columns category, item, difference, std_error, sure, rank (in the category) and overall_rank. Differences are
        relative to the other items of the category, and on the scale of the tables, except for probabilities.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> left, right, kind = ["a"] * 80, ["b"] * 80, ["code"] * 40 + ["prose"] * 40
    >>> votes = Comparisons.of(left, right, ["a"] * 35 + ["b"] * 40 + ["a"] * 5, query=kind)
    >>> found = category_differences(BradleyTerry(pooling="partial").fit(votes))
    >>> found.filter(pl.col("sure"), pl.col("item") == "a")["category"].sort().to_list()
    ['code', 'prose']
    """
    if ranking.overall is None or DEVIATION not in ranking.item_parameters:
        raise SettingError("This ranking has no categories with an overall ranking: rank with by=.")
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")
    difference, error = (ranking.item_parameters[name] for name in (DEVIATION, DEVIATION_ERROR))
    factor = 1.0 if ranking.scale is None or ranking.scale.link else ranking.scale.factor
    items, overall = ranking.items, ranking.overall
    overall_rank = dict(zip(overall.items.labels.tolist(), overall.rank.tolist(), strict=True))
    frame = pl.DataFrame(
        {
            "category": items.queries[items.query].tolist(),
            "item": items.labels.tolist(),
            "difference": factor * difference,
            "std_error": factor * error,
            "sure": surely_signed(difference, error, 1 - level),
            "rank": ranking.rank,
            # A provisional item has no overall rank.
            "overall_rank": [overall_rank.get(label) for label in items.labels.tolist()],
        }
    )
    return frame.sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def surely_signed(values: FloatArray, errors: FloatArray, rate: float) -> BoolArray:
    """Which of several shrunken estimates have a sure sign, with at most this rate of wrong signs expected among them.

    The estimates are posterior means, so the probability of a wrong sign needs no correction for their number
    (Stephens 2017); those with the smallest probabilities are taken while their mean is at most `rate`.
    """
    z = np.abs(values) / np.maximum(errors, 1e-12)
    wrong = np.array([0.5 * erfc(float(one) / sqrt(2)) for one in z])
    order = np.argsort(wrong, kind="stable")
    kept = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1) <= rate
    sure = np.zeros(len(values), bool)
    sure[order[kept]] = True
    return sure
