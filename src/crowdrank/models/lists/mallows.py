"""Mallows 1957: lists scattered about one order, the likeliest of which is Kemeny's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts, Rankings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap_counts, bootstrap_weights
from crowdrank.models.lists.kemeny import Consensus, consensus
from crowdrank.models.lists.mallows_likelihood import log_normaliser, pairs, theta_of
from crowdrank.models.lists.pair_tallies import check_tables_fit, counter, tie_sizes
from crowdrank.results import Ranking, Uncertainty

# All sets of so many items are listed: 2²⁰ of them take 400 MB.
_MOST_EXACT = 20
# In resamples larger circles are searched, from one start: each must be quick.
_EXACT_AGAIN = 10


@dataclass(frozen=True, kw_only=True)
class Mallows(Model):
    """The order that goes against the fewest pairs of the lists (Kemeny), and how far they scatter about it.

    Equally good orders go by Borda, then by label.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> Mallows().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[tuple[type, ...]] = (Rankings, Comparisons)
    order_only: ClassVar[bool] = True

    exact_up_to: int = 14
    """Items of a circle of majorities up to which no order is better for sure; beyond, a search finds a good one."""
    starts: int = 20
    """Of the search, after the one from Borda's order."""
    dispersion: Literal["pooled", "by-query"] = "pooled"
    """How far lists scatter: one number for all queries, or one for each."""
    seed: int = 0
    """Of the search and the bootstrap."""

    def __post_init__(self) -> None:
        if not 1 <= self.exact_up_to <= _MOST_EXACT or self.starts < 0:
            raise SettingError(f"exact_up_to must lie between 1 and {_MOST_EXACT}, and starts must not be negative.")
        if self.dispersion not in ("pooled", "by-query"):
            raise SettingError(f"dispersion must be pooled or by-query, got {self.dispersion!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        if isinstance(judgments, Comparisons):
            votes = require_kind(Comparisons, judgments, self)
            return self._conclude(
                votes, votes.counts, _lists_of_two(votes), lambda again: bootstrap_counts(votes, again, seed=self.seed)
            )
        lists = require_kind(Rankings, judgments, self)
        count = counter(lists)
        return self._conclude(
            lists,
            count(lists.weights),
            _lists_and_ties(lists),
            lambda again: bootstrap_weights(lists, lambda weights: again(count(weights)), seed=self.seed),
        )

    def _conclude(
        self,
        data: Comparisons | Rankings,
        counts: PairCounts,
        sizes: Sizes,
        resample: Callable[[Callable[[PairCounts], FloatArray]], Uncertainty],
    ) -> Ranking:
        items = data.items
        check_tables_fit(items, "borda")
        place, proven = self._place(counts, items, np.arange(len(items)))
        against = _against(counts, items, place)
        spread = _spread(sizes, against, items, pooled=self.dispersion == "pooled")
        return build_ranking(
            self,
            data,
            -place,
            log_likelihood=spread.log_likelihood,
            parameters={"proven": float(proven.mean()), "against": float(against.sum()), **spread.parameters},
            measure=lambda: resample(self._again(items)),
        )

    def _again(self, items: Items) -> Callable[[PairCounts], FloatArray]:
        """Ties go by lot here: broken by label every time, they would look like certainty."""
        rng = np.random.default_rng(self.seed)
        return lambda counts: items.centre(-self._place(counts, items, rng.permutation(len(items)), quick=True)[0])

    def _place(
        self, counts: PairCounts, items: Items, lot: IntArray, quick: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        """The place of each item, and of which queries no better order exists for sure."""
        rng = np.random.default_rng(self.seed)
        exact, starts = (min(self.exact_up_to, _EXACT_AGAIN), 0) if quick else (self.exact_up_to, self.starts)
        turn = np.lexsort((lot, -counts.net_win_levels, items.query))
        rank, proven = np.empty(len(items), np.int64), np.ones(len(items.queries), bool)
        rank[turn] = np.arange(len(items)) - items.starts[items.query]
        # Borda's order is the best where no majority goes against it.
        wrong = counts.net * (rank[counts.second] - rank[counts.first]) < 0
        for query in np.unique(items.query[counts.first[wrong]]):
            block = items.of_query(query)
            above = _table(counts, block, rank[block])
            found: Consensus = consensus(above, exact, starts, rng)
            rank[turn[block][found.order]] = np.arange(len(above))
            proven[query] = found.proven
        return rank.astype(np.float64), proven


def _table(counts: PairCounts, block: slice, rank: IntArray) -> FloatArray:
    """The weight of those who put one item of a query above another, items in order of rank."""
    rows = slice(*np.searchsorted(counts.first, (block.start, block.stop)))
    above = np.zeros((len(rank), len(rank)))
    first, second = rank[counts.first[rows] - block.start], rank[counts.second[rows] - block.start]
    above[first, second], above[second, first] = counts.first_wins[rows], counts.second_wins[rows]
    return above


def _against(counts: PairCounts, items: Items, place: FloatArray) -> FloatArray:
    """For each query the weight of the pairs that the order turns round."""
    turned = np.where(place[counts.first] < place[counts.second], counts.second_wins, counts.first_wins)
    return np.bincount(items.query[counts.first], turned, len(items.queries)).astype(np.float64)


class Sizes(NamedTuple):
    """How many items were ordered at once, how often, and in which query; below 0 what ties left open of it."""

    size: IntArray
    weight: FloatArray
    query: Int32Array


def _lists_and_ties(lists: Rankings) -> Sizes:
    tied, of_tie = tie_sizes(lists)
    query = lists.items.query[lists.item[lists.offsets[:-1]]]
    return Sizes(
        np.concatenate((lists.lengths, tied)),
        np.concatenate((lists.weights, -lists.weights[of_tie])),
        np.concatenate((query, query[of_tie])),
    )


def _lists_of_two(votes: Comparisons) -> Sizes:
    counts = votes.counts
    return Sizes(np.full(len(counts), 2), counts.first_wins + counts.second_wins, votes.items.query[counts.first])


class Spread(NamedTuple):
    """How far lists scatter about the consensus, and how likely they are."""

    parameters: dict[str, float]
    log_likelihood: float


def _spread(sizes: Sizes, against: FloatArray, items: Items, pooled: bool) -> Spread:
    """The likeliest θ, as a dispersion e^θ: 0 where all agree, 1 where any order is as likely."""
    if pooled:
        parts = {"dispersion": (float(against.sum()), sizes.size, sizes.weight)}
    else:
        own = [sizes.query == query for query in range(len(items.queries))]
        parts = {
            f"dispersion_of_{items.queries[q]}": (float(against[q]), sizes.size[rows], sizes.weight[rows])
            for q, rows in enumerate(own)
        }
    found, value = {}, 0.0
    for name, (distance, size, weight) in parts.items():
        if weight @ pairs(size) <= 0:  # nothing was ordered
            continue
        theta = theta_of(distance, size, weight)
        found[name] = float(np.exp(theta))
        if distance > 0:
            value += theta * distance - float(weight @ log_normaliser(theta, size))
    return Spread(found, value)
