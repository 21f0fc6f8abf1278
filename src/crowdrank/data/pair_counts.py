"""Pair counts: how often each of two items won, the sufficient statistic of models without annotators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons


# Up to this many cells all pairs are counted in one table; beyond it, the pairs are sorted.
_MAX_TABLE_CELLS = 1 << 22
# Cells that are counted at a time if the rows come in chunks: a few hundred megabytes.
MAX_CELLS = 1 << 24
# A difference smaller than this share of the sums is rounding: 0.1 + 0.2 is a tie with 0.3.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PairCounts:
    """One row per compared pair of items, with sums of weights.

    Parameters
    ----------
    size : int
        Number of items.
    first, second : array of int32
        The two items of each pair, `first` < `second`.
    first_wins, second_wins, ties : array of float
        How often the first item won, how often the second, and how often neither.

    Examples
    --------
    >>> from crowdrank.data import Comparisons
    >>> counts = Comparisons.of(["a", "b", "a"], ["b", "a", "c"], ["a", "a", "tie"]).counts
    >>> counts.first_wins.tolist(), counts.ties.tolist()
    ([2.0, 0.0], [0.0, 1.0])
    """

    size: int
    first: Int32Array
    second: Int32Array
    first_wins: FloatArray
    second_wins: FloatArray
    ties: FloatArray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def total(self) -> FloatArray:
        """Number of comparisons of each pair."""
        return self.first_wins + self.second_wins + self.ties

    @property
    def net(self) -> FloatArray:
        """Wins of `first` minus wins of `second`; exactly 0 where they differ by rounding only."""
        net = self.first_wins - self.second_wins
        return np.where(np.abs(net) > ROUNDING * self.total, net, 0.0)

    def per_item(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Sum, for each item, the values of `first` over its pairs as first item and of `second` over the others."""
        found: FloatArray = np.bincount(self.first, first, self.size) + np.bincount(self.second, second, self.size)  # type: ignore[assignment]
        return found

    @cached_property
    def net_wins(self) -> FloatArray:
        """Wins minus losses of each item: its Borda score."""
        return self.per_item(self.net, -self.net)

    @property
    def net_win_levels(self) -> IntArray:
        """Dense ranks of the net wins, equal where they differ by rounding only."""
        order = np.argsort(self.net_wins, kind="stable")
        total = self.total
        slack = ROUNDING * float(self.per_item(total, total).max(initial=0.0))
        levels = np.empty(self.size, np.int64)
        levels[order] = np.cumsum(np.diff(self.net_wins[order], prepend=-np.inf) > slack)
        return levels

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        return {name: column for name, column in vars(self).items() if name in _COLUMNS}

    def with_counts(self, first_wins: FloatArray, second_wins: FloatArray, ties: FloatArray) -> PairCounts:
        """Return the same pairs with other counts; pairs without comparisons are kept, at zero."""
        return replace(self, first_wins=first_wins, second_wins=second_wins, ties=ties)


def pair_cells(size: int, left: Any, right: Any) -> IntArray:
    """Return the number of each unordered pair: smaller item × size + larger item."""
    cells: IntArray = np.minimum(left, right).astype(np.int64) * size + np.maximum(left, right)
    return cells


def count_pairs(
    size: int, left: Any, right: Any, outcome: npt.NDArray[np.int8], weight: FloatArray | None = None
) -> PairCounts:
    """Count the comparisons of each pair."""
    cells = pair_cells(size, left, right)
    # 0: the first (smaller code) won, 1: tie, 2: the second won
    kind = 1 - np.where(left < right, outcome, -outcome)
    if size * size <= _MAX_TABLE_CELLS:
        seen = np.flatnonzero(np.bincount(cells, minlength=size * size))
        counts = np.bincount(cells * 3 + kind, weight, size * size * 3).reshape(-1, 3)[seen].astype(np.float64)
    else:
        seen, row = np.unique(cells, return_inverse=True)
        counts = np.bincount(row * 3 + kind, weight, len(seen) * 3).reshape(-1, 3).astype(np.float64)
    first, second = (seen // size).astype(np.int32), (seen % size).astype(np.int32)
    return PairCounts(size, first, second, counts[:, 0].copy(), counts[:, 2].copy(), counts[:, 1].copy())


_COLUMNS = ("first", "second", "first_wins", "second_wins", "ties")


def count_in_ranges(size: int, chunks: Callable[[], Iterable[Comparisons]]) -> Iterator[PairCounts]:
    """Count rows that come in chunks, one range of first items after the other."""
    width = max(1, MAX_CELLS // size)
    for low in range(0, size, width):
        yield _count_range(size, chunks(), low, min(low + width, size))


def _count_range(size: int, chunks: Iterable[Comparisons], low: int, high: int) -> PairCounts:
    """Count the pairs whose smaller code is at least `low` and below `high`, in one pass over the chunks."""
    table = np.zeros((high - low) * size * 3)
    for chunk in chunks:
        first, second = np.minimum(chunk.left, chunk.right), np.maximum(chunk.left, chunk.right)
        rows = slice(None) if high - low == size else np.flatnonzero((first >= low) & (first < high))
        outcome = np.where(chunk.left < chunk.right, chunk.outcome, -chunk.outcome)[rows]
        cells = ((first[rows] - low).astype(np.int64) * size + second[rows]) * 3 + 1 - outcome
        np.add.at(table, cells, 1.0 if chunk.weight is None else chunk.weight[rows])
    counts = table.reshape(-1, 3)
    seen = np.flatnonzero(counts.any(axis=1))
    first, second = (seen // size + low).astype(np.int32), (seen % size).astype(np.int32)
    return PairCounts(size, first, second, *(counts[seen, kind].copy() for kind in (0, 2, 1)))


def concat_counts(ranges: Sequence[PairCounts]) -> PairCounts:
    """Concatenate the counts of ranges of pairs."""
    columns = {name: np.concatenate([counts.columns[name] for counts in ranges]) for name in _COLUMNS}
    return PairCounts(ranges[0].size, **columns)
