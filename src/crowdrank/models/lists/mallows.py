"""Mallows model (1957): lists scattered around a central order. Its maximum-likelihood estimate is Kemeny's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.data.pair_counts import pair_cells
from crowdrank.engines.compilation import compiled
from crowdrank.errors import DataError, SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap_counts, bootstrap_weights
from crowdrank.models.lists.mallows_likelihood import estimate_theta, log_normaliser, pair_count
from crowdrank.results import Ranking, Uncertainty

# Kemeny's consensus order (Kemeny 1959): the order that contradicts the fewest pairwise judgments.
#
# The majority graph splits into strongly connected components. Between components, following the majorities is
# optimal. A small component is solved exactly by dynamic programming over its subsets; a large one by local search
# (moving single items) with restarts.

# Improvements below this fraction of the largest pair weight are rounding.
_ROUNDING = 1e-9
# Up to this many rows, the transitive closure by matrix products is faster than importing SciPy's graph routines.
_LARGEST_DENSE_CLOSURE = 64


class Consensus(NamedTuple):
    """A Kemeny order.

    Parameters
    ----------
    order : array
        Row numbers, best first.
    optimal : bool
        Whether the order is guaranteed to be optimal.
    """

    order: IntArray
    optimal: bool


def kemeny_order(above: FloatArray, exact_up_to: int, restarts: int, rng: np.random.Generator) -> Consensus:
    """The order with the least disagreement.

    Parameters
    ----------
    above : array of shape (items, items)
        `above[a, b]` is the weight of the judgments that put a above b.
    exact_up_to : int
        Components of at most this many items are solved exactly.
    restarts : int
        Restarts of the local search in larger components.
    rng : numpy.random.Generator
        Randomness of the restarts.

    Returns
    -------
    Consensus
        Ties between equally good orders are broken in favour of smaller row numbers.
    """
    majority = above - above.T > _ROUNDING * float(above.max(initial=0.0))
    component = _strong_components(majority)
    before, optimal = majority & (component[:, None] != component), True
    for members in _groups(component):
        own = above[np.ix_(members, members)]
        if len(members) <= exact_up_to:
            order = exact_order(own)
        else:
            order, optimal = local_search(own, restarts, rng), False
        chain = members[order]
        before[chain[:-1], chain[1:]] = True
    return Consensus(_topological_order(before), optimal)


def disagreement(above: FloatArray, order: IntArray) -> float:
    """The weight of the judgments that an order contradicts."""
    return float(np.tril(above[np.ix_(order, order)], -1).sum())


def exact_order(above: FloatArray) -> IntArray:
    """The optimal order, by dynamic programming over subsets.

    The cost of a set is the cost of its best first item plus the cost of the set without it. A set is a bit mask.
    """
    size = len(above)
    first = np.zeros((1, size))  # first[set, j]: the cost of putting j before all items of the set
    for item in range(size):
        first = np.concatenate((first, first + above[item]))
    cheapest, bits = np.zeros(1 << size), 1 << np.arange(size)
    tolerance = _ROUNDING * float(above.max())
    for sets in _sets_by_size(size)[1:]:
        rest = sets[:, None] ^ bits
        whole = np.where(sets[:, None] & bits, first[rest, np.arange(size)] + cheapest[rest], np.inf)
        cheapest[sets] = whole.min(axis=1)
    order, left = np.empty(size, np.int64), (1 << size) - 1
    for place in range(size):
        inside = np.flatnonzero(left & bits)
        rest = left ^ bits[inside]
        whole = first[rest, inside] + cheapest[rest]
        order[place] = inside[np.argmax(whole <= whole.min() + tolerance)]
        left ^= int(bits[order[place]])
    return order


def local_search(above: FloatArray, restarts: int, rng: np.random.Generator) -> IntArray:
    """A good order: insertion descent from the given order, then from the best one so far with a segment shuffled."""
    margin = above - above.T
    best = insertion_descent(margin, np.arange(len(above)))
    least = disagreement(above, best)
    tolerance = _ROUNDING * float(above.max())
    for _ in range(restarts):
        candidate = insertion_descent(margin, _shuffled_segment(best, rng))
        if (cost := disagreement(above, candidate)) < least - tolerance:
            best, least = candidate, cost
    return best


def insertion_descent(margin: FloatArray, order: IntArray) -> IntArray:
    """Move single items to their best position until no move reduces the cost."""
    tolerance = _ROUNDING * float(np.abs(margin).max())
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            here = int(np.argmax(order == item))
            others = np.concatenate((order[:here], order[here + 1 :]))
            # Moving an item down past another costs the margin by which it is preferred to that one.
            cost = np.concatenate(([0.0], np.cumsum(margin[item, others])))
            there = int(np.argmin(cost))
            if cost[there] < cost[here] - tolerance:
                order, moved = np.concatenate((others[:there], [item], others[there:])), True
    return order


@compiled()
def descend_all(starts: Any, ends: Any, first: Any, second: Any, net: Any, rank: Any) -> Any:
    """Ranks within queries after insertion descent from `rank` in every query that contradicts a majority.

    Query q has the items starts[q] … starts[q + 1] − 1 and the pairs ends[q] … ends[q + 1] − 1. `net` is the weight of
    the judgments for the first item minus that of those for the second.
    """
    found = rank.copy()
    for query in range(len(starts) - 1):
        begin, size = starts[query], starts[query + 1] - starts[query]
        largest, contradicted = 0.0, False
        for p in range(ends[query], ends[query + 1]):
            largest = max(largest, abs(net[p]))
            contradicted |= net[p] * (rank[second[p]] - rank[first[p]]) < 0
        if not contradicted:
            continue
        margin = np.zeros((size, size))
        for p in range(ends[query], ends[query + 1]):
            margin[rank[first[p]], rank[second[p]]] = net[p]
            margin[rank[second[p]], rank[first[p]]] = -net[p]
        order, before, moved = np.arange(size), np.empty(size, np.int64), True
        while moved:
            moved = False
            for n in range(size):
                before[n] = order[n]
            for item in before:
                cost, least, stay, here, there = 0.0, 0.0, 0.0, 0, 0
                for n in range(size):
                    if order[n] == item:
                        here, stay = n, cost
                    cost += margin[item, order[n]]
                    if cost < least:
                        least, there = cost, n + 1
                if least < stay - _ROUNDING * largest:
                    moved = True
                    for n in range(here, there - 1):
                        order[n] = order[n + 1]
                    for n in range(here, there, -1):
                        order[n] = order[n - 1]
                    order[there - (there > here)] = item
        for n in range(size):
            before[order[n]] = n
        for item in range(begin, begin + size):
            found[item] = before[rank[item]]
    return found


def _shuffled_segment(order: IntArray, rng: np.random.Generator) -> IntArray:
    shuffled, length = order.copy(), min(len(order), 3 + int(rng.integers(max(len(order) // 2, 1))))
    begin = int(rng.integers(len(order) - length + 1))
    rng.shuffle(shuffled[begin : begin + length])
    return shuffled


def _strong_components(majority: BoolArray) -> npt.NDArray[np.integer[Any]]:
    """The strongly connected component of each row in the majority graph."""
    size = len(majority)
    if size > _LARGEST_DENSE_CLOSURE:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(majority, connection="strong")[1])
    # Squaring the reachability matrix doubles the path length that it covers.
    reachable, steps = (majority | np.eye(size, dtype=bool)).astype(np.float32), 1
    while steps < size:
        reachable, steps = np.minimum(reachable @ reachable, 1), 2 * steps
    return np.asarray(np.argmax(reachable * reachable.T, axis=1))


def _groups(label: npt.NDArray[np.integer[Any]]) -> list[IntArray]:
    """The members of each group of more than one row."""
    counts = np.bincount(label)
    return [np.flatnonzero(label == group) for group in np.flatnonzero(counts > 1)]


def _topological_order(before: BoolArray) -> IntArray:
    """Repeatedly take the first row without a remaining predecessor."""
    predecessors = before.sum(axis=0)
    order = np.empty(len(before), np.int64)
    for place in range(len(before)):
        order[place] = row = int(np.argmin(predecessors))
        predecessors -= before[row]
        predecessors[row] = len(before)
    return order


@lru_cache(maxsize=4)
def _sets_by_size(size: int) -> list[IntArray]:
    members = np.zeros(1, np.int64)
    for _ in range(size):
        members = np.concatenate((members, members + 1))
    return [np.flatnonzero(members == n) for n in range(size + 1)]


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
