"""Models that use the positions of items in lists: median rank, Spearman's footrule, reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Judgments, Rankings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import affordable_replicates, bootstrap, bootstrap_weights
from crowdrank.models.lists.mallows import check_pair_table_size, tie_sizes
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class MedianRank(Model):
    """The median relative position of an item over the lists that contain it.

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    In a list of n items, the item at position p = 1 … n has the relative position (p − ½) / n; tied items share the
    mean of theirs. The score is minus the weighted median over lists, centred in each query. Items in no list get ½.

    Reference: Fagin, Kumar & Sivakumar (2003), Efficient similarity search and classification via rank aggregation.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> MedianRank().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        return build_ranking(
            self,
            rankings,
            _median_scores(rankings),
            measure=lambda: bootstrap(rankings, lambda r: r.items.centre(_median_scores(r)), seed=self.seed),
        )


def _median_scores(rankings: Rankings) -> FloatArray:
    weight = rankings.weights[rankings.list_of_row]
    return -weighted_medians(rankings.item, relative_positions(rankings), weight, len(rankings.items))


def relative_positions(rankings: Rankings) -> FloatArray:
    """Position of each row in its list, from 0 (top) to 1 (bottom); tied items share the mean of theirs."""
    rows = np.arange(len(rankings.item))
    is_new = np.append(True, rankings.place[1:] != rankings.place[:-1])
    is_new[rankings.offsets[:-1]] = True
    tie = np.cumsum(is_new) - 1
    middle = np.bincount(tie, rows) / np.bincount(tie)
    lengths = rankings.lengths[rankings.list_of_row]
    return np.asarray((middle[tie] - rankings.offsets[:-1][rankings.list_of_row] + 0.5) / lengths)


def weighted_medians(group: Int32Array, value: FloatArray, weight: FloatArray, size: int) -> FloatArray:
    """The weighted median of each group; the midpoint if the weight splits evenly; 0.5 for empty groups."""
    order = np.lexsort((value, group))
    group, value, weight = group[order], value[order], weight[order]
    medians = np.full(size, 0.5)
    present, begins = np.unique(group, return_index=True)
    total = np.add.reduceat(weight, begins)
    running = np.cumsum(weight)
    before = running[begins] - weight[begins]
    half = before + total / 2
    tolerance = 1e-9 * np.maximum(total, 1.0)  # rounding must not decide between the two middle values
    ends = np.append(begins[1:], len(group)) - 1
    low = np.minimum(np.searchsorted(running, half - tolerance), ends)
    high = np.minimum(np.searchsorted(running, half + tolerance), ends)
    medians[present] = (value[low] + value[high]) / 2
    return medians


# Added to the costs to choose between equally good orders: in total far less than one position in one list.
_TIE_BREAK = 1e-6
# An assignment of n items takes roughly this many times n³ operations.
_ASSIGNMENT_OPERATIONS = 4
# From this many items in a query, replicates start from the prices of the estimate.
_PRICED_FROM = 100


@dataclass(frozen=True, kw_only=True)
class Footrule(Model):
    """The order whose positions differ least in total from those in the lists (Spearman's footrule).

    Parameters
    ----------
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    Minimises Σ over lists and items of |position in the list − position in the order|, exactly, as an assignment
    problem. A partial list is stretched to the number of items of its query. Equally good orders are decided by Borda
    score, then by label. Scores are positions: 0, -1, -2, ….

    Reference: Dwork, Kumar, Naor & Sivakumar (2001), Rank aggregation methods for the Web.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> Footrule().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    order_only: ClassVar[bool] = True

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        check_pair_table_size(lists.items, "median-rank")
        position, distance = footrule_order(RowsByItem(lists), lists.weights, np.arange(len(lists.items)))
        return build_ranking(
            self,
            lists,
            -position,
            parameters={"distance": distance},
            measure=lambda: bootstrap_weights(
                lists,
                self._replicate_score(lists),
                seed=self.seed,
                replicates=affordable_replicates(
                    _ASSIGNMENT_OPERATIONS * float(np.sum(np.diff(lists.items.starts).astype(np.float64) ** 3))
                ),
            ),
        )

    def _replicate_score(self, lists: Rankings) -> Callable[[FloatArray], FloatArray]:
        """Break ties at random in bootstrap replicates: broken by label every time, they would look like certainty."""
        rng, rows, items = np.random.default_rng(self.seed), RowsByItem(lists), lists.items
        many = int(np.diff(items.starts).max()) >= _PRICED_FROM
        known = footrule_potentials(rows, lists.weights) if many else None
        return lambda weights: items.centre(-footrule_order(rows, weights, rng.permutation(len(items)), known)[0])


class RowsByItem:
    """The rows of all lists, sorted by item, with relative positions and Borda points (items below minus above)."""

    def __init__(self, lists: Rankings):
        rows = np.argsort(lists.item, kind="stable")
        self.items, self.item, self.list_of_row = lists.items, lists.item[rows], lists.list_of_row[rows]
        self.position = relative_positions(lists)[rows]
        self.borda_points = lists.lengths[self.list_of_row] * (1 - 2 * self.position)


def footrule_order(
    listed: RowsByItem, weights: FloatArray, tie_breaker: IntArray, potentials: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """The position of each item in the optimal order of its query, and the total distance to the lists.

    `potentials` of similar weights make the search shorter: they leave the best assignment as it is.
    """
    from scipy.optimize import linear_sum_assignment

    items, weight = listed.items, weights[listed.list_of_row]
    points = np.bincount(listed.item, weight * listed.borda_points, len(items))
    borda = np.lexsort((tie_breaker, -np.round(points, 9), items.query))
    borda_rank = np.empty(len(items), np.int64)
    borda_rank[borda] = np.arange(len(items)) - items.starts[items.query]
    positions, distance = np.empty(len(items)), 0.0
    for query in range(len(items.queries)):
        block = items.of_query(query)
        size, rows = block.stop - block.start, slice(*np.searchsorted(listed.item, (block.start, block.stop)))
        cost = footrule_costs(borda_rank[listed.item[rows]], listed.position[rows], weight[rows], size)
        # A tiny quadratic cost of leaving the Borda order decides between equally good assignments.
        shift = (np.arange(size) - np.arange(size)[:, None]) / size
        smallest = weight[rows].min(initial=1.0, where=weight[rows] > 0)
        total = np.round(cost, 9) + _TIE_BREAK * smallest * shift**2
        if potentials is not None:
            total -= potentials[block]
            total -= total.min(axis=1, keepdims=True)
        _, position = linear_sum_assignment(total)
        positions[borda[block]] = position
        distance += float(cost[np.arange(size), position].sum())
    return positions, distance


def footrule_potentials(listed: RowsByItem, weights: FloatArray) -> FloatArray:
    """Prices of the positions of each query: an item cannot gain by another position at the price of the two."""
    items, weight = listed.items, weights[listed.list_of_row]
    order, _ = footrule_order(listed, weights, np.arange(len(items)))
    prices = np.zeros(len(items))
    for query in range(len(items.queries)):
        block = items.of_query(query)
        size, rows = block.stop - block.start, slice(*np.searchsorted(listed.item, (block.start, block.stop)))
        cost = footrule_costs(listed.item[rows] - block.start, listed.position[rows], weight[rows], size)
        position = order[block].astype(np.int64)
        dearer = cost - cost[np.arange(size), position][:, None]
        price = np.zeros(size)
        for _ in range(size):  # Bellman and Ford's shortest paths
            lower = np.minimum(price, (dearer + price[position][:, None]).min(axis=0))
            if np.all(price - lower <= 1e-9):
                break
            price = lower
        prices[block] = price
    return prices


def footrule_costs(item: IntArray, position: FloatArray, weight: FloatArray, size: int) -> FloatArray:
    """`[i, p]`: Σ weight·|position of item i − p|, positions stretched to 0 … size − 1, by running sums over p."""
    stretched = position * size - 0.5
    above = np.clip(np.ceil(stretched - 1e-9).astype(np.int64), 0, size)  # how many p lie above it
    cell = item * (size + 1) + above
    count, total = (
        np.cumsum(np.bincount(cell, each, size * (size + 1)).reshape(size, size + 1), axis=1)
        for each in (weight, weight * stretched)
    )
    p = np.arange(size)
    # Σ w·|x − p| = Σ_{x ≤ p} w·(p − x) + Σ_{x > p} w·(x − p)
    before = p * count[:, :-1] - total[:, :-1]
    after = total[:, -1:] - total[:, :-1] - p * (count[:, -1:] - count[:, :-1])
    return np.asarray(before + after)


@dataclass(frozen=True, kw_only=True)
class ReciprocalRankFusion(Model):
    """Sum of 1 / (k + rank) over the lists that contain the item.

    Parameters
    ----------
    k : float, default 60.0
        Larger values reduce the advantage of the first ranks over later ones.
    seed : int, default 0
        Seed of the bootstrap that gives standard errors and rank intervals.

    Notes
    -----
    Tied items share the mean of what their ranks contribute. The weight of a list multiplies its contributions.

    Reference: Cormack, Clarke & Büttcher (2009), Reciprocal rank fusion outperforms Condorcet and individual rank
    learning methods.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"]]])
    >>> ReciprocalRankFusion().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    k: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.k < np.inf:
            raise SettingError(f"k must be zero or more, got {self.k}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        contribution, list_of_row = reciprocal_ranks(lists, self.k), lists.list_of_row

        def score(weights: FloatArray) -> FloatArray:
            return np.bincount(lists.item, contribution * weights[list_of_row], len(lists.items)).astype(np.float64)

        return build_ranking(
            self,
            lists,
            score(lists.weights),
            centred=False,
            measure=lambda: bootstrap_weights(lists, score, seed=self.seed),
        )


def reciprocal_ranks(lists: Rankings, k: float) -> FloatArray:
    """1 / (k + rank) of each row; tied items share the mean over their ranks."""
    rank = np.arange(len(lists.item)) - lists.offsets[:-1][lists.list_of_row] + 1
    tied, _ = tie_sizes(lists)
    place = np.repeat(np.arange(len(tied)), tied)
    return np.asarray((np.bincount(place, 1 / (k + rank)) / tied)[place])
