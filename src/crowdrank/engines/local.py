"""This machine: shards in memory, one thread a core."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from crowdrank.engines.base import ShardedData, StreamedTable, Table, add

# Cutting depends on the data alone, never on the machine: sums come out the same, bit for bit, everywhere.
ROWS_PER_SHARD = 1 << 18
MOST_SHARDS = 16
MOST_PIECES = 128


def cut(table: Table, rows_per_shard: int = ROWS_PER_SHARD) -> Sequence[Table]:
    """Shards of a table; a short one stays whole."""
    parts = min(MOST_SHARDS, -(-table.rows // rows_per_shard))
    return table.split(parts) if parts > 1 else [table]


def runs(count: int) -> list[range]:
    """The numbers below `count` as pieces of equal length, few enough to be sent one by one.

    >>> [len(run) for run in runs(300)][-2:], runs(2)
    ([3, 3], [range(0, 1), range(1, 2)])
    """
    length = -(-count // MOST_PIECES)
    return [range(first, min(first + length, count)) for first in range(0, count, max(length, 1))]


def available_cores() -> int:
    """How many of them this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def threads() -> ThreadPoolExecutor:
    """One thread a core, started when first needed."""
    return ThreadPoolExecutor(available_cores(), thread_name_prefix="crowdrank")


@dataclass(frozen=True)
class LocalShards:
    """Shards in this process's memory."""

    shards: Sequence[Any]
    spare: float = math.inf

    def sum(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._each(formula, parameters))

    def map_and_sum(self, formula: Callable[..., Any], *parameters: Any) -> tuple[LocalShards, Any]:
        kept, sums = zip(*self._each(formula, parameters), strict=True)
        return LocalShards(kept), add(sums)

    def _each(self, formula: Callable[..., Any], parameters: tuple[Any, ...]) -> list[Any]:
        if len(self.shards) == 1:
            return [formula(self.shards[0], *parameters)]
        return list(threads().map(lambda shard: formula(shard, *parameters), self.shards))


@dataclass(frozen=True)
class LocalEngine:
    """Threads on this machine; small tables stay whole and start none. What is in files is passed over there."""

    rows_per_shard: int = ROWS_PER_SHARD

    def load(self, table: Table | StreamedTable) -> ShardedData:
        if isinstance(table, StreamedTable):
            from crowdrank.engines.out_of_core import OutOfCore

            return OutOfCore().load(table)
        return LocalShards(cut(table, self.rows_per_shard))

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return LocalShards(pieces)


LOCAL = LocalEngine()
