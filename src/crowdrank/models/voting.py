"""Voting rules: models with a closed-form score from pair counts, and a bootstrap for their uncertainty.

win-rate, Borda (1781), Copeland (1951), Condorcet-fuse (Montague & Aslam 2002) and greedy order (Cohen, Schapire &
Singer 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts, Rankings
from crowdrank.data.conversions import margins
from crowdrank.data.pair_counts import ROUNDING
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap, bootstrap_counts
from crowdrank.results import Ranking


def fit_order(
    model: Model,
    comparisons: Comparisons,
    order: Callable[[PairCounts, Items, IntArray], FloatArray],
    seed: int,
) -> Ranking:
    """Fit a model whose result is a strict order, so that ties must be broken.

    The estimate breaks ties by label. Every bootstrap replicate breaks them at random: broken by label every time, a
    tie would look like certainty.

    Parameters
    ----------
    model : Model
        The model, for its name and settings.
    comparisons : Comparisons
        The judgments.
    order : callable
        Maps pair counts, the items and a tie-breaking key per item (smaller goes first) to scores.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    Ranking
    """
    items, rng = comparisons.items, np.random.default_rng(seed)
    return fit_counts(
        model,
        comparisons,
        lambda counts: order(counts, items, np.arange(len(items))),
        seed=seed,
        replicate_score=lambda counts: order(counts, items, rng.permutation(len(items))),
    )


def fit_counts(
    model: Model,
    comparisons: Comparisons,
    score: Callable[[PairCounts], FloatArray],
    *,
    seed: int,
    centred: bool = True,
    replicate_score: Callable[[PairCounts], FloatArray] | None = None,
) -> Ranking:
    """Fit a model whose scores are a function of the pair counts.

    Parameters
    ----------
    model : Model
        The model, for its name and settings.
    comparisons : Comparisons
        The judgments.
    score : callable
        Maps pair counts to one score per item.
    seed : int
        Seed of the bootstrap.
    centred : bool, default True
        Whether to subtract the mean score of each query.
    replicate_score : callable, optional
        Scores a bootstrap replicate, if that differs from `score`.

    Returns
    -------
    Ranking
    """
    items = comparisons.items

    def scaled(counts: PairCounts) -> FloatArray:
        found = (replicate_score or score)(counts)
        return items.centre(found) if centred else found

    return build_ranking(
        model,
        comparisons,
        score(comparisons.counts),
        centred=centred,
        measure=lambda: bootstrap_counts(comparisons, scaled, seed=seed),
    )


@dataclass(frozen=True, kw_only=True)
class WinRate(Model):
    """Fraction of its comparisons that an item won.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    With wᵢ wins and tᵢ ties in nᵢ comparisons, the score of item i is (wᵢ + tᵢ/2) / nᵢ, and ½ if it was never compared.
    The strength of the opponents is ignored.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> WinRate().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_counts(self, require_kind(Comparisons, judgments, self), _win_rates, seed=self.seed, centred=False)


def _win_rates(counts: PairCounts) -> FloatArray:
    won = counts.per_item(counts.first_wins + counts.ties / 2, counts.second_wins + counts.ties / 2)
    compared = counts.per_item(counts.total, counts.total)
    rates = np.full(counts.size, 0.5)
    np.divide(won, compared, out=rates, where=compared > 0)
    return rates


@dataclass(frozen=True, kw_only=True)
class Borda(Model):
    """Items ranked below it minus items ranked above it.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    Over all lists and comparisons, an item scores 1 for every item that is ranked below it and -1 for every item that
    is ranked above it; ties score 0 (Borda 1781, in its symmetric form). Weights multiply the points.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> Borda().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[tuple[type, ...]] = (Rankings, Comparisons)

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        if isinstance(judgments, Comparisons):
            return fit_counts(self, require_kind(Comparisons, judgments, self), _net_wins, seed=self.seed)
        rankings = require_kind(Rankings, judgments, self)
        return build_ranking(
            self,
            rankings,
            borda_points(rankings),
            measure=lambda: bootstrap(rankings, borda_points, seed=self.seed),
        )


def _net_wins(counts: PairCounts) -> FloatArray:
    return counts.net_wins


def borda_points(rankings: Rankings) -> FloatArray:
    """Items below minus items above, summed over all lists: equal to the net wins over all pairs of all lists."""
    value = margins(rankings) * rankings.weights[rankings.list_of_row]
    return np.bincount(rankings.item, value, len(rankings.items)).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Copeland(Model):
    """Opponents beaten by majority minus opponents lost to.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    The score of item i is Σⱼ sign(wᵢⱼ − wⱼᵢ), where wᵢⱼ is the weight of the comparisons that i won against j
    (Copeland 1951).

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> Copeland().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_counts(self, require_kind(Comparisons, judgments, self), _net_victories, seed=self.seed)


def _net_victories(counts: PairCounts) -> FloatArray:
    sign = np.sign(counts.net)  # exactly 0 where a pair is tied but for rounding
    return counts.per_item(sign, -sign)


@dataclass(frozen=True, kw_only=True)
class CondorcetFuse(Model):
    """An order in which no item loses by majority to the next.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    The order is a Hamiltonian path of the majority graph, built by insertion with binary search (Montague & Aslam
    2002). Pairs without a majority are ordered by Borda score, then by label. Scores are positions: 0, -1, -2, ….

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> CondorcetFuse().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    order_only: ClassVar[bool] = True

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        return fit_order(self, comparisons, _majority_path, self.seed)


def _majority_path(counts: PairCounts, items: Items, tie_breaker: IntArray) -> FloatArray:
    net = counts.net
    margin = dict(zip(zip(counts.first.tolist(), counts.second.tolist(), strict=True), net.tolist(), strict=True))
    borda = np.lexsort((tie_breaker, -counts.net_win_levels, items.query))
    position = np.empty(counts.size, np.int64)
    position[borda] = np.arange(counts.size)

    def beats(a: int, b: int) -> bool:
        majority = margin.get((a, b), 0.0) if a < b else -margin.get((b, a), 0.0)
        return bool(majority > 0 or (majority == 0 and position[a] < position[b]))

    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        path: list[int] = []
        for item in borda[items.of_query(query)].tolist():
            low, high = 0, len(path)  # invariant: path[low - 1] beats item, and item beats path[high]
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if beats(item, path[middle]) else (middle + 1, high)
            path.insert(low, item)
        scores[path] = -np.arange(len(path), dtype=np.float64)
    return scores


@dataclass(frozen=True, kw_only=True)
class GreedyOrder(Model):
    """Repeatedly take the item that is most preferred over the remaining ones.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    The preference for item i over item j is (wᵢⱼ − wⱼᵢ) / nᵢⱼ. Each step takes the item with the largest sum of
    preferences over the remaining items (Cohen, Schapire & Singer 1999, Algorithm Greedy-Order). Ties are broken by
    Borda score, then by label. Scores are positions: 0, -1, -2, ….

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"])
    >>> GreedyOrder().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    order_only: ClassVar[bool] = True

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        return fit_order(self, comparisons, _greedy_order, self.seed)


def _greedy_order(counts: PairCounts, items: Items, tie_breaker: IntArray) -> FloatArray:
    total = counts.total
    preference = np.divide(counts.net, total, out=np.zeros(len(counts)), where=total > 0)
    # Items sorted by Borda score, then by `tie_breaker`, so that taking the first maximum breaks ties.
    order = np.lexsort((tie_breaker, -counts.net_win_levels, items.query))
    position = np.empty(counts.size, np.int64)
    position[order] = np.arange(counts.size)
    source, target = position[counts.first], position[counts.second]
    by_source = np.argsort(np.concatenate((source, target)), kind="stable")
    opponent = np.concatenate((target, source))[by_source]
    preferences = np.concatenate((preference, -preference))[by_source]
    begins = np.searchsorted(np.concatenate((source, target))[by_source], np.arange(counts.size + 1))
    potential = counts.per_item(preference, -preference)[order]
    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        remaining = potential[block]
        for step in range(len(remaining)):
            best = block.start + int(np.argmax(remaining >= remaining.max() - ROUNDING))
            scores[order[best]] = -float(step)
            rows = slice(begins[best], begins[best + 1])
            potential[opponent[rows]] += preferences[rows]
            potential[best] = -np.inf
    return scores
