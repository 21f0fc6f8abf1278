"""What models computed outright from pair counts share: a scoring rule, and a bootstrap around it.

The share of comparisons an item won, ties counted half.

Borda 1781: a point for every item it was put above, less one for every item put above it.

Copeland 1951: opponents beaten by a majority less opponents lost to.

Montague & Aslam 2002: an order in which each item beats the next by majority (a Hamiltonian path).

Cohen, Schapire & Singer 1999: take the item most preferred over the rest, then go on without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
    """For models that must put one of two equals first: by label in the answer, by lot in each resample.

    Broken by label every time, a tie would look like certainty.
    """
    items, rng = comparisons.items, np.random.default_rng(seed)
    return fit_counts(
        model,
        comparisons,
        lambda counts: order(counts, items, np.arange(len(items))),
        seed=seed,
        again=lambda counts: order(counts, items, rng.permutation(len(items))),
    )


def fit_counts(
    model: Model,
    comparisons: Comparisons,
    score: Callable[[PairCounts], FloatArray],
    *,
    seed: int,
    centred: bool = True,
    again: Callable[[PairCounts], FloatArray] | None = None,
) -> Ranking:
    """Score the counts, and be ready to score resampled ones (`again`, where that is to be done otherwise)."""
    items = comparisons.items

    def scaled(counts: PairCounts) -> FloatArray:
        found = (again or score)(counts)
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
    """The share of its comparisons an item won, whoever it met."""

    reads: ClassVar[type] = Comparisons

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_counts(self, require_kind(Comparisons, judgments, self), _share, seed=self.seed, centred=False)


def _share(counts: PairCounts) -> FloatArray:
    won = counts.per_item(counts.first_wins + counts.ties / 2, counts.second_wins + counts.ties / 2)
    met = counts.per_item(counts.total, counts.total)
    share = np.full(counts.size, 0.5)
    np.divide(won, met, out=share, where=met > 0)
    return share


@dataclass(frozen=True, kw_only=True)
class Borda(Model):
    """Items it was put above, less items put above it."""

    reads: ClassVar[tuple[type, ...]] = (Rankings, Comparisons)

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        if isinstance(judgments, Comparisons):
            return fit_counts(self, require_kind(Comparisons, judgments, self), _net_wins, seed=self.seed)
        rankings = require_kind(Rankings, judgments, self)
        measure = partial(bootstrap, rankings, points, seed=self.seed)
        return build_ranking(self, rankings, points(rankings), measure=measure)


def _net_wins(counts: PairCounts) -> FloatArray:
    return counts.net_wins


def points(rankings: Rankings) -> FloatArray:
    """Items below less items above, over all lists: what all pairs of all lists would add up to."""
    value = margins(rankings) * rankings.weights[rankings.list_of_row]
    return np.bincount(rankings.item, value, len(rankings.items)).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Copeland(Model):
    """Opponents beaten by majority, less opponents lost to."""

    reads: ClassVar[type] = Comparisons

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_counts(self, require_kind(Comparisons, judgments, self), _victories, seed=self.seed)


def _victories(counts: PairCounts) -> FloatArray:
    sign = np.sign(counts.net)  # exactly 0 where a pair is tied but for rounding
    return counts.per_item(sign, -sign)


@dataclass(frozen=True, kw_only=True)
class CondorcetFuse(Model):
    """An order in which no item loses by majority to the next.

    Pairs without a majority go by Borda, then by label.
    """

    reads: ClassVar[type] = Comparisons
    order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        return fit_order(self, comparisons, _path, self.seed)


def _path(counts: PairCounts, items: Items, lot: IntArray) -> FloatArray:
    net = counts.net
    margin = dict(zip(zip(counts.first.tolist(), counts.second.tolist(), strict=True), net.tolist(), strict=True))
    borda = np.lexsort((lot, -counts.net_win_levels, items.query))
    turn = np.empty(counts.size, np.int64)
    turn[borda] = np.arange(counts.size)

    def beats(a: int, b: int) -> bool:
        majority = margin.get((a, b), 0.0) if a < b else -margin.get((b, a), 0.0)
        return bool(majority > 0 or (majority == 0 and turn[a] < turn[b]))

    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        path: list[int] = []
        for item in borda[items.of_query(query)].tolist():
            low, high = 0, len(path)  # everything found: path[low-1] beats item, item beats path[high]
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if beats(item, path[middle]) else (middle + 1, high)
            path.insert(low, item)
        scores[path] = -np.arange(len(path), dtype=np.float64)
    return scores


@dataclass(frozen=True, kw_only=True)
class GreedyOrder(Model):
    """Again and again the item most preferred over those left.

    Preference is the share of judgments; equals go by Borda, then by label.
    """

    reads: ClassVar[type] = Comparisons
    order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        return fit_order(self, comparisons, _greedy, self.seed)


def _greedy(counts: PairCounts, items: Items, lot: IntArray) -> FloatArray:
    total = counts.total
    lead = np.divide(counts.net, total, out=np.zeros(len(counts)), where=total > 0)
    # laid out so that equal potentials go by Borda, then by lot: the first of equals is taken
    turn = np.lexsort((lot, -counts.net_win_levels, items.query))
    place = np.empty(counts.size, np.int64)
    place[turn] = np.arange(counts.size)
    one, other = place[counts.first], place[counts.second]
    by_one = np.argsort(np.concatenate((one, other)), kind="stable")
    rival, leads = np.concatenate((other, one))[by_one], np.concatenate((lead, -lead))[by_one]
    begins = np.searchsorted(np.concatenate((one, other))[by_one], np.arange(counts.size + 1))
    potential = counts.per_item(lead, -lead)[turn]
    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        left = potential[block]
        for taken in range(len(left)):
            best = block.start + int(np.argmax(left >= left.max() - ROUNDING))
            scores[turn[best]] = -float(taken)
            rows = slice(begins[best], begins[best + 1])
            potential[rival[rows]] += leads[rows]
            potential[best] = -np.inf
    return scores
