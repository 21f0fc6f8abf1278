"""What a model may ask of an engine: hold the judgments, or work in pieces, and add a formula up over them.

An engine that says how many passes it has made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from operator import add as plus
from operator import iadd
from typing import Any, Protocol, runtime_checkable


class Table(Protocol):
    """Rows that can be cut into shards of the same kind."""

    @property
    def rows(self) -> int: ...

    def split(self, parts: int) -> Sequence[Table]: ...


class ChunkLoader(Protocol):
    """A shard that is not there yet: called, it makes the shard. It is small, and can be sent anywhere."""

    def __call__(self) -> Any: ...

    def read_ahead(self) -> None:
        """It will be called soon: time to fetch what it needs."""
        ...


@runtime_checkable
class TableInParts(Protocol):
    """A table too long for memory: its shards are made when they are needed."""

    @property
    def rows(self) -> int: ...

    @property
    def loaders(self) -> Sequence[ChunkLoader]: ...


class Held(Protocol):
    """Judgments cut into shards, wherever they are. A formula sees one shard and the parameters."""

    @property
    def spare(self) -> float:
        """Bytes that may be taken up beside the shards, infinite where nobody set a limit."""
        ...

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        """Sum over shards of the tuple `formula(shard, *parameters)`, member by member; lists are joined, in order."""
        ...

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[Held, Any]:
        """The same for a formula that returns (what stays beside the shard, what is summed).

        A formula may be run again on the same shard, so it must leave that as it is.
        """
        ...


class Engine(Protocol):
    """Where the arithmetic runs."""

    def hold(self, table: Table | TableInParts) -> Held:
        """Rows, cut into shards by their number."""
        ...

    def spread(self, pieces: Sequence[Any]) -> Held:
        """What is cut already, such as queries or chains: each piece is a shard."""
        ...


def add(parts: Iterable[Any]) -> Any:
    """Tuples of numbers, arrays and lists, added member by member in order; what was given stays as it is."""
    each = iter(parts)
    total = next(each)
    adding: Callable[[Any, Any], Any] = plus
    for part in each:
        total = _added(total, part, adding)
        adding = iadd  # the sum is ours from now on, and large ones are not made anew
    return total


def _added(one: Any, other: Any, adding: Callable[[Any, Any], Any]) -> Any:
    sums = [adding(a, b) for a, b in zip(one, other, strict=True)]
    kind = type(one)
    return kind(*sums) if hasattr(kind, "_fields") else tuple(sums)


@dataclass(frozen=True)
class WatchedHeld:
    held: Held
    passed: Callable[[], None]

    @property
    def spare(self) -> float:
        return self.held.spare

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        found = self.held.total(formula, *parameters)
        self.passed()
        return found

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[Held, Any]:
        kept, found = self.held.keep(formula, *parameters)
        self.passed()
        return WatchedHeld(kept, self.passed), found


@dataclass(frozen=True)
class Watched:
    """Another engine, whose passes over the judgments are counted and told."""

    engine: Engine
    tell: Callable[[int], None]

    def hold(self, table: Table | TableInParts) -> Held:
        return self._watched(self.engine.hold(table))

    def spread(self, pieces: Sequence[Any]) -> Held:
        return self._watched(self.engine.spread(pieces))

    def _watched(self, held: Held) -> Held:
        numbers = count(1)
        return WatchedHeld(held, lambda: self.tell(next(numbers)))
