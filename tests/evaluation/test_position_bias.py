"""Position bias: whether the side of the screen affects the answers."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import DataError
from crowdrank.evaluation import position_bias


def shown(rng, rows, bias, both_orders=True):
    """Items with smaller numbers win four times in five; with probability `bias`, left is chosen anyway."""
    left, right = rng.integers(0, 6, rows), rng.integers(0, 5, rows)
    right = np.where(right >= left, right + 1, right)
    if not both_orders:
        left, right = np.minimum(left, right), np.maximum(left, right)
    better = (left < right) == (rng.random(rows) < 0.8)
    won = np.where(better | (rng.random(rows) < bias), left, right)
    names = np.array(list("abcdef"), dtype=object)
    return Comparisons.of(names[left], names[right], names[won])


def test_no_bias_is_found_where_there_is_none():
    rng = np.random.default_rng(0)
    found = [position_bias(shown(rng, 600, 0.0)) for _ in range(100)]
    away = [abs(f.left_share - 0.5) > 1.96 * f.std_error for f in found]
    assert sum(away) <= 8
    assert all(f.is_identified for f in found)


def test_a_bias_is_found_with_its_size():
    found = position_bias(shown(np.random.default_rng(1), 20_000, 0.2))
    assert abs(found.left_share - 0.6) < 4 * found.std_error


def test_pairs_in_one_order_do_not_identify_the_bias():
    found = position_bias(shown(np.random.default_rng(2), 2000, 0.0, both_orders=False))
    assert found.left > found.right
    assert (found.pairs_in_both_orders, found.is_identified) == (0, False)
    assert np.isnan(found.left_share)
    assert np.isnan(found.std_error)


def test_answers_are_counted_by_side():
    found = position_bias(Comparisons.of(["a", "b", "a"], ["b", "a", "c"], ["a", "tie", "c"]))
    assert (found.left, found.ties, found.right, found.pairs) == (1, 1, 1, 2)


def test_winner_and_loser_without_sides_are_refused():
    with pytest.raises(DataError, match="needs sides"):
        position_bias(Comparisons.of(["a"], ["b"], ["a"], sided=False))
