"""The out-of-core engine: files larger than memory, streamed from disk within a memory limit.

Shards, and the results of a pass over them, stay in memory as long as they fit below the limit. Everything else is
computed again when it is needed, by the same arithmetic, so the limit changes only the running time.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.engines.compilation import preload_compiler
from crowdrank.engines.local import (
    LocalShards,
    ShardedData,
    StreamedTable,
    Table,
    add,
    available_cores,
    is_streamed,
    split_table,
    thread_pool,
)
from crowdrank.errors import SettingError

# Memory limits: parsing sizes, measuring use, and a budget for cached shards.

# glibc's M_MMAP_THRESHOLD: allocations from this size on are mapped, and returned to the system when freed.
_MMAP_THRESHOLD = -3
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(size: str | int) -> int:
    """ "4GB", "512 MiB" or a number of bytes.

    >>> parse_bytes("4GB"), parse_bytes("1.5 GiB")
    (4000000000, 1610612736)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]i?|)b?\s*", str(size), re.IGNORECASE)
    try:
        count = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    except ValueError:
        count = 0
    if count < 1:
        raise SettingError(f"A memory size is a number and a unit, such as 4GB or 512MB; got {size!r}.")
    return count


def resident_memory() -> int:
    """Resident memory of this process in bytes."""
    try:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def release_freed_memory() -> None:
    """Make the C library return large freed arrays to the system at once.

    By default glibc keeps them for the thread that freed them while other threads allocate more, which adds up to
    hundreds of megabytes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_MMAP_THRESHOLD, 1 << 20)


class Slot:
    """A value that can be computed again, kept in memory while the budget allows.

    `parent` is a slot with which this one shares arrays; `children` counts the slots that share arrays with this one,
    so that emptying it would free nothing.
    """

    def __init__(self, make: Callable[[], Any], read_ahead: Callable[[], None]):
        self.make, self._read_ahead = make, read_ahead
        self.value: Any = None
        self.size = 0
        self.parent: Slot | None = None
        self.children = 0

    def __call__(self) -> Any:
        value = self.value  # read once: another thread may empty the slot at any moment
        return self.make() if value is None else value

    def read_ahead(self) -> None:
        if self.value is None:
            self._read_ahead()


class MemoryBudget:
    """A budget of bytes for cached values, in groups of slots. Later values displace earlier ones."""

    def __init__(self, size: int):
        self.left = size
        self._lock = threading.Lock()
        self._groups: list[list[Slot]] = []

    def new_group(self, slots: Iterable[Slot] = ()) -> list[Slot]:
        """A new group of slots."""
        self._groups.append(group := list(slots))
        return group

    def keep(self, slot: Slot, value: Any, group: list[Slot], source: tuple[Slot, Any] | None = None) -> None:
        """Keep a value in its slot if the budget allows, or if other groups can make room.

        `source` is the slot from whose value this one was computed, and that value, which may share arrays with it.
        """
        with self._lock:
            parent = source[0] if source is not None and source[0].value is source[1] else None
            size = size_of(value, beside=() if parent is None else parent.value)
            if size > self.left + sum(other.size for other in self._evictable(group, parent)):
                return
            for other in self._evictable(group, parent):
                if size <= self.left:
                    break
                self._empty(other)
            slot.value, slot.size, slot.parent = value, size, parent
            self.left -= size
            if parent is not None:
                parent.children += 1

    def clear(self, group: list[Slot]) -> None:
        """Drop a group that is no longer needed."""
        with self._lock:
            for slot in group:
                self._empty(slot)
            self._groups = [other for other in self._groups if other is not group]

    def _evictable(self, group: list[Slot], parent: Slot | None) -> Iterator[Slot]:
        """Slots that may be emptied: results of passes first, the judgments themselves (the first group) last."""
        for other in [*self._groups[1:], *self._groups[:1]]:
            if other is not group:
                yield from (slot for slot in other if slot.size and not slot.children and slot is not parent)

    def _empty(self, slot: Slot) -> None:
        self.left += slot.size
        if slot.parent is not None:
            slot.parent.children -= 1
        slot.value, slot.size, slot.parent = None, 0, None


def size_of(shard: Any, *, beside: Any = ()) -> int:
    """Bytes of the arrays in a shard, without those that it shares with `beside`."""
    shared = {id(array) for array in _arrays(beside)}
    return sum(_bytes(array) for array in _arrays(shard) if id(array) not in shared)


def _arrays(shard: Any) -> list[Any]:
    if isinstance(shard, np.ndarray):
        return [shard]
    return [array for member in shard for array in _arrays(member)] if isinstance(shard, tuple | list) else []


def _bytes(array: Any) -> int:
    """Bytes of an array; a broadcast scalar counts as nothing."""
    return 0 if 0 in array.strides else int(array.nbytes)


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
        if not is_streamed(table):  # already in memory
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
