"""The local engine: shards in memory, one thread per core, and one BLAS thread for small matrices."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from operator import add as plus
from operator import iadd
from typing import Any, Protocol, TypeGuard

# The engine protocol: load judgments as shards, and sum a function over them.


class Table(Protocol):
    """Rows that can be split into shards of the same kind."""

    @property
    def rows(self) -> int: ...

    def split(self, parts: int) -> Sequence[Table]: ...


class ShardLoader(Protocol):
    """Loads one shard when called. It is small and can be sent to another process."""

    def __call__(self) -> Any: ...

    def read_ahead(self) -> None:
        """Ask the operating system to read the shard's file, because it will be loaded soon."""
        ...


class StreamedTable(Protocol):
    """A table too large for memory, whose shards are loaded when they are needed."""

    @property
    def rows(self) -> int: ...

    @property
    def loaders(self) -> Sequence[ShardLoader]: ...


def is_streamed(table: Table | StreamedTable) -> TypeGuard[StreamedTable]:
    """Whether the shards of a table are loaded when they are needed."""
    return hasattr(table, "loaders")  # isinstance of a protocol takes as long as a pass over a small table


class ShardedData(Protocol):
    """Judgments split into shards, in memory or elsewhere. A function sees one shard and the parameters."""

    @property
    def memory_left(self) -> float:
        """Bytes that may be allocated besides the shards; infinite without a limit."""
        ...

    def sum(self, function: Callable[..., Any], *parameters: Any) -> Any:
        """Sum over shards of the tuple `function(shard, *parameters)`, element by element; lists are concatenated."""
        ...

    def map_and_sum(self, function: Callable[..., Any], *parameters: Any) -> tuple[ShardedData, Any]:
        """Map and sum in one pass, for a function that returns (new shard, terms).

        Returns the new shards, which stay where they were computed, and the sum of the terms. The function may run
        again on the same shard (when a worker is lost, or memory is short), so it must not modify its arguments.
        """
        ...


class Engine(Protocol):
    """Where computations over the judgments run."""

    def load(self, table: Table | StreamedTable) -> ShardedData:
        """Split a table into shards by its number of rows."""
        ...

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        """Use given pieces, such as queries or Markov chains, as shards."""
        ...


def add(parts: Iterable[Any]) -> Any:
    """Add tuples of numbers, arrays and lists element by element, in order. The first part is not modified."""
    remaining = iter(parts)
    total = next(remaining)
    operation: Callable[[Any, Any], Any] = plus
    for part in remaining:
        total = _add_elements(total, part, operation)
        operation = iadd  # the running sum is a new object by now, so large arrays can be added in place
    return total


def _add_elements(one: Any, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
    sums = [operation(a, b) for a, b in zip(one, other, strict=True)]
    kind = type(one)
    return kind(*sums) if hasattr(kind, "_fields") else tuple(sums)


@dataclass(frozen=True)
class ProgressShards:
    """Shards that report every pass over them."""

    data: ShardedData
    on_pass: Callable[[], None]

    @property
    def memory_left(self) -> float:
        return self.data.memory_left

    def sum(self, function: Callable[..., Any], *parameters: Any) -> Any:
        total = self.data.sum(function, *parameters)
        self.on_pass()
        return total

    def map_and_sum(self, function: Callable[..., Any], *parameters: Any) -> tuple[ShardedData, Any]:
        mapped, total = self.data.map_and_sum(function, *parameters)
        self.on_pass()
        return ProgressShards(mapped, self.on_pass), total


@dataclass(frozen=True)
class ProgressEngine:
    """Wraps another engine and calls `report` with the number of passes made over the judgments."""

    engine: Engine
    report: Callable[[int], None]

    def load(self, table: Table | StreamedTable) -> ShardedData:
        return self._wrap(self.engine.load(table))

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return self._wrap(self.engine.distribute(pieces))

    def _wrap(self, data: ShardedData) -> ShardedData:
        numbers = count(1)
        return ProgressShards(data, lambda: self.report(next(numbers)))


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
        if is_streamed(table):
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
