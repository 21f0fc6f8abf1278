"""Pairs of lists, counted again and again as the lists are weighed otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, PairCounts, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError

# A table of all pairs of a query is to fit into memory.
MOST_ITEMS = 5_000


def check_tables_fit(items: Items, instead: str) -> None:
    """Refuse queries whose table of all pairs is too large."""
    sizes = np.diff(items.starts)
    if sizes.max() > MOST_ITEMS:
        raise DataError(
            f"A query has {sizes.max():,} items, and this model lays out all their pairs: at most {MOST_ITEMS:,}. "
            f"Use {instead}."
        )


def ordered_pairs(rankings: Rankings) -> tuple[IntArray, IntArray]:
    """The rows of every two items that a list puts on different places: the better one's, and the other's."""
    first, second = pairs_within(rankings.offsets)
    apart = rankings.place[first] < rankings.place[second]
    return first[apart], second[apart]


def counter(rankings: Rankings) -> Callable[[FloatArray], PairCounts]:
    """What gives, for any weights of the lists, how often each of two items was put above the other."""
    better, worse = ordered_pairs(rankings)
    of_list, size = rankings.list_of_row[better], len(rankings.items)
    winner, loser = rankings.item[better], rankings.item[worse]
    seen, pair = np.unique(pair_cells(size, winner, loser), return_inverse=True)
    cell = 2 * pair + (winner > loser)
    first, second = (seen // size).astype(np.int32), (seen % size).astype(np.int32)

    def count(weights: FloatArray) -> PairCounts:
        wins = np.bincount(cell, weights[of_list], 2 * len(seen)).reshape(-1, 2).astype(np.float64)
        return PairCounts(size, first, second, wins[:, 0], wins[:, 1], np.zeros(len(seen)))

    return count


def tie_sizes(rankings: Rankings) -> tuple[IntArray, IntArray]:
    """How many items stand on each place of each list, and the list that the place belongs to."""
    of_list = rankings.list_of_row
    fresh = np.append(True, (rankings.place[1:] != rankings.place[:-1]) | (of_list[1:] != of_list[:-1]))
    begins = np.flatnonzero(fresh)
    return np.diff(np.append(begins, len(of_list))), of_list[begins]
