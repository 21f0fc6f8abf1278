"""The items that may be the best of their query."""

from __future__ import annotations

import numpy as np

from crowdrank.errors import SettingError
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
