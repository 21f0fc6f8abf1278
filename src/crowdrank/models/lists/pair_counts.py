"""Pair counts of lists, for any weights of the lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, PairCounts, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError

# Items per query up to which a table of all pairs fits into memory.
MAX_ITEMS = 5_000


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
