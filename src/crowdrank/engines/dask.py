"""The Dask engine: workers hold the shards, parameters are sent to them, and sums are added in a tree of fixed shape.

Everything that a worker holds is the result of a task whose inputs the scheduler knows: a shard of its loader, a mapped
shard of the shard and the parameters. If a worker is lost, the scheduler recomputes its results elsewhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crowdrank.engines.local import ShardedData, StreamedTable, Table, add, is_streamed, split_table

# Number of partial sums that one task adds.
_BRANCHING = 8


def _load(loader: Callable[[], Any]) -> Any:
    return loader()


def _identity(given: Any) -> Any:
    return given


def _apply(function: Callable[..., Any], shard: Any, parameters: tuple[Any, ...]) -> Any:
    return function(shard, *parameters)


def _apply_to_mapped(function: Callable[..., Any], pair: tuple[Any, Any], parameters: tuple[Any, ...]) -> Any:
    return function(pair[0], *parameters)


def _terms(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _add(*parts: Any) -> Any:
    return add(parts)


def _send(client: Any, given: Any) -> Any:
    """Send an object as a task. Dask advises to scatter large objects, but scattered data are lost with a worker."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return client.submit(_identity, given, pure=False)


@dataclass(frozen=True)
class DaskShards:
    """Futures of shards, or of pairs (mapped shard, terms) after `map_and_sum`."""

    client: Any
    shards: Sequence[Any]
    apply: Callable[..., Any] = _apply
    memory_left: float = math.inf

    def sum(self, function: Callable[..., Any], *parameters: Any) -> Any:
        return self._sum(self._map(function, parameters))

    def map_and_sum(self, function: Callable[..., Any], *parameters: Any) -> tuple[DaskShards, Any]:
        pairs = self._map(function, parameters)
        found = self._sum([self._submit(_terms, pair) for pair in pairs])
        return DaskShards(self.client, pairs, _apply_to_mapped), found

    def _map(self, function: Callable[..., Any], parameters: tuple[Any, ...]) -> list[Any]:
        sent = _send(self.client, parameters)
        return [self._submit(self.apply, function, shard, sent) for shard in self.shards]

    def _sum(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            parts = [self._submit(_add, *parts[n : n + _BRANCHING]) for n in range(0, len(parts), _BRANCHING)]
        return parts[0].result()

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(task, *arguments, pure=False)


@dataclass(frozen=True)
class Dask:
    """Run on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        A connected client. Files made by `crowdrank.scan` must be readable by all workers.
    """

    client: Any

    def load(self, table: Table | StreamedTable) -> ShardedData:
        if is_streamed(table):
            shards = [self.client.submit(_load, loader, pure=False) for loader in table.loaders]
        else:
            shards = [_send(self.client, shard) for shard in split_table(table)]
        return DaskShards(self.client, shards)

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return DaskShards(self.client, [_send(self.client, piece) for piece in pieces])
