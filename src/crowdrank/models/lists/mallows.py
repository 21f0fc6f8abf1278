"""Mallows model (1957): lists scattered around a central order. Its maximum-likelihood estimate is Kemeny's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError, SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap_counts, bootstrap_weights
from crowdrank.models.lists.kemeny import descend_all, kemeny_order
from crowdrank.models.lists.mallows_likelihood import estimate_theta, log_normaliser, pair_count
from crowdrank.results import Ranking, Uncertainty

# The exact solver enumerates all subsets: 2²⁰ of them take 400 MB.
_MAX_EXACT_UP_TO = 20
# Bootstrap replicates solve only smaller components exactly, and search the rest without restarts: each must be quick.
_EXACT_IN_REPLICATES = 10
# From this many cells in the tables of all queries, replicates are found by compiled insertion descent alone.
_COMPILED_CELLS = 50_000
# Items per query up to which a table of all pairs fits into memory.
MAX_ITEMS = 5_000


@dataclass(frozen=True, kw_only=True)
class Mallows(Model):
    """The order that contradicts the fewest pairs (Kemeny), and the dispersion of the lists around it.

    Parameters
    ----------
    exact_up_to : int, default 14
        Size of a majority cycle (strongly connected component of the majority graph) up to which the order is
        guaranteed to be optimal. Larger ones are solved by local search.
    restarts : int, default 20
        Restarts of the local search, after the first run from Borda's order.
    dispersion : {"pooled", "by-query"}, default "pooled"
        Estimate one dispersion for all queries, or one per query.
    seed : int, default 0
        Seed of the local search and of the bootstrap.

    Notes
    -----
    P(list y | centre σ) = e^(θ·d(y, σ)) / Z(θ), with d the Kendall distance (number of discordant pairs) and θ ≤ 0.
    The reported dispersion is e^θ: 0 if all lists agree, 1 if every order is equally likely. Equally good orders are
    decided by Borda score, then by label. Scores are positions: 0, -1, -2, ….

    References: Mallows (1957), Non-null ranking models I; Kemeny (1959), Mathematics without numbers.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> Mallows().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[tuple[type, ...]] = (Rankings, Comparisons)
    order_only: ClassVar[bool] = True

    exact_up_to: int = 14
    restarts: int = 20
    dispersion: Literal["pooled", "by-query"] = "pooled"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.exact_up_to <= _MAX_EXACT_UP_TO:
            raise SettingError(f"exact_up_to must lie between 1 and {_MAX_EXACT_UP_TO}, got {self.exact_up_to}.")
        if self.restarts < 0:
            raise SettingError(f"restarts must be zero or more, got {self.restarts}.")
        if self.dispersion not in ("pooled", "by-query"):
            raise SettingError(f"dispersion must be 'pooled' or 'by-query', got {self.dispersion!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        if isinstance(judgments, Comparisons):
            votes = require_kind(Comparisons, judgments, self)
            return self._rank(
                votes,
                votes.counts,
                _pair_sizes(votes),
                lambda refit: bootstrap_counts(votes, refit, seed=self.seed),
            )
        lists = require_kind(Rankings, judgments, self)
        count = pair_counter(lists)
        return self._rank(
            lists,
            count(lists.weights),
            _list_and_tie_sizes(lists),
            lambda refit: bootstrap_weights(lists, lambda weights: refit(count(weights)), seed=self.seed),
        )

    def _rank(
        self,
        data: Comparisons | Rankings,
        counts: PairCounts,
        sizes: ListSizes,
        resample: Callable[[Callable[[PairCounts], FloatArray]], Uncertainty],
    ) -> Ranking:
        items = data.items
        check_pair_table_size(items, "borda")
        position, optimal = self._consensus(counts, items, np.arange(len(items)))
        discordant = _discordant_weight(counts, items, position)
        fit = _fit_dispersion(sizes, discordant, items, pooled=self.dispersion == "pooled")
        return build_ranking(
            self,
            data,
            -position,
            log_likelihood=fit.log_likelihood,
            parameters={
                "optimal": float(optimal.mean()),
                "discordant": float(discordant.sum()),
                **fit.parameters,
            },
            measure=lambda: resample(self._replicate_score(items)),
        )

    def _replicate_score(self, items: Items) -> Callable[[PairCounts], FloatArray]:
        """Break ties at random in bootstrap replicates: broken by label every time, they would look like certainty."""
        rng, starts = np.random.default_rng(self.seed), items.starts.astype(np.int64)

        def search(counts: PairCounts) -> FloatArray:
            tie_breaker = rng.permutation(len(items))
            if int(np.sum(np.diff(starts) ** 2)) < _COMPILED_CELLS:
                return items.centre(-self._consensus(counts, items, tie_breaker, quick=True)[0])
            _, rank = _borda_order(counts, items, tie_breaker)
            ends = np.searchsorted(counts.first, starts)
            found = descend_all(starts, ends, counts.first, counts.second, counts.net, rank)
            return items.centre(-found.astype(np.float64))

        return search

    def _consensus(
        self, counts: PairCounts, items: Items, tie_breaker: IntArray, quick: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        """The position of each item in its query's order, and per query whether the order is guaranteed optimal."""
        rng = np.random.default_rng(self.seed)
        exact, restarts = (
            (min(self.exact_up_to, _EXACT_IN_REPLICATES), 0) if quick else (self.exact_up_to, self.restarts)
        )
        (borda, rank), optimal = _borda_order(counts, items, tie_breaker), np.ones(len(items.queries), bool)
        # Borda's order is optimal in queries where it follows every majority.
        contradicted = counts.net * (rank[counts.second] - rank[counts.first]) < 0
        for query in np.unique(items.query[counts.first[contradicted]]):
            block = items.of_query(query)
            above = _pair_table(counts, block, rank[block])
            consensus = kemeny_order(above, exact, restarts, rng)
            rank[borda[block][consensus.order]] = np.arange(len(above))
            optimal[query] = consensus.optimal
        return rank.astype(np.float64), optimal


def _borda_order(counts: PairCounts, items: Items, tie_breaker: IntArray) -> tuple[IntArray, IntArray]:
    """The items of each query in Borda's order, and the rank of each item in its query."""
    borda = np.lexsort((tie_breaker, -counts.net_win_levels, items.query))
    rank = np.empty(len(items), np.int64)
    rank[borda] = np.arange(len(items)) - items.starts[items.query]
    return borda, rank


def _pair_table(counts: PairCounts, block: slice, rank: IntArray) -> FloatArray:
    """`[a, b]`: the weight of the judgments that put a above b, with the items of a query in order of `rank`."""
    rows = slice(*np.searchsorted(counts.first, (block.start, block.stop)))
    above = np.zeros((len(rank), len(rank)))
    first, second = rank[counts.first[rows] - block.start], rank[counts.second[rows] - block.start]
    above[first, second], above[second, first] = counts.first_wins[rows], counts.second_wins[rows]
    return above


def _discordant_weight(counts: PairCounts, items: Items, position: FloatArray) -> FloatArray:
    """Per query, the weight of the judged pairs that the order contradicts."""
    discordant = np.where(position[counts.first] < position[counts.second], counts.second_wins, counts.first_wins)
    return np.bincount(items.query[counts.first], discordant, len(items.queries)).astype(np.float64)


class ListSizes(NamedTuple):
    """The lengths of the lists with their weights and queries.

    A group of tied items is an entry of negative weight: it removes the pairs that the tie left unordered.
    """

    size: IntArray
    weight: FloatArray
    query: Int32Array


def _list_and_tie_sizes(lists: Rankings) -> ListSizes:
    tied, list_of_tie = tie_sizes(lists)
    query = lists.items.query[lists.item[lists.offsets[:-1]]]
    return ListSizes(
        np.concatenate((lists.lengths, tied)),
        np.concatenate((lists.weights, -lists.weights[list_of_tie])),
        np.concatenate((query, query[list_of_tie])),
    )


def _pair_sizes(votes: Comparisons) -> ListSizes:
    """Comparisons as lists of two items."""
    counts = votes.counts
    return ListSizes(np.full(len(counts), 2), counts.first_wins + counts.second_wins, votes.items.query[counts.first])


class DispersionFit(NamedTuple):
    """The estimated dispersions by parameter name, and the log-likelihood of the lists."""

    parameters: dict[str, float]
    log_likelihood: float


def _fit_dispersion(sizes: ListSizes, discordant: FloatArray, items: Items, pooled: bool) -> DispersionFit:
    """The maximum-likelihood dispersion e^θ: 0 if all lists agree, 1 if every order is equally likely."""
    if pooled:
        groups = {"dispersion": (float(discordant.sum()), sizes.size, sizes.weight)}
    else:
        own = [sizes.query == query for query in range(len(items.queries))]
        groups = {
            f"dispersion_of_{items.queries[q]}": (float(discordant[q]), sizes.size[rows], sizes.weight[rows])
            for q, rows in enumerate(own)
        }
    parameters, value = {}, 0.0
    for name, (distance, size, weight) in groups.items():
        if weight @ pair_count(size) <= 0:  # nothing was ordered
            continue
        theta = estimate_theta(distance, size, weight)
        parameters[name] = float(np.exp(theta))
        if distance > 0:
            value += theta * distance - float(weight @ log_normaliser(theta, size))
    return DispersionFit(parameters, value)


# Pair counts of lists, for any weights of the lists


def check_pair_table_size(items: Items, alternative: str) -> None:
    """Refuse a query whose table of all pairs is too large, and name a model to use instead."""
    sizes = np.diff(items.starts)
    if sizes.max() > MAX_ITEMS:
        raise DataError(
            f"A query has {sizes.max():,} items; this model needs a table of all pairs and accepts at most "
            f"{MAX_ITEMS:,}. Use {alternative} instead."
        )


def ordered_pairs(rankings: Rankings) -> tuple[IntArray, IntArray]:
    """For every pair of items that a list puts on different places: the row of the better one and of the other."""
    first, second = pairs_within(rankings.offsets)
    apart = rankings.place[first] < rankings.place[second]
    return first[apart], second[apart]


def pair_counter(rankings: Rankings) -> Callable[[FloatArray], PairCounts]:
    """A function that maps weights of the lists to pair counts, with the pairs laid out once."""
    better, worse = ordered_pairs(rankings)
    list_of_pair, size = rankings.list_of_row[better], len(rankings.items)
    winner, loser = rankings.item[better], rankings.item[worse]
    cells, pair = np.unique(pair_cells(size, winner, loser), return_inverse=True)
    column = 2 * pair + (winner > loser)
    first, second = (cells // size).astype(np.int32), (cells % size).astype(np.int32)

    def count(weights: FloatArray) -> PairCounts:
        wins = np.bincount(column, weights[list_of_pair], 2 * len(cells)).reshape(-1, 2).astype(np.float64)
        return PairCounts(size, first, second, wins[:, 0], wins[:, 1], np.zeros(len(cells)))

    return count


def tie_sizes(rankings: Rankings) -> tuple[IntArray, IntArray]:
    """The number of items on each place of each list, and the list that the place belongs to."""
    list_of_row = rankings.list_of_row
    is_new = np.append(True, (rankings.place[1:] != rankings.place[:-1]) | (list_of_row[1:] != list_of_row[:-1]))
    begins = np.flatnonzero(is_new)
    return np.diff(np.append(begins, len(list_of_row))), list_of_row[begins]
