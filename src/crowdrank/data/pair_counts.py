"""Pair counts: how often each of two items won, the sufficient statistic of every model blind to annotators."""

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


# Up to this many cells a table of all pairs is counted directly; beyond it, the pairs are sorted.
_LARGEST_TABLE = 1 << 22
# Of rows that come in parts so many cells are counted at a time, and pairs held at once: some hundred megabytes.
MOST_CELLS = 1 << 24
# A difference of sums smaller than this share of them is rounding: 0.1 + 0.2 is a tie with 0.3.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PairCounts:
    """One row a compared pair, `first` < `second`; weights added up."""

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
        return self.first_wins + self.second_wins + self.ties

    @property
    def net(self) -> FloatArray:
        """Wins of `first` less wins of `second`; exactly 0 where they differ by rounding only."""
        net = self.first_wins - self.second_wins
        return np.where(np.abs(net) > ROUNDING * self.total, net, 0.0)

    def per_item(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Adds up, for each item, one value where it stands first and another where it stands second."""
        found: FloatArray = np.bincount(self.first, first, self.size) + np.bincount(self.second, second, self.size)  # type: ignore[assignment]
        return found

    @cached_property
    def net_wins(self) -> FloatArray:
        """Wins less losses of each item: Borda's points."""
        return self.per_item(self.net, -self.net)

    @property
    def net_win_levels(self) -> IntArray:
        """Net wins as whole numbers to sort by, equal where net wins differ by rounding only."""
        order = np.argsort(self.net_wins, kind="stable")
        total = self.total
        slack = ROUNDING * float(self.per_item(total, total).max(initial=0.0))
        levels = np.empty(self.size, np.int64)
        levels[order] = np.cumsum(np.diff(self.net_wins[order], prepend=-np.inf) > slack)
        return levels

    @property
    def columns(self) -> dict[str, Any]:
        """All but the number of items."""
        return {name: column for name, column in vars(self).items() if name in _COLUMNS}

    def with_counts(self, first_wins: FloatArray, second_wins: FloatArray, ties: FloatArray) -> PairCounts:
        """The same pairs counted otherwise; pairs left with nothing stay, at zero."""
        return replace(self, first_wins=first_wins, second_wins=second_wins, ties=ties)


def pair_cells(size: int, left: Any, right: Any) -> IntArray:
    """A number for each unordered pair: smaller item × size + larger item."""
    cells: IntArray = np.minimum(left, right).astype(np.int64) * size + np.maximum(left, right)
    return cells


def count_pairs(
    size: int, left: Any, right: Any, outcome: npt.NDArray[np.int8], weight: FloatArray | None = None
) -> PairCounts:
    """Rows of comparisons into counts of pairs."""
    cells = pair_cells(size, left, right)
    # 0: the first (smaller code) won, 1: tie, 2: the second won
    kind = 1 - np.where(left < right, outcome, -outcome)
    if size * size <= _LARGEST_TABLE:
        seen = np.flatnonzero(np.bincount(cells, minlength=size * size))
        counts = np.bincount(cells * 3 + kind, weight, size * size * 3).reshape(-1, 3)[seen].astype(np.float64)
    else:
        seen, row = np.unique(cells, return_inverse=True)
        counts = np.bincount(row * 3 + kind, weight, len(seen) * 3).reshape(-1, 3).astype(np.float64)
    first, second = (seen // size).astype(np.int32), (seen % size).astype(np.int32)
    return PairCounts(size, first, second, counts[:, 0].copy(), counts[:, 2].copy(), counts[:, 1].copy())


_COLUMNS = ("first", "second", "first_wins", "second_wins", "ties")


def count_in_ranges(size: int, parts: Callable[[], Iterable[Comparisons]]) -> Iterator[PairCounts]:
    """Counts of rows that come in parts, for one range of first items after another."""
    wide = max(1, MOST_CELLS // size)
    for low in range(0, size, wide):
        yield _count_range(size, parts(), low, min(low + wide, size))


def _count_range(size: int, parts: Iterable[Comparisons], low: int, high: int) -> PairCounts:
    """One pass over the parts for the pairs whose smaller code lies from `low` up to `high`."""
    table = np.zeros((high - low) * size * 3)
    for part in parts:
        first, second = np.minimum(part.left, part.right), np.maximum(part.left, part.right)
        rows = slice(None) if high - low == size else np.flatnonzero((first >= low) & (first < high))
        along = np.where(part.left < part.right, part.outcome, -part.outcome)[rows]
        cells = ((first[rows] - low).astype(np.int64) * size + second[rows]) * 3 + 1 - along
        np.add.at(table, cells, 1.0 if part.weight is None else part.weight[rows])
    counts = table.reshape(-1, 3)
    seen = np.flatnonzero(counts.any(axis=1))
    first, second = (seen // size + low).astype(np.int32), (seen % size).astype(np.int32)
    return PairCounts(size, first, second, *(counts[seen, kind].copy() for kind in (0, 2, 1)))


def joined_counts(ranges: Sequence[PairCounts]) -> PairCounts:
    """Counts of ranges of pairs, one after another."""
    columns = {name: np.concatenate([counts.columns[name] for counts in ranges]) for name in _COLUMNS}
    return PairCounts(ranges[0].size, **columns)
