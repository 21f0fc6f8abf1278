"""How many pairs of a permutation stand in the wrong order, in O(n log n) array operations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def count_inversions(permutation: npt.NDArray[np.int64]) -> int:
    """Pairs of which the larger number comes first.

    >>> count_inversions(np.array([2, 3, 0, 1, 4]))
    4
    """
    # Bit by bit from the highest: once numbers are sorted by their higher bits, those that share them fill a block
    # that begins at their common prefix; within it, a 1 before a 0 is an inversion no other bit will see.
    place = np.arange(len(permutation))
    numbers, total = np.asarray(permutation, np.int64), 0
    for bit in reversed(range((len(permutation) - 1).bit_length())):
        block = place >> (bit + 1) << (bit + 1)
        one = numbers >> bit & 1
        ones_before = np.cumsum(one) - one
        ones_before -= ones_before[block]
        total += int(ones_before[one == 0].sum())
        target = np.where(one == 1, block + (1 << bit) + ones_before, place - ones_before)
        moved = np.empty_like(numbers)
        moved[target] = numbers
        numbers = moved
    return total
