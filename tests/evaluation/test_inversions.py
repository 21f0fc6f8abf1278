from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.evaluation.metrics import count_inversions


@given(st.integers(0, 40).flatmap(lambda n: st.permutations(range(n))))
def test_counts_what_looking_at_every_pair_counts(numbers: list[int]) -> None:
    by_hand = sum(a > b for a, b in combinations(numbers, 2))
    assert count_inversions(np.array(numbers, dtype=np.int64)) == by_hand


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 1023, 1024, 1025])
def test_the_reverse_inverts_every_pair_whatever_the_size(n: int) -> None:
    assert count_inversions(np.arange(n)) == 0
    assert count_inversions(np.arange(n)[::-1]) == n * (n - 1) // 2


def test_counts_beyond_32_bits() -> None:
    n = 100_000
    assert count_inversions(np.arange(n)[::-1]) == n * (n - 1) // 2 > 2**32


def test_leaves_its_input_as_it_was() -> None:
    numbers = np.array([2, 0, 1])
    count_inversions(numbers)
    assert numbers.tolist() == [2, 0, 1]
