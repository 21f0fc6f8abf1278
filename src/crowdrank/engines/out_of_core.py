"""Files larger than memory: shards are made of their part of the files, pass after pass, within a limit.

What fits below the limit stays: the shards, and what a pass leaves beside them. What does not is made again when it is
needed, by the same arithmetic, so that the limit changes the time and nothing else.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crowdrank.engines.base import ShardedData, StreamedTable, Table, add
from crowdrank.engines.compilation import load_compiler
from crowdrank.engines.local import LocalShards, available_cores, cut, threads
from crowdrank.engines.memory import Room, Slot, parse_bytes, release_freed_memory, resident_memory

# Of the limit this share, and so many bytes at least, are left to what comes and goes: shards at work, sums, draws.
_AT_WORK, _LEAST_AT_WORK = 0.25, 200_000_000


class StreamedShards:
    """Shards in slots: some stay in memory, the others are made when they are needed."""

    def __init__(self, shelf: list[Slot], room: Room, spare: float):
        self.shelf, self.room, self.spare = shelf, room, spare
        weakref.finalize(self, room.clear, shelf)

    def sum(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._each(lambda shard: formula(shard(), *parameters)))

    def map_and_sum(self, formula: Callable[..., Any], *parameters: Any) -> tuple[StreamedShards, Any]:
        shelf = self.room.shelf()

        def work(shard: Slot) -> tuple[Slot, Any]:
            whole = shard()
            kept, sums = formula(whole, *parameters)
            slot = Slot(lambda: formula(shard(), *parameters)[0], shard.read_ahead)
            self.room.keep(slot, kept, shelf, (shard, whole))
            return slot, sums

        def sums() -> Iterator[Any]:
            for slot, summed in self._each(work):
                shelf.append(slot)
                yield summed

        found = add(sums())
        return StreamedShards(shelf, self.room, self.spare), found

    def _each(self, work: Callable[[Slot], Any]) -> Iterator[Any]:
        """What `work` makes of each shard, in order; few are under way at a time, and the next are being read."""
        ahead = available_cores() + 1
        under_way: deque[Any] = deque()
        for place, shard in enumerate(self.shelf):
            if place + ahead < len(self.shelf):
                self.shelf[place + ahead].read_ahead()
            under_way.append(threads().submit(work, shard))
            if len(under_way) >= ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


@dataclass(frozen=True)
class OutOfCore:
    """Files larger than memory, on this machine."""

    memory: str | int = "4GB"
    """What all of this process may take up, such as "4GB" or "512MiB"."""

    def __post_init__(self) -> None:
        parse_bytes(self.memory)

    def load(self, table: Table | StreamedTable) -> ShardedData:
        if not isinstance(table, StreamedTable):  # in memory already
            return LocalShards(cut(table))
        release_freed_memory()
        load_compiler(table.rows)
        limit = parse_bytes(self.memory)
        spare = max(_AT_WORK * limit, _LEAST_AT_WORK)
        room = Room(max(0, int(limit - spare) - resident_memory()))
        shelf = room.shelf(Slot(recipe, recipe.read_ahead) for recipe in table.recipes)
        for slot in shelf:
            if room.left > 0:
                room.keep(slot, slot.make(), shelf)
        return StreamedShards(shelf, room, spare)

    def distribute(self, pieces: Sequence[Any]) -> ShardedData:
        return LocalShards(pieces)  # in memory already
