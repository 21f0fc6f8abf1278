"""What a model may ask of an engine: hold the judgments, and add a formula up over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Table(Protocol):
    """Rows that can be cut into shards of the same kind."""

    @property
    def rows(self) -> int: ...

    def split(self, parts: int) -> Sequence[Table]: ...


class Held(Protocol):
    """Judgments cut into shards, wherever they are. A formula sees one shard and the parameters."""

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        """Sum over shards of the tuple `formula(shard, *parameters)`, member by member."""
        ...

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[Held, Any]:
        """The same for a formula that returns (what stays beside the shard, what is summed)."""
        ...


class Engine(Protocol):
    """Where the arithmetic runs."""

    def hold(self, table: Table) -> Held: ...


def add(parts: Sequence[Any]) -> Any:
    """Tuples of numbers and arrays, added member by member in the order given."""
    if len(parts) == 1:
        return parts[0]
    sums = [sum(members[1:], start=members[0]) for members in zip(*parts, strict=True)]
    kind = type(parts[0])
    return kind(*sums) if hasattr(kind, "_fields") else tuple(sums)
