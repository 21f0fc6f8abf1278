"""Dwork, Kumar, Naor & Sivakumar 2001: the order whose places are nearest to those that the lists give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Judgments, Rankings
from crowdrank.models.bootstrap import bootstrap_weights
from crowdrank.models.conclude import conclude, need
from crowdrank.models.list_counts import check_tables_fit
from crowdrank.models.median_rank import relative_places
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

# What equally good orders are told apart by: far less, all together, than one place in one list.
_TIE_BREAK = 1e-6


@dataclass(frozen=True, kw_only=True)
class Footrule:
    """The order whose places differ least, all told, from those in the lists (Spearman's footrule).

    A list of some items is stretched to the length of all. Equally good orders go by Borda, then by label.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> Footrule().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    gives_order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        lists = need(Rankings, judgments, self)
        check_tables_fit(lists.items, "median-rank")
        place, distance = assigned(Layout(lists), lists.weights, np.arange(len(lists.items)))
        return conclude(
            self, lists, -place, parameters={"distance": distance},
            measure=lambda: bootstrap_weights(lists, self._again(lists), seed=self.seed),
        )  # fmt: skip

    def _again(self, lists: Rankings) -> Callable[[Vector], Vector]:
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


def assigned(layout: Layout, weights: Vector, lot: Codes) -> tuple[Vector, float]:
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


def distances(item: Codes, place: Vector, weight: Vector, size: int) -> Vector:
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
