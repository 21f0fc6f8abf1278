"""This machine: shards in memory, one thread a core."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from crowdrank.engines.contract import Table, add

# Cutting depends on the data alone, never on the machine: sums come out the same, bit for bit, everywhere.
ROWS_PER_SHARD = 1 << 18
MOST_SHARDS = 16


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="crowdrank")


@dataclass(frozen=True)
class HeldHere:
    """Shards in this process's memory."""

    shards: Sequence[Any]

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._each(formula, parameters))

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[HeldHere, Any]:
        kept, sums = zip(*self._each(formula, parameters), strict=True)
        return HeldHere(kept), add(sums)

    def _each(self, formula: Callable[..., Any], parameters: tuple[Any, ...]) -> list[Any]:
        if len(self.shards) == 1:
            return [formula(self.shards[0], *parameters)]
        return list(_pool().map(lambda shard: formula(shard, *parameters), self.shards))


@dataclass(frozen=True)
class Here:
    """Threads on this machine; small tables stay whole and start none."""

    rows_per_shard: int = ROWS_PER_SHARD

    def hold(self, table: Table) -> HeldHere:
        parts = min(MOST_SHARDS, -(-table.rows // self.rows_per_shard))
        return HeldHere(table.split(parts) if parts > 1 else [table])


here = Here()
