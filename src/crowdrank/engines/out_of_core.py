"""The out-of-core engine: files larger than memory, streamed from disk within a memory limit.

Shards, and the results of a pass over them, stay in memory as long as they fit below the limit. Everything else is
computed again when it is needed, by the same arithmetic, so the limit changes only the running time.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crowdrank.engines.compilation import preload_compiler
from crowdrank.engines.local import LocalShards, available_cores, split_table, thread_pool
from crowdrank.engines.memory import MemoryBudget, Slot, parse_bytes, release_freed_memory, resident_memory
from crowdrank.engines.protocol import ShardedData, StreamedTable, Table, add

# This share of the limit, and at least this many bytes, are reserved for temporary arrays: shards in use, sums, draws.
_RESERVED_SHARE, _MIN_RESERVED = 0.25, 200_000_000


class StreamedShards:
    """Shards in slots: some stay in memory, the others are loaded when they are needed."""

    def __init__(self, slots: list[Slot], budget: MemoryBudget, memory_left: float):
        self.slots, self.budget, self.memory_left = slots, budget, memory_left
        weakref.finalize(self, budget.clear, slots)

    def sum(self, function: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._map(lambda slot: function(slot(), *parameters)))

    def map_and_sum(self, function: Callable[..., Any], *parameters: Any) -> tuple[StreamedShards, Any]:
        mapped = self.budget.new_group()

        def work(slot: Slot) -> tuple[Slot, Any]:
            shard = slot()
            value, terms = function(shard, *parameters)
            new = Slot(lambda: function(slot(), *parameters)[0], slot.read_ahead)
            self.budget.keep(new, value, mapped, (slot, shard))
            return new, terms

        def all_terms() -> Iterator[Any]:
            for slot, terms in self._map(work):
                mapped.append(slot)
                yield terms

        total = add(all_terms())
        return StreamedShards(mapped, self.budget, self.memory_left), total

    def _map(self, work: Callable[[Slot], Any]) -> Iterator[Any]:
        """Results of `work` in the order of the shards; a few shards are in progress, and the next are being read."""
        ahead = available_cores() + 1
        in_progress: deque[Any] = deque()
        for position, slot in enumerate(self.slots):
            if position + ahead < len(self.slots):
                self.slots[position + ahead].read_ahead()
            in_progress.append(thread_pool().submit(work, slot))
            if len(in_progress) >= ahead:
                yield in_progress.popleft().result()
        while in_progress:
            yield in_progress.popleft().result()


@dataclass(frozen=True)
class OutOfCore:
    """Stream files larger than memory from disk.

    Parameters
    ----------
    memory : str or int, default "4GB"
        Memory limit of the whole process, such as "4GB" or "512MiB".
    """

    memory: str | int = "4GB"

    def __post_init__(self) -> None:
        parse_bytes(self.memory)

    def load(self, table: Table | StreamedTable) -> ShardedData:
        if not isinstance(table, StreamedTable):  # already in memory
            return LocalShards(split_table(table))
        release_freed_memory()
        preload_compiler(table.rows)
        limit = parse_bytes(self.memory)
        reserved = max(_RESERVED_SHARE * limit, _MIN_RESERVED)
        budget = MemoryBudget(max(0, int(limit - reserved) - resident_memory()))
        slots = budget.new_group(Slot(loader, loader.read_ahead) for loader in table.loaders)
        for slot in slots:
            if budget.left > 0:
                budget.keep(slot, slot.make(), slots)
        return StreamedShards(slots, budget, reserved)

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return LocalShards(pieces)  # already in memory
