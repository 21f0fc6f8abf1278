"""Whether the side of the screen decides."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import DataError
from crowdrank.evaluation.position_bias import sides


def shown(rng, rows, pull, both_ways=True):
    """Item 0 beats 1 beats 2 … four times in five, and left is chosen outright so often."""
    left, right = rng.integers(0, 6, rows), rng.integers(0, 5, rows)
    right = np.where(right >= left, right + 1, right)
    if not both_ways:
        left, right = np.minimum(left, right), np.maximum(left, right)
    better = (left < right) == (rng.random(rows) < 0.8)
    won = np.where(better | (rng.random(rows) < pull), left, right)
    names = np.array(list("abcdef"), dtype=object)
    return Comparisons.of(names[left], names[right], names[won])


def test_no_pull_is_found_where_there_is_none():
    rng = np.random.default_rng(0)
    found = [sides(shown(rng, 600, 0.0)) for _ in range(100)]
    away = [abs(f.chosen - 0.5) > 1.96 * f.std_error for f in found]
    assert sum(away) <= 8
    assert all(f.known for f in found)


def test_a_pull_is_found_and_its_size():
    found = sides(shown(np.random.default_rng(1), 20_000, 0.2))
    assert abs(found.chosen - 0.6) < 4 * found.std_error


def test_pairs_shown_one_way_round_tell_nothing():
    found = sides(shown(np.random.default_rng(2), 2000, 0.0, both_ways=False))
    assert found.left > found.right
    assert (found.both_ways, found.known) == (0, False)
    assert np.isnan(found.chosen)
    assert np.isnan(found.std_error)


def test_answers_are_counted_by_side():
    found = sides(Comparisons.of(["a", "b", "a"], ["b", "a", "c"], ["a", "tie", "c"]))
    assert (found.left, found.ties, found.right, found.pairs) == (1, 1, 1, 2)


def test_there_are_no_sides_of_winner_and_loser():
    with pytest.raises(DataError, match="no sides"):
        sides(Comparisons.of(["a"], ["b"], ["a"], positions_known=False))
