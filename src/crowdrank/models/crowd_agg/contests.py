"""Each annotator's view of each item as contests against the other items, for rank distributions (Niu et al. 2015, §4).

Also `GradedPairs`: ratings as comparisons that can be resampled with the ratings.
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
    BackwardInduction,
    fair_binomial,
    rank_distribution,
    terminal_utilities,
)

WinRule = Literal["answer", "share", "printed"]

# Rounding that adding weights may leave in a tied pair.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PairwiseContests:
    """Views of items, each with the loss probabilities against the items it was compared with.

    A view is one item as seen by one unit of `AnnotatorIndex` (an annotator, or an annotator within a query).

    Parameters
    ----------
    items : Items
        The items and their queries.
    unit : array
        Unit of each view.
    item : array
        Item of each view.
    offsets : array
        First contest of each view in `losing`, and the number of contests at the end.
    losing : array
        Probability of losing each contest, before accounting for annotator errors.
    weight : array
        Weight of each view: the mean weight of its contests, 1 if every pair was answered once.
    """

    items: Items
    unit: IntArray
    item: IntArray
    offsets: IntArray
    losing: FloatArray
    weight: FloatArray

    @cached_property
    def compared(self) -> IntArray:
        """Number of contests of each view."""
        return np.diff(self.offsets)

    @cached_property
    def size(self) -> IntArray:
        """Number of items in each view's query."""
        return np.asarray(np.diff(self.items.starts)[self.items.query[self.item]])

    def losing_given_quality(self, quality: FloatArray) -> FloatArray:
        """Eq. 9: loss probabilities if the answers of unit i are correct with probability quality[i]."""
        correct = np.repeat(quality[self.unit], self.compared)
        return np.asarray(correct * self.losing + (1.0 - correct) * (1.0 - self.losing))

    def distributions(self, quality: FloatArray) -> list[FloatArray]:
        """Rank distributions, items × ranks per query: the mean over an item's views; binomial for unseen items."""
        losing, starts = self.losing_given_quality(quality), self.items.starts
        sizes = np.diff(starts)
        tables = [np.zeros((size, size)) for size in sizes.tolist()]
        total = np.bincount(self.item, self.weight, len(self.items))
        for view, (item, query) in enumerate(zip(self.item, self.items.query[self.item], strict=True)):
            own = losing[self.offsets[view] : self.offsets[view + 1]]
            fraction = self.weight[view] / total[item]
            tables[query][item - starts[query]] += fraction * rank_distribution(own, int(sizes[query]) - 1 - len(own))
        for item in np.flatnonzero(total == 0).tolist():
            query = self.items.query[item]
            tables[query][item - starts[query]] = fair_binomial(int(sizes[query]) - 1)
        return tables


class ExpectedUtilities:
    """Expected utility of each item's rank, summed over annotators, as a function of their quality."""

    def __init__(self, contests: PairwiseContests, utility: FloatArray):
        self.contests = contests
        widest = int(contests.compared.max(initial=0))
        # Utilities are at most 1, so an item's sum is at most the weight of its views.
        self.size = np.bincount(contests.item, contests.weight, len(contests.items)).astype(np.float64)
        # Views with the same numbers of items and contests share a table of terminal utilities.
        kinds, kind = np.unique(contests.size * (widest + 1) + contests.compared, return_inverse=True)
        size, compared = np.divmod(kinds, widest + 1)
        terminal = np.zeros((len(kinds), widest + 1))
        for row, (n, c) in enumerate(zip(size.tolist(), compared.tolist(), strict=True)):
            terminal[row, : c + 1] = terminal_utilities(utility, n - 1 - c, c)
        self._expected = BackwardInduction(contests.offsets, terminal, kind)
        self._uninformed = np.array([terminal_utilities(utility, n - 1, 0)[0] for n in size.tolist()])[kind]

    def __call__(self, quality: FloatArray, multiplicity: FloatArray | None = None) -> FloatArray:
        """Gain of each item over an item that was not compared, so that a missing view adds nothing.

        In a bootstrap replicate, `multiplicity` says how often each unit was drawn.
        """
        contests = self.contests
        expected = self._expected(contests.losing_given_quality(quality))
        weight = contests.weight if multiplicity is None else contests.weight * multiplicity[contests.unit]
        gain = weight * (expected - self._uninformed)
        return np.bincount(contests.item, gain, len(contests.items)).astype(np.float64)


def build_contests(comparisons: Comparisons, unit: IntArray, win_rule: WinRule) -> PairwiseContests:
    """Every answer as two contests, one per item; repeated answers to a pair are merged by weight."""
    pair_unit, first, second, fraction, weight = _merged_answers(comparisons, unit)
    size = len(comparisons.items)
    view = np.concatenate((pair_unit * size + first, pair_unit * size + second))
    opponent = np.concatenate((pair_unit * size + second, pair_unit * size + first))
    order = np.argsort(view, kind="stable")
    views, counts = np.unique(view, return_counts=True)
    view_unit, item = np.divmod(views, size)
    row, other = np.searchsorted(views, view[order]), np.searchsorted(views, opponent[order])
    won = np.concatenate((fraction, 1.0 - fraction))[order]
    if win_rule != "answer":
        won = _by_wins(won, row, other, _denominators(comparisons.items, view_unit, item, win_rule), win_rule)
    total = np.bincount(row, np.concatenate((weight, weight))[order], len(views))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return PairwiseContests(comparisons.items, view_unit, item, offsets, 1.0 - won, total / counts)


def _merged_answers(
    comparisons: Comparisons, unit: IntArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Unit, first and second item, fraction of answers for the first (a tie counts half), and weight."""
    size, counts = len(comparisons.items), comparisons.counts
    known = pair_cells(size, counts.first, counts.second)
    pair = np.searchsorted(known, pair_cells(size, comparisons.left, comparisons.right))
    cells, row = np.unique(unit * len(known) + pair, return_inverse=True)
    for_first = np.where(comparisons.left < comparisons.right, comparisons.outcome, -comparisons.outcome)
    weight = np.bincount(row, comparisons.weights, len(cells)).astype(np.float64)
    fraction = 0.5 + 0.5 * np.bincount(row, comparisons.weights * for_first, len(cells)) / weight
    pair_unit, pair = np.divmod(cells, len(known))
    return pair_unit, counts.first[pair].astype(np.int64), counts.second[pair].astype(np.int64), fraction, weight


def _by_wins(won: FloatArray, row: IntArray, other: IntArray, denominator: IntArray, win_rule: WinRule) -> FloatArray:
    """Eq. 6 from the number of contests won, corrected ("share") or as printed; a tied pair stays at ½."""
    decided = np.abs(won - 0.5) > _ROUNDING
    wins = np.bincount(row, decided & (won > 0.5), len(denominator)).astype(np.float64)
    lead = wins[row] - wins[other]
    if win_rule == "share":
        probability = 0.5 + lead / (2.0 * denominator[row])
    else:
        relative = lead / denominator[row]
        probability = np.select([lead > 0, lead < 0], [relative, 1.0 + relative], 0.5)
    return np.where(decided, probability, 0.5)


def _denominators(items: Items, unit: IntArray, item: IntArray, win_rule: WinRule) -> IntArray:
    """Per view, the number of items of its query that the annotator judged; as printed, all items of the query."""
    query = items.query[item].astype(np.int64)
    if win_rule == "printed":
        return np.asarray(np.diff(items.starts)[query])
    _, own, judged = np.unique(unit * len(items.queries) + query, return_inverse=True, return_counts=True)
    return np.asarray(judged[own])


@dataclass(frozen=True, eq=False)
class GradedPairs:
    """All pairs of items that one annotator graded in a query, as comparisons; equal grades are ties."""

    ratings: Ratings
    comparisons: Comparisons

    @classmethod
    def of(cls, ratings: Ratings) -> GradedPairs:
        """Weight a comparison by the geometric mean of the weights of its two grades (repeated grades summed)."""
        pairs = cls(ratings, ratings.to_comparisons(ties="keep"))
        weight = np.sqrt(np.prod(pairs.both_sides(ratings.weights), axis=0))
        return cls(ratings, pairs.comparisons.reweighted(weight))

    def both_sides(self, value: FloatArray) -> FloatArray:
        """A value per rating, looked up for the left and the right item of each comparison; repeated grades summed."""
        who, size = self.comparisons.annotator, len(self.ratings.items)
        assert who is not None
        assert self.ratings.annotator is not None
        cells, row = np.unique(self.ratings.annotator.astype(np.int64) * size + self.ratings.item, return_inverse=True)
        total = np.bincount(row, value)
        sides = np.stack((self.comparisons.left, self.comparisons.right))
        return np.asarray(total[np.searchsorted(cells, who.astype(np.int64) * size + sides)])

    def resampled(self, weight: FloatArray) -> Comparisons:
        """The comparisons for resampled weights of the ratings: each pair counts once per pair of copies of its grades.

        Resampling the comparisons themselves would ignore that they share grades, and overstate the evidence.
        """
        copies = self.both_sides(weight) / self.both_sides(self.ratings.weights)
        return self.comparisons.reweighted(self.comparisons.weights * np.prod(copies, axis=0))
