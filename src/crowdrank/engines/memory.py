"""How much memory may be used, and how much is."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from crowdrank.errors import SettingError

# The number by which glibc knows the size from which on memory is asked of the system, and given back.
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
        raise SettingError(f"A size of memory is a number and a unit, such as 4GB or 512MB; got {size!r}.")
    return count


def resident_memory() -> int:
    """Bytes of memory that this process takes up now."""
    try:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def release_freed_memory() -> None:
    """Have large arrays given back to the system when they are freed.

    The C library would keep them for the thread that freed them, and have others ask for more: hundreds of megabytes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_MMAP_THRESHOLD, 1 << 20)


class Slot:
    """Something that can be made again: kept while there is room for it."""

    def __init__(self, make: Callable[[], Any], read_ahead: Callable[[], None]):
        self.make, self._read_ahead = make, read_ahead
        self.kept: Any = None
        self.size = 0
        self.beneath: Slot | None = None
        """The slot some of whose arrays are kept here, too, …"""
        self.leaning = 0
        """… and how many slots keep some of this one's: emptying it would free nothing."""

    def __call__(self) -> Any:
        kept = self.kept  # another thread may need its room in this very moment
        return self.make() if kept is None else kept

    def read_ahead(self) -> None:
        if self.kept is None:
            self._read_ahead()


class Room:
    """Bytes that may be kept. What a later pass leaves is worth more than what an earlier one left, as a rule."""

    def __init__(self, size: int):
        self.left = size
        self._lock = threading.Lock()
        self._shelves: list[list[Slot]] = []

    def shelf(self, slots: Iterable[Slot] = ()) -> list[Slot]:
        """A new place for slots."""
        self._shelves.append(found := list(slots))
        return found

    def keep(self, slot: Slot, kept: Any, shelf: list[Slot], made_of: tuple[Slot, Any] | None = None) -> None:
        """Keep this in its slot, if there is room, or room can be made on other shelves.

        `made_of` is the slot of what this was made of, and that itself, which may share arrays with it.
        """
        with self._lock:
            beneath = made_of[0] if made_of is not None and made_of[0].kept is made_of[1] else None
            size = size_of(kept, beside=() if beneath is None else beneath.kept)
            if size > self.left + sum(other.size for other in self._others(shelf, beneath)):
                return
            for other in self._others(shelf, beneath):
                if size <= self.left:
                    break
                self._empty(other)
            slot.kept, slot.size, slot.beneath = kept, size, beneath
            self.left -= size
            if beneath is not None:
                beneath.leaning += 1

    def clear(self, shelf: list[Slot]) -> None:
        """Nobody needs what is on this shelf any more."""
        with self._lock:
            for slot in shelf:
                self._empty(slot)
            self._shelves = [other for other in self._shelves if other is not shelf]

    def _others(self, shelf: list[Slot], beneath: Slot | None) -> Iterator[Slot]:
        """Slots that may be emptied: what passes left first, the judgments themselves (the first shelf) last."""
        for other in [*self._shelves[1:], *self._shelves[:1]]:
            if other is not shelf:
                yield from (slot for slot in other if slot.size and not slot.leaning and slot is not beneath)

    def _empty(self, slot: Slot) -> None:
        self.left += slot.size
        if slot.beneath is not None:
            slot.beneath.leaning -= 1
        slot.kept, slot.size, slot.beneath = None, 0, None


def size_of(shard: Any, *, beside: Any = ()) -> int:
    """Bytes of the arrays in a shard, less those that it shares with another."""
    shared = {id(array) for array in _arrays(beside)}
    return sum(_bytes(array) for array in _arrays(shard) if id(array) not in shared)


def _arrays(shard: Any) -> list[Any]:
    if isinstance(shard, np.ndarray):
        return [shard]
    return [array for member in shard for array in _arrays(member)] if isinstance(shard, tuple | list) else []


def _bytes(array: Any) -> int:
    """One number that stands for a whole column takes no room."""
    return 0 if 0 in array.strides else int(array.nbytes)
