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

from crowdrank.engines.base import Held, Table, TableInParts, add
from crowdrank.engines.compilation import load_compiler
from crowdrank.engines.local import HeldHere, cores, cut, threads
from crowdrank.engines.memory import Room, Slot, bytes_of, give_back_at_once, in_use

# Of the limit this share, and so many bytes at least, are left to what comes and goes: shards at work, sums, draws.
_AT_WORK, _LEAST_AT_WORK = 0.25, 200_000_000


class HeldInParts:
    """Shards in slots: some stay in memory, the others are made when they are needed."""

    def __init__(self, shelf: list[Slot], room: Room, spare: float):
        self.shelf, self.room, self.spare = shelf, room, spare
        weakref.finalize(self, room.clear, shelf)

    def total(self, formula: Callable[..., Any], *parameters: Any) -> Any:
        return add(self._each(lambda shard: formula(shard(), *parameters)))

    def keep(self, formula: Callable[..., Any], *parameters: Any) -> tuple[HeldInParts, Any]:
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
        return HeldInParts(shelf, self.room, self.spare), found

    def _each(self, work: Callable[[Slot], Any]) -> Iterator[Any]:
        """What `work` makes of each shard, in order; few are under way at a time, and the next are being read."""
        ahead = cores() + 1
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
        bytes_of(self.memory)

    def hold(self, table: Table | TableInParts) -> Held:
        if not isinstance(table, TableInParts):  # in memory already
            return HeldHere(cut(table))
        give_back_at_once()
        load_compiler(table.rows)
        limit = bytes_of(self.memory)
        spare = max(_AT_WORK * limit, _LEAST_AT_WORK)
        room = Room(max(0, int(limit - spare) - in_use()))
        shelf = room.shelf(Slot(recipe, recipe.read_ahead) for recipe in table.loaders)
        for slot in shelf:
            if room.left > 0:
                room.keep(slot, slot.make(), shelf)
        return HeldInParts(shelf, room, spare)

    def spread(self, pieces: Sequence[Any]) -> Held:
        return HeldHere(pieces)  # in memory already
