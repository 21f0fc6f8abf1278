"""A Dask cluster: shards are held by workers, parameters sent to them, and sums added up in a tree of one shape.

Everything a worker holds is the outcome of a task whose input the scheduler knows: a shard of its recipe, what a pass
left of the shard and the parameters. So if a worker is lost, the scheduler has what it held made again elsewhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crowdrank.engines.base import Held, Table, TableInParts, add
from crowdrank.engines.local import cut

# Sums of so many shards are added up by one task.
_BRANCHES = 8


def _make(recipe: Callable[[], Any]) -> Any:
    return recipe()


def _same(given: Any) -> Any:
    return given


def _apply(formula: Callable[..., Any], shard: Any, parameters: tuple[Any, ...]) -> Any:
    return formula(shard, *parameters)


def _apply_to_kept(formula: Callable[..., Any], pair: tuple[Any, Any], parameters: tuple[Any, ...]) -> Any:
    return formula(pair[0], *parameters)


def _summed(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _add(*parts: Any) -> Any:
    return add(parts)


def _sent(client: Any, given: Any) -> Any:
    """As a task of its own, which the scheduler remembers; Dask would rather have large ones scattered, and lost."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return client.submit(_same, given, pure=False)


@dataclass(frozen=True)
class HeldByDask:
    """Futures of shards; or of pairs, what a pass left beside a shard and its sums."""

    client: Any
    shards: Sequence[Any]
    apply: Callable[..., Any] = _apply
    spare: float = math.inf

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        return self._sum(self._each(formula, parameters))

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[HeldByDask, Any]:
        pairs = self._each(formula, parameters)
        found = self._sum([self._submit(_summed, pair) for pair in pairs])
        return HeldByDask(self.client, pairs, _apply_to_kept), found

    def _each(self, formula: Callable[..., Any], parameters: tuple[Any, ...]) -> list[Any]:
        sent = _sent(self.client, parameters)
        return [self._submit(self.apply, formula, shard, sent) for shard in self.shards]

    def _sum(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            parts = [self._submit(_add, *parts[n : n + _BRANCHES]) for n in range(0, len(parts), _BRANCHES)]
        return parts[0].result()

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(task, *arguments, pure=False)


@dataclass(frozen=True)
class Dask:
    """The workers of a `distributed.Client`. Files that judgments were scanned into must be where all can read them."""

    client: Any

    def hold(self, table: Table | TableInParts) -> Held:
        if isinstance(table, TableInParts):
            shards = [self.client.submit(_make, recipe, pure=False) for recipe in table.loaders]
        else:
            shards = [_sent(self.client, shard) for shard in cut(table)]
        return HeldByDask(self.client, shards)

    def spread(self, pieces: Sequence[Any]) -> Held:
        return HeldByDask(self.client, [_sent(self.client, piece) for piece in pieces])
