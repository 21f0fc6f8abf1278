"""What each annotator said of each item as contests with the others, for rank distributions (Niu et al. 2015, §4).

Ratings as comparisons that remember what the grades weigh.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items, Ratings
from crowdrank.data.pair_counts import pair_cells
from crowdrank.models.crowd_agg.rank_distributions import (
    beyond_coins,
    expected_utilities,
    fair_coins,
    rank_distribution,
)

Reading = Literal["answer", "share", "printed"]

# What adding weights up may leave of a tied pair.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Contests:
    """Views, one annotator's of one item, each with the chances of losing to those it was compared with."""

    items: Items
    seat: IntArray
    """Whose view it is."""
    item: IntArray
    offsets: IntArray
    """Where each view's contests begin in `losing`; one more entry than there are views."""
    losing: FloatArray
    """As answered; that annotators err comes later."""
    weight: FloatArray
    """Of each view: the mean weight of its contests, 1 where every pair was answered once."""

    @cached_property
    def compared(self) -> IntArray:
        return np.diff(self.offsets)

    @cached_property
    def size(self) -> IntArray:
        """Items of each view's query."""
        return np.asarray(np.diff(self.items.starts)[self.items.query[self.item]])

    def with_quality(self, quality: FloatArray) -> FloatArray:
        """Eq. 9: the chances of losing, where the one in seat i is right with chance quality[i]."""
        right = np.repeat(quality[self.seat], self.compared)
        return np.asarray(right * self.losing + (1.0 - right) * (1.0 - self.losing))

    def distributions(self, quality: FloatArray) -> list[FloatArray]:
        """Items × ranks for each query: the mean over the views of an item; fair coins where nobody compared it."""
        losing, starts = self.with_quality(quality), self.items.starts
        sizes = np.diff(starts)
        tables = [np.zeros((size, size)) for size in sizes.tolist()]
        total = np.bincount(self.item, self.weight, len(self.items))
        for view, (item, query) in enumerate(zip(self.item, self.items.query[self.item], strict=True)):
            own = losing[self.offsets[view] : self.offsets[view + 1]]
            share = self.weight[view] / total[item]
            tables[query][item - starts[query]] += share * rank_distribution(own, int(sizes[query]) - 1 - len(own))
        for item in np.flatnonzero(total == 0).tolist():
            query = self.items.query[item]
            tables[query][item - starts[query]] = fair_coins(int(sizes[query]) - 1)
        return tables


class Utilities:
    """What each item can expect of a utility of ranks, summed over the annotators."""

    def __init__(self, contests: Contests, utility: FloatArray):
        self.contests = contests
        widest = int(contests.compared.max(initial=0))
        # Utilities are at most 1, so an item's sum is at most the weight of its views.
        self.size = np.bincount(contests.item, contests.weight, len(contests.items)).astype(np.float64)
        kinds, self._end = np.unique(contests.size * (widest + 1) + contests.compared, return_inverse=True)
        size, compared = np.divmod(kinds, widest + 1)
        self._ends = np.zeros((len(kinds), widest + 1))
        for row, (n, c) in enumerate(zip(size.tolist(), compared.tolist(), strict=True)):
            self._ends[row, : c + 1] = beyond_coins(utility, n - 1 - c, c)
        self._nothing = np.array([beyond_coins(utility, n - 1, 0)[0] for n in size.tolist()])[self._end]

    def __call__(self, quality: FloatArray, drawn: FloatArray | None = None) -> FloatArray:
        """Above what is expected of an item that was not compared: whoever says nothing of an item adds nothing.

        Where seats were `drawn` so many times, they count so often.
        """
        contests = self.contests
        found = expected_utilities(contests.with_quality(quality), contests.offsets, self._ends, self._end)
        weight = contests.weight if drawn is None else contests.weight * drawn[contests.seat]
        gain = weight * (found - self._nothing)
        return np.bincount(contests.item, gain, len(contests.items)).astype(np.float64)


def contests_of(comparisons: Comparisons, seat: IntArray, reading: Reading) -> Contests:
    """Every answer as two contests, one of each item; repeated answers to a pair as one, by their weight."""
    sat, first, second, share, weight = _answered(comparisons, seat)
    size = len(comparisons.items)
    view = np.concatenate((sat * size + first, sat * size + second))
    opponent = np.concatenate((sat * size + second, sat * size + first))
    order = np.argsort(view, kind="stable")
    views, counts = np.unique(view, return_counts=True)
    whose, item = np.divmod(views, size)
    row, other = np.searchsorted(views, view[order]), np.searchsorted(views, opponent[order])
    won = np.concatenate((share, 1.0 - share))[order]
    if reading != "answer":
        won = _by_wins(won, row, other, _among(comparisons.items, whose, item, reading), reading)
    total = np.bincount(row, np.concatenate((weight, weight))[order], len(views))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Contests(comparisons.items, whose, item, offsets, 1.0 - won, total / counts)


def _answered(comparisons: Comparisons, seat: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Seat, first and second item, the share of answers for the first (a tie is half one) and their weight."""
    size, counts = len(comparisons.items), comparisons.counts
    known = pair_cells(size, counts.first, counts.second)
    pair = np.searchsorted(known, pair_cells(size, comparisons.left, comparisons.right))
    cells, row = np.unique(seat * len(known) + pair, return_inverse=True)
    towards = np.where(comparisons.left < comparisons.right, comparisons.outcome, -comparisons.outcome)
    weight = np.bincount(row, comparisons.weights, len(cells)).astype(np.float64)
    share = 0.5 + 0.5 * np.bincount(row, comparisons.weights * towards, len(cells)) / weight
    sat, pair = np.divmod(cells, len(known))
    return sat, counts.first[pair].astype(np.int64), counts.second[pair].astype(np.int64), share, weight


def _by_wins(won: FloatArray, row: IntArray, other: IntArray, among: IntArray, reading: Reading) -> FloatArray:
    """Eq. 6 by contests won in all, as it must be meant or as it is printed; a tied pair stays even."""
    decided = np.abs(won - 0.5) > _ROUNDING
    wins = np.bincount(row, decided & (won > 0.5), len(among)).astype(np.float64)
    lead = wins[row] - wins[other]
    if reading == "share":
        chance = 0.5 + lead / (2.0 * among[row])
    else:
        chance = np.select([lead > 0, lead < 0], [lead / among[row], 1.0 + lead / among[row]], 0.5)
    return np.where(decided, chance, 0.5)


def _among(items: Items, seat: IntArray, item: IntArray, reading: Reading) -> IntArray:
    """Of each view: how many items of its query the annotator judged, or as printed, how many there are."""
    query = items.query[item].astype(np.int64)
    if reading == "printed":
        return np.asarray(np.diff(items.starts)[query])
    _, own, judged = np.unique(seat * len(items.queries) + query, return_inverse=True, return_counts=True)
    return np.asarray(judged[own])


@dataclass(frozen=True, eq=False)
class GradedPairs:
    """Every two items that one annotator graded in a query; equal grades are a tie."""

    ratings: Ratings
    comparisons: Comparisons

    @classmethod
    def of(cls, ratings: Ratings) -> GradedPairs:
        """A comparison weighs the geometric mean of what its two grades do, repeated ones added up."""
        pairs = cls(ratings, ratings.to_comparisons(ties="keep"))
        weight = np.sqrt(np.prod(pairs.of_both(ratings.weights), axis=0))
        return cls(ratings, pairs.comparisons.reweighted(weight))

    def of_both(self, value: FloatArray) -> FloatArray:
        """A value of grades, for the left and the right item of each comparison; added up over repeated grades."""
        who, size = self.comparisons.annotator, len(self.ratings.items)
        assert who is not None
        assert self.ratings.annotator is not None
        cells, row = np.unique(self.ratings.annotator.astype(np.int64) * size + self.ratings.item, return_inverse=True)
        total = np.bincount(row, value)
        sides = np.stack((self.comparisons.left, self.comparisons.right))
        return np.asarray(total[np.searchsorted(cells, who.astype(np.int64) * size + sides)])

    def redrawn(self, weight: FloatArray) -> Comparisons:
        """The comparisons when grades weigh this, having been drawn anew: as many as there are pairs of their copies.

        Comparisons drawn by themselves would be taken for more than the grades they were made of.
        """
        copies = self.of_both(weight) / self.of_both(self.ratings.weights)
        return self.comparisons.reweighted(self.comparisons.weights * np.prod(copies, axis=0))
