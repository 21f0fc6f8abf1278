"""Decisions from draws of the scores: the items that may be best, and the order with the largest expected NDCG."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.errors import DataError, SettingError
from crowdrank.results.parts import Uncertainty
from crowdrank.results.ranking import Ranking


def best_items(ranking: Ranking, level: float = 0.95, query: object | None = None) -> list[str]:
    """Return the smallest set of items that contains the best one with probability `level`.

    Parameters
    ----------
    ranking : Ranking
        A ranking with uncertainty.
    level : float, default 0.95
        Probability that the best item is one of those returned.
    query : str, optional
        The query; may be left out if there is only one.

    Returns
    -------
    list of str
        Items, most probable first. One item alone is the best at this level.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> winner = ["a", "c", "a"] * 30 + ["b", "b", "a"] * 15
    >>> votes = Comparisons.of(["a", "b", "a"] * 45, ["b", "c", "c"] * 45, winner)
    >>> best_items(BradleyTerry().fit(votes))
    ['a']
    """
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")
    own = ranking.items.of_query(ranking.items.query_code(query))
    draws = ranking.uncertainty.draws[:, own]
    is_first = draws == draws.max(axis=1, keepdims=True)
    share = np.mean(is_first / is_first.sum(axis=1, keepdims=True), axis=0)
    # of equally probable items the one with the higher score comes first
    order = np.lexsort((-ranking.scores[own], -share))
    size = int(np.searchsorted(np.cumsum(share[order]), level - 1e-12) + 1)
    return [str(label) for label in ranking.items.labels[own][order[:size]]]


# The order with the largest expected NDCG, from the draws behind any ranking.


def order_for_ndcg(ranking: Ranking, top_grade: float = 4.0) -> Ranking:
    """Return the ranking in the order with the largest expected NDCG.

    Parameters
    ----------
    ranking : Ranking
        A ranking with uncertainty, by any model.
    top_grade : float, default 4.0
        Grade of the best item; ranks are spread evenly from here down to grade 0. CrowdAgg's relevance judgments go
        from 0 to 4. Use the largest grade of the judgments that the order will be evaluated with.

    Returns
    -------
    Ranking
        Its scores are expected gains from 0 to 1, its draws the gains in each draw of the scores, and
        `parameters["expected_ndcg"]` the NDCG that is expected of the order, the mean over queries.

    Notes
    -----
    Each draw of the scores is a possible truth. The item of rank r among n has the gain 2^g − 1 there, with the grade
    g = top_grade · (n − r) / (n − 1). The ideal order has the same sum of gains in all draws, so expected NDCG is
    largest, at every cut-off, if items are sorted by their mean gain over the draws. An item that may be among the best
    comes before one of the same mean score that is certainly average: gains grow faster than ranks. The two orders
    therefore differ where items of similar mean differ much in their uncertainty, as newcomers do from items that were
    compared often, and the more so the larger `top_grade` is. CrowdAgg sorts by expected gains too, with the discount
    of the rank as gain.

    Reference: Niu et al. (2015), Listwise approach for rank aggregation in crowdsourcing.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "b", "a"] * 9, ["b", "c", "c"] * 9, ["a", "b", "a"] * 6 + ["b", "c", "a"] * 3)
    >>> ordered = order_for_ndcg(BradleyTerry().fit(votes))
    >>> list(ordered), ordered.parameters["expected_ndcg"] > 0.9
    (['a', 'b', 'c'], True)
    """
    if not 0 < top_grade < np.inf:
        raise SettingError(f"top_grade must be positive, got {top_grade}.")
    if not ranking.has_uncertainty:
        raise DataError("The order with the largest expected NDCG needs uncertainty, and this ranking has none.")
    known = ranking.uncertainty
    gains = _gains(known, ranking.items, top_grade)
    expected = gains.mean(axis=0)
    parameters = {**ranking.parameters, "expected_ndcg": _expected_ndcg(expected, ranking.items, top_grade)}
    method = f"ranks in {len(gains):,} draws by {known.method}"
    # counted, because gains are far from normal
    drawn = Uncertainty(gains, gains.std(axis=0), method, sampled=True)
    ordered = replace(ranking, scores=expected, parameters=parameters, scale=None)
    return ordered.with_parts(uncertainty=lambda: drawn, notes=lambda: [*ranking.notes, _NOTE])


_NOTE = "Ordered by expected NDCG: scores are expected gains between 0 and 1, from the ranks of each item in the draws."


def _gains(known: Uncertainty, items: Items, top_grade: float) -> FloatArray:
    """The gain of every item in every draw, between 0 and 1; items that are tied have the rank in the middle."""
    best, worst = known.ranks(items)
    last = np.maximum(np.diff(items.starts)[items.query] - 1, 1)
    grade = top_grade * (1 - ((best + worst) / 2 - 1) / last)
    return np.asarray(np.expm1(grade * np.log(2)) / (2**top_grade - 1))


def _expected_ndcg(expected: FloatArray, items: Items, top_grade: float) -> float:
    """Expected NDCG of the items in the order of their expected gains, the mean over queries of two items or more."""
    found = []
    for query in range(len(items.queries)):
        own = np.sort(expected[items.of_query(query)])[::-1]
        if len(own) > 1:
            ideal = np.expm1(np.linspace(top_grade, 0, len(own)) * np.log(2)) / (2**top_grade - 1)
            discount = 1 / np.log2(np.arange(2, len(own) + 2))
            found.append(float(own @ discount / (ideal @ discount)))
    return float(np.mean(found)) if found else 1.0
