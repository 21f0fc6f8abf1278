"""The local engine: shards in memory, one thread per core, and one BLAS thread for small matrices."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from crowdrank.engines.protocol import ShardedData, StreamedTable, Table, add

# The split depends on the data alone, never on the machine, so sums are the same to the last bit everywhere.
ROWS_PER_SHARD = 1 << 18
MAX_SHARDS = 16
MAX_PIECES = 128

# From this many rows on, several threads pay off.
_MAX_SINGLE_THREADED = 500
_lock = threading.Lock()
_users = 0
_limits = ExitStack()


def split_table(table: Table, rows_per_shard: int = ROWS_PER_SHARD) -> Sequence[Table]:
    """Shards of a table; a short table is one shard."""
    parts = min(MAX_SHARDS, -(-table.rows // rows_per_shard))
    return table.split(parts) if parts > 1 else [table]


def piece_ranges(count: int) -> list[range]:
    """The numbers below `count` in at most 128 ranges of equal length.

    >>> [len(piece) for piece in piece_ranges(300)][-2:], piece_ranges(2)
    ([3, 3], [range(0, 1), range(1, 2)])
    """
    length = -(-count // MAX_PIECES)
    return [range(first, min(first + length, count)) for first in range(0, count, max(length, 1))]


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def thread_pool() -> ThreadPoolExecutor:
    """One thread per core, started on first use."""
    return ThreadPoolExecutor(available_cores(), thread_name_prefix="crowdrank")


@dataclass(frozen=True)
class LocalShards:
    """Shards in the memory of this process."""

    shards: Sequence[Any]
    memory_left: float = math.inf

    def sum(self, function: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._map(function, parameters))

    def map_and_sum(self, function: Callable[..., Any], *parameters: Any) -> tuple[LocalShards, Any]:
        mapped, terms = zip(*self._map(function, parameters), strict=True)
        return LocalShards(mapped), add(terms)

    def _map(self, function: Callable[..., Any], parameters: tuple[Any, ...]) -> list[Any]:
        if len(self.shards) == 1:
            return [function(self.shards[0], *parameters)]
        return list(thread_pool().map(lambda shard: function(shard, *parameters), self.shards))


@dataclass(frozen=True)
class LocalEngine:
    """Threads on this machine. Small tables are one shard and start no thread; files are streamed from disk."""

    rows_per_shard: int = ROWS_PER_SHARD

    def load(self, table: Table | StreamedTable) -> ShardedData:
        if isinstance(table, StreamedTable):
            from crowdrank.engines.out_of_core import OutOfCore

            return OutOfCore().load(table)
        return LocalShards(split_table(table, self.rows_per_shard))

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return LocalShards(pieces)


LOCAL = LocalEngine()


@contextmanager
def limit_blas_threads(size: int) -> Iterator[None]:
    """Run BLAS single-threaded if matrices have at most 500 rows. The last user to leave lifts the limit.

    On a busy machine several threads wait for each other up to a thousand times longer than a small operation takes.
    """
    global _users
    if size > _MAX_SINGLE_THREADED:
        yield
        return
    with _lock:
        if _users == 0:
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.close()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
