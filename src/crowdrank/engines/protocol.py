"""The engine protocol: load judgments as shards, and sum a function over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import add as plus
from operator import iadd
from typing import Any, Protocol, runtime_checkable


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


@runtime_checkable
class StreamedTable(Protocol):
    """A table too large for memory, whose shards are loaded when they are needed."""

    @property
    def rows(self) -> int: ...

    @property
    def loaders(self) -> Sequence[ShardLoader]: ...


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
