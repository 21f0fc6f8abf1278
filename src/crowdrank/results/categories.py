"""Several leaderboards of the same items: differences between categories, correlation of criteria, one table of all."""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError
from crowdrank.results.ranking import Ranking

DEVIATION, DEVIATION_ERROR = "deviation", "deviation_error"
"""Names of the item parameters that hold how far the score in a category is from the overall one, and its error."""
OVERALL_NAME = "overall"
_FEWEST_ITEMS = 3
# A score that the prior has shrunk by more than this share says next to nothing.
_LEAST_KEPT = 0.02


def category_differences(ranking: Ranking, level: float = 0.95) -> pl.DataFrame:
    """Return how far each item is above or below its overall score in each category, largest difference first.

    Parameters
    ----------
    ranking : Ranking
        A ranking that `crowdrank.rank` made with ``by=``, or a model with ``pooling="partial"``.
    level : float, default 0.95
        A difference is sure if its interval at this level does not contain zero.

    Returns
    -------
    polars.DataFrame
        Columns category, item, difference, std_error, sure, rank (in the category) and overall_rank. Differences are
        relative to the other items of the category, and on the scale of the tables, except for probabilities.

    Notes
    -----
    The differences are shrunk towards zero by their learnt spread, so their number needs no further correction: if
    categories are alike, hardly any difference is called sure, however many there are (Gelman, Hill & Yajima 2012).

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
            "sure": np.abs(difference) > NormalDist().inv_cdf(0.5 + level / 2) * error,
            "rank": ranking.rank,
            # A provisional item has no overall rank.
            "overall_rank": [overall_rank.get(label) for label in items.labels.tolist()],
        }
    )
    return frame.sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def board_table(
    ranking: Ranking, level: float = 0.95, uncertainty: bool = True, name: str = "category"
) -> pl.DataFrame:
    """Return one table of the overall, if there is one, and of all categories or criteria.

    Parameters
    ----------
    ranking : Ranking
        A ranking that `crowdrank.rank` made with ``by=`` or ``criteria=``; any other gives its own table.
    level : float, default 0.95
        Coverage of the rank intervals.
    uncertainty : bool, default True
        Whether to add std_error, rank_low, rank_high and group.
    name : str, default "category"
        Name of the column that says which ranking a row belongs to; the overall is called "overall".
    """
    boards = ranking.to_polars(level, uncertainty)
    if ranking.overall is None:
        return boards
    overall = ranking.overall.to_polars(level, uncertainty)
    overall = overall.select(pl.lit(OVERALL_NAME).alias(name), pl.all())
    return pl.concat([overall, boards.rename({"query": name})])


def criterion_correlations(ranking: Ranking, level: float = 0.95) -> pl.DataFrame:
    """Return the correlation of the true scores of the items by every two criteria, with intervals.

    Parameters
    ----------
    ranking : Ranking
        A ranking that `crowdrank.rank` made with ``criteria=``, or any other with several queries of the same items.
    level : float, default 0.95
        Coverage of the intervals.

    Returns
    -------
    polars.DataFrame
        Columns first, second, correlation, low, high and items: the number of items that both have.

    Notes
    -----
    Errors of the scores make their correlation smaller than that of the true scores (Spearman 1904). Here the scores of
    an item are the true ones, which have a bivariate normal distribution among items, plus independent errors of known
    size. The correlation has a uniform prior, the two spreads one that is uniform in the logarithm, and all three are
    integrated over a grid.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> left, right, won = ["a", "b", "a", "c"] * 20, ["b", "c", "c", "d"] * 20, ["a", "b", "a", "c"] * 20
    >>> votes = Comparisons.of(left * 2, right * 2, won * 2, query=["style"] * 80 + ["facts"] * 80)
    >>> criterion_correlations(BradleyTerry(prior_scale=1.0).fit(votes))["correlation"][0] > 0.5
    True
    """
    items, rows = ranking.items, []
    if len(items.queries) < 2:
        raise SettingError("Correlations need a ranking with at least two criteria.")
    scores, errors = _without_shrinkage(ranking)
    names = [str(query) for query in items.queries]
    for a, b in combinations(range(len(names)), 2):
        one, other = ({str(items.labels[n]): n for n in range(*items.of_query(q).indices(len(items)))} for q in (a, b))
        common = [label for label in one if label in other]
        at, to = (np.array([side[label] for label in common], np.int64) for side in (one, other))
        found = (np.nan, np.nan, np.nan)
        if len(common) >= _FEWEST_ITEMS:
            found = _correlation(scores[at], scores[to], errors[at], errors[to], level)
        rows.append((names[a], names[b], *found, len(common)))
    return pl.DataFrame(rows, schema=["first", "second", "correlation", "low", "high", "items"], orient="row")


def _without_shrinkage(ranking: Ranking) -> tuple[FloatArray, FloatArray]:
    """Scores and variances of their errors as they were without the normal prior on scores."""
    scores, variance = ranking.scores, ranking.uncertainty.std_error**2
    scale = ranking.parameters.get("prior_scale", ranking.settings.get("prior_scale"))
    if not isinstance(scale, float | int):
        return scores, variance
    kept = np.maximum(1.0 - variance / scale**2, _LEAST_KEPT)
    return scores / kept, variance / kept


def _correlation(
    one: FloatArray, other: FloatArray, error: FloatArray, other_error: FloatArray, level: float
) -> tuple[float, float, float]:
    one, other = one - one.mean(), other - other.mean()
    sizes = [np.std(side) * np.geomspace(0.25, 1.8, 14) for side in (one, other)]
    rho = np.linspace(-1, 1, 203)[1:-1]
    log_weight = np.empty((len(sizes[0]), len(sizes[1]), len(rho)))
    for i, tau in enumerate(sizes[0]):
        for j, other_tau in enumerate(sizes[1]):
            a, b = tau**2 + error, other_tau**2 + other_error
            c = rho[:, None] * tau * other_tau
            determinant = a * b - c**2
            squares = (b * one**2 + a * other**2 - 2 * c * one * other) / determinant
            log_weight[i, j] = -0.5 * np.sum(squares + np.log(determinant), axis=1)
    weight = np.exp(log_weight - log_weight.max()).sum(axis=(0, 1))
    weight /= weight.sum()
    below = np.cumsum(weight) - 0.5 * weight
    low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below, rho)
    return float(weight @ rho), float(low), float(high)
