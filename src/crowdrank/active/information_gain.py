"""Expected information gain of questions (Chen et al. 2013, eq. 10), and the question with the largest gain."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crowdrank.active import gain_formulas
from crowdrank.active.branch_and_bound import QueryBlocks, SearchResult, build_tree, group_annotators, search
from crowdrank.active.questions import Exclusions
from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.online import Beliefs, Vocabulary

EXHAUSTIVE_UP_TO = 20_000
"""Number of triplets up to which all are scored: 200 items and one annotator, or 20 items and 100 annotators."""


def expected_gain(
    beliefs: Beliefs, left: str | int, right: str | int, annotator: str | int, exploration: float = 1.0, query: str = ""
) -> float:
    """Return the expected information gain of one question.

    Parameters
    ----------
    beliefs : Beliefs
        Beliefs with the quality of annotators, such as those of `crowdrank.online.CrowdBT`.
    left, right : str or int
        The items, by label or code.
    annotator : str or int
        The annotator, by label or code.
    exploration : float, default 1.0
        γ: weight of the information about the annotator, relative to that about the items.
    query : str, default ""
        The query of the items, if they are given by label.

    Returns
    -------
    float
        The gain in nats.

    Notes
    -----
    The gain is the expected Kullback–Leibler divergence of the posterior from the prior of both scores, plus γ times
    that of the annotator's quality. The formulas are in `crowdrank.active.gain_formulas`.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> beliefs = CrowdBT().start(["a", "b"], ["ann"])
    >>> round(expected_gain(beliefs, "a", "b", "ann"), 3)
    0.183
    """
    i, j = (_code(beliefs.items, item, "item", query) for item in (left, right))
    if i == j or beliefs.items.query[i] != beliefs.items.query[j]:
        raise DataError(f"{left!r} and {right!r} cannot be compared: name two items of the same query.")
    k = _code(beliefs.annotators, annotator, "annotator")
    first, second, who = (np.array([code]) for code in (i, j, k))
    return float(_gains(beliefs, first, second, who, _check(beliefs, exploration))[0, 0])


def all_gains(beliefs: Beliefs, annotator: str | int | None = None, exploration: float = 1.0) -> FloatArray:
    """Return the expected gain of every pair as a matrix, for one annotator or stacked for all.

    Entries are nan where an item is paired with itself or with an item of another query.
    """
    everyone = np.arange(len(beliefs.annotators))
    who = everyone if annotator is None else np.array([_code(beliefs.annotators, annotator, "annotator")])
    first, second = _pairs(beliefs.items.query)
    gains = np.full((len(who), len(beliefs.items), len(beliefs.items)), np.nan)
    values = _gains(beliefs, first, second, who, _check(beliefs, exploration))
    gains[:, first, second] = gains[:, second, first] = values
    return gains if annotator is None else gains[0]


def best_pair(
    beliefs: Beliefs, annotator: str | int, exploration: float = 1.0, excluded: Exclusions | None = None
) -> SearchResult | None:
    """Return the pair with the largest expected gain for one annotator, or None if every pair is excluded."""
    who = np.array([_code(beliefs.annotators, annotator, "annotator")])
    return best_triplet(beliefs, exploration, who, excluded=excluded)


def best_triplet(
    beliefs: Beliefs,
    exploration: float = 1.0,
    annotators: IntArray | None = None,
    prices: FloatArray | None = None,
    excluded: Exclusions | None = None,
    exhaustive_up_to: int = EXHAUSTIVE_UP_TO,
) -> SearchResult | None:
    """Return the pair and annotator with the largest expected gain per unit of price.

    Parameters
    ----------
    beliefs : Beliefs
        Beliefs with the quality of annotators.
    exploration : float, default 1.0
        γ: weight of the information about the annotator.
    annotators : array of int, optional
        Codes of the annotators to choose from; all by default.
    prices : array of float, optional
        Price of an answer of each annotator in the beliefs, by code; 1 by default.
    excluded : Exclusions, optional
        What must not be asked.
    exhaustive_up_to : int, default 20000
        Number of triplets up to which all are scored. Beyond, a compiled branch-and-bound search runs, which is faster
        at any size once it is compiled.

    Returns
    -------
    SearchResult or None
        The question, with its gain in nats (not divided by the price); None if everything is excluded.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> found = best_triplet(CrowdBT().start(["a", "b", "c"], ["ann", "bob"]))
    >>> found.left != found.right, round(found.gain, 3)
    (True, 0.183)
    """
    who = np.arange(len(beliefs.annotators)) if annotators is None else np.asarray(annotators, np.int64)
    price = np.ones(len(who)) if prices is None else np.asarray(prices, np.float64)[who]
    if not np.all(price > 0):
        raise SettingError(f"Prices must be above zero, got {price.min()}.")
    exclusions = Exclusions(len(beliefs.items)) if excluded is None else excluded
    find = _score_all if _n_triplets(beliefs, who) <= exhaustive_up_to else _search
    found = find(beliefs, who, price, exclusions, _check(beliefs, exploration)) if len(who) else None
    return None if found is None or found.annotator < 0 else found


def _search(
    beliefs: Beliefs, who: IntArray, price: FloatArray, exclusions: Exclusions, exploration: float
) -> SearchResult:
    tree = build_tree(beliefs.mean, beliefs.variance, query_blocks(beliefs.items))
    groups = group_annotators(who, beliefs.alpha[who], beliefs.beta[who], price)
    return search(tree, groups, exclusions, exploration)


@lru_cache(maxsize=64)
def query_blocks(items: Vocabulary) -> QueryBlocks:
    """Return the items sorted by query; cached."""
    return QueryBlocks.of(items.query)


def _score_all(
    beliefs: Beliefs, who: IntArray, price: FloatArray, exclusions: Exclusions, exploration: float
) -> SearchResult | None:
    first, second = _pairs(beliefs.items.query)
    gains = _gains(beliefs, first, second, who, exploration)
    allowed = exclusions.allows(who[:, None], first, second)
    if not allowed.any():
        return None
    row, pair = np.unravel_index(np.argmax(np.where(allowed, gains / price[:, None], -np.inf)), gains.shape)
    return SearchResult(int(first[pair]), int(second[pair]), int(who[row]), float(gains[row, pair]), 0, gains.size)


def _n_triplets(beliefs: Beliefs, who: IntArray) -> int:
    size = np.bincount(beliefs.items.query, minlength=1).astype(np.int64)
    return int(np.sum(size * (size - 1) // 2)) * len(who)


def _pairs(query: Int32Array) -> tuple[IntArray, IntArray]:
    """All pairs within queries: each item with those that follow it in its query."""
    order = np.argsort(query, kind="stable")
    place = np.arange(len(order))
    n_following = np.searchsorted(query[order], query[order], side="right") - place - 1
    first = np.repeat(place, n_following)
    ends = np.cumsum(n_following)
    offset = np.arange(n_following.sum()) - np.repeat(ends - n_following, n_following)  # 0, 1, … for each item
    return order[first], order[first + 1 + offset]


def _gains(beliefs: Beliefs, first: IntArray, second: IntArray, who: IntArray, exploration: float) -> FloatArray:
    """Gains as a matrix of annotators by pairs."""
    alpha, beta = beliefs.alpha[who][:, None], beliefs.beta[who][:, None]
    lead = beliefs.mean[first] - beliefs.mean[second]
    variances = beliefs.variance[first], beliefs.variance[second]
    return np.asarray(gain_formulas.expected_gain(lead, *variances, alpha, beta, exploration))


def _check(beliefs: Beliefs, exploration: float) -> float:
    if "alpha" not in beliefs.annotator_columns:
        raise DataError("These beliefs have no quality of annotators: use those of crowdrank.online.CrowdBT.")
    if not 0 <= exploration < np.inf:
        raise SettingError(f"exploration must be zero or more, got {exploration!r}.")
    return float(exploration)


def _code(names: Vocabulary, name: str | int, kind: str, query: str = "") -> int:
    if not isinstance(name, int | np.integer):
        return names.index(name, query, kind)
    if not 0 <= name < len(names):
        raise UnknownNameError(kind, name, names.labels)
    return int(name)
