"""Fagin, Kumar & Sivakumar 2003: the median of the places an item was given.

Dwork, Kumar, Naor & Sivakumar 2001: the order whose places are nearest to those that the lists give.

Cormack, Clarke & Büttcher 2009: reciprocal ranks added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Judgments, Rankings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap, bootstrap_weights
from crowdrank.models.lists.pair_tallies import check_tables_fit, tie_sizes
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class MedianRank(Model):
    """The median place an item was given, as a share of the list's length."""

    reads: ClassVar[type] = Rankings

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        return build_ranking(
            self,
            rankings,
            _score(rankings),
            measure=lambda: bootstrap(rankings, lambda r: r.items.centre(_score(r)), seed=self.seed),
        )


def _score(rankings: Rankings) -> FloatArray:
    weight = rankings.weights[rankings.list_of_row]
    return -weighted_medians(rankings.item, relative_places(rankings), weight, len(rankings.items))


def relative_places(rankings: Rankings) -> FloatArray:
    """Places from 0 (top) to 1 (bottom) of each list, tied items in the middle of theirs."""
    rows = np.arange(len(rankings.item))
    fresh = np.append(True, rankings.place[1:] != rankings.place[:-1])
    fresh[rankings.offsets[:-1]] = True
    tie = np.cumsum(fresh) - 1
    middle = np.bincount(tie, rows) / np.bincount(tie)
    lengths = rankings.lengths[rankings.list_of_row]
    return np.asarray((middle[tie] - rankings.offsets[:-1][rankings.list_of_row] + 0.5) / lengths)


def weighted_medians(group: Int32Array, value: FloatArray, weight: FloatArray, size: int) -> FloatArray:
    """The weighted median of each group; halfway where the weight splits evenly; 0.5 for empty groups."""
    order = np.lexsort((value, group))
    group, value, weight = group[order], value[order], weight[order]
    found = np.full(size, 0.5)
    present, begins = np.unique(group, return_index=True)
    total = np.add.reduceat(weight, begins)
    running = np.cumsum(weight)
    before = running[begins] - weight[begins]
    half = before + total / 2
    slack = 1e-9 * np.maximum(total, 1.0)  # rounding must not decide between the two middle values
    ends = np.append(begins[1:], len(group)) - 1
    low = np.minimum(np.searchsorted(running, half - slack), ends)
    high = np.minimum(np.searchsorted(running, half + slack), ends)
    found[present] = (value[low] + value[high]) / 2
    return found


# What equally good orders are told apart by: far less, all together, than one place in one list.
_TIE_BREAK = 1e-6


@dataclass(frozen=True, kw_only=True)
class Footrule(Model):
    """The order whose places differ least, all told, from those in the lists (Spearman's footrule).

    A list of some items is stretched to the length of all. Equally good orders go by Borda, then by label.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> Footrule().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        check_tables_fit(lists.items, "median-rank")
        place, distance = assigned(Layout(lists), lists.weights, np.arange(len(lists.items)))
        return build_ranking(
            self,
            lists,
            -place,
            parameters={"distance": distance},
            measure=lambda: bootstrap_weights(lists, self._again(lists), seed=self.seed),
        )

    def _again(self, lists: Rankings) -> Callable[[FloatArray], FloatArray]:
        """Ties go by lot here: broken by label every time, they would look like certainty."""
        rng, layout, items = np.random.default_rng(self.seed), Layout(lists), lists.items
        return lambda weights: items.centre(-assigned(layout, weights, rng.permutation(len(items)))[0])


class Layout:
    """The rows of all lists, item by item."""

    def __init__(self, lists: Rankings):
        rows = np.argsort(lists.item, kind="stable")
        self.items, self.item, self.of_list = lists.items, lists.item[rows], lists.list_of_row[rows]
        self.place = relative_places(lists)[rows]
        self.worth = lists.lengths[self.of_list] * (1 - 2 * self.place)
        """Items below it in its list, less items above: Borda's points."""


def assigned(layout: Layout, weights: FloatArray, lot: IntArray) -> tuple[FloatArray, float]:
    """The place of each item in the best order of its query, and how far the lists are from it, in places."""
    from scipy.optimize import linear_sum_assignment

    items, weight = layout.items, weights[layout.of_list]
    points = np.bincount(layout.item, weight * layout.worth, len(items))
    turn = np.lexsort((lot, -np.round(points, 9), items.query))
    row_of = np.empty(len(items), np.int64)
    row_of[turn] = np.arange(len(items)) - items.starts[items.query]
    found, distance = np.empty(len(items)), 0.0
    for query in range(len(items.queries)):
        block = items.of_query(query)
        size, rows = block.stop - block.start, slice(*np.searchsorted(layout.item, (block.start, block.stop)))
        cost = distances(row_of[layout.item[rows]], layout.place[rows], weight[rows], size)
        apart = (np.arange(size) - np.arange(size)[:, None]) / size
        lightest = weight[rows].min(initial=1.0, where=weight[rows] > 0)
        _, place = linear_sum_assignment(np.round(cost, 9) + _TIE_BREAK * lightest * apart**2)
        found[turn[block]] = place
        distance += float(cost[np.arange(size), place].sum())
    return found, distance


def distances(item: IntArray, place: FloatArray, weight: FloatArray, size: int) -> FloatArray:
    """`[i, p]`: Σ weight·|place of item i in a list − p|, places stretched to 0 … size − 1, by running sums over p."""
    stretched = place * size - 0.5
    above = np.clip(np.ceil(stretched - 1e-9).astype(np.int64), 0, size)  # how many p lie above it
    cell = item * (size + 1) + above
    count, total = (
        np.cumsum(np.bincount(cell, each, size * (size + 1)).reshape(size, size + 1), axis=1)
        for each in (weight, weight * stretched)
    )
    p = np.arange(size)
    # what lies at or before p is left behind by p, the rest is still ahead of it
    behind = p * count[:, :-1] - total[:, :-1]
    ahead = total[:, -1:] - total[:, :-1] - p * (count[:, -1:] - count[:, :-1])
    return np.asarray(behind + ahead)


@dataclass(frozen=True, kw_only=True)
class ReciprocalRankFusion(Model):
    """1 / (k + rank), added up over the lists that name the item.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"]]])
    >>> ReciprocalRankFusion().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    k: float = 60.0
    """The larger, the less the first places count beyond the others."""
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if not 0 <= self.k < np.inf:
            raise SettingError(f"k must not be negative, got {self.k}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        worth, of_list = worths(lists, self.k), lists.list_of_row

        def score(weights: FloatArray) -> FloatArray:
            return np.bincount(lists.item, worth * weights[of_list], len(lists.items)).astype(np.float64)

        return build_ranking(
            self,
            lists,
            score(lists.weights),
            centred=False,
            measure=lambda: bootstrap_weights(lists, score, seed=self.seed),
        )


def worths(lists: Rankings, k: float) -> FloatArray:
    """What each row of the lists is worth; tied items share what their places are worth together."""
    rank = np.arange(len(lists.item)) - lists.offsets[:-1][lists.list_of_row] + 1
    tied, _ = tie_sizes(lists)
    place = np.repeat(np.arange(len(tied)), tied)
    return np.asarray((np.bincount(place, 1 / (k + rank)) / tied)[place])
