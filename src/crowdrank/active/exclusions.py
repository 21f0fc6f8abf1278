"""Which pairs must not be asked, of one annotator or of anyone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, IntArray

EVERYONE = -1
_NONE = np.zeros(0, np.int64)


class Excluded(NamedTuple):
    """Sorted keys, so that telling takes one search: (annotator + 1)·n² + first·n + second with first < second, and
    (annotator + 1)·n + item, of n items. In place of an annotator, −1 is everyone."""

    items: int
    """How many there are."""
    pairs: IntArray = _NONE
    alone: IntArray = _NONE
    """Items about which the annotator is asked nothing."""

    def adding(self, annotator: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike) -> Excluded:
        """Pairs, in codes, and from whom to keep them: numbers, or arrays of the same length."""
        keys = _pair(self.items, *map(_codes, (annotator, left, right)))
        return self._replace(pairs=_merged(self.pairs, keys))

    def adding_items(self, annotator: npt.ArrayLike, item: npt.ArrayLike) -> Excluded:
        """Items, in codes, and from whom to keep them."""
        return self._replace(alone=_merged(self.alone, (_codes(annotator) + 1) * self.items + _codes(item)))

    def allows(self, annotator: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike) -> BoolArray:
        """Whether each pair may be asked of each annotator."""
        who, one, other = np.broadcast_arrays(*map(_codes, (annotator, left, right)))
        kept = np.zeros(who.shape, bool)
        for whose in (who, np.full_like(who, EVERYONE)):
            kept |= _among(self.pairs, _pair(self.items, whose, one, other))
            kept |= _among(self.alone, (whose + 1) * self.items + one)
            kept |= _among(self.alone, (whose + 1) * self.items + other)
        return ~kept


def _codes(given: npt.ArrayLike) -> IntArray:
    return np.asarray(given, np.int64)


def _pair(size: int, who: IntArray, one: IntArray, other: IntArray) -> Any:
    return ((who + 1) * size + np.minimum(one, other)) * size + np.maximum(one, other)


def _merged(keys: IntArray, more: IntArray) -> IntArray:
    found = np.sort(np.concatenate((keys, np.atleast_1d(more))))
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


def _among(known: IntArray, keys: Any) -> BoolArray:
    if not len(known):
        return np.zeros(np.shape(keys), bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)


def has(known: Any, key: int) -> Any:
    """Whether a key is among the sorted ones; compiled."""
    low, high = 0, len(known)
    while low < high:
        middle = (low + high) // 2
        if known[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(known) and known[low] == key


def kept_from(excluded: Any, who: int, one: int, other: int) -> Any:
    """Whether the pair must not be asked of that annotator, everyone apart; compiled."""
    size = excluded.items
    if has(excluded.pairs, ((who + 1) * size + min(one, other)) * size + max(one, other)):
        return True
    return has(excluded.alone, (who + 1) * size + one) or has(excluded.alone, (who + 1) * size + other)


def first_allowed(excluded: Any, annotators: Any, one: int, other: int) -> int:
    """Of some annotators, the first who may be asked; −1 where nobody may; compiled."""
    if not kept_from(excluded, -1, one, other):
        for who in annotators:
            if not kept_from(excluded, who, one, other):
                return int(who)
    return -1


FORMULAS = (has, kept_from, first_allowed)
"""What a compiled search calls."""
