from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    logistic,
    numbered_labels,
    pair_at_index,
    sample_pairs,
    sample_rows,
    spawn_generators,
    standardised,
)


def test_pair_numbers_count_every_pair_once():
    first, second = pair_at_index(np.arange(45))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == set(combinations(range(10), 2))


def test_pair_numbers_are_exact_where_square_roots_round():
    larger = np.array([1_000_000, 100_000_000, 300_000_000, 2_000_000_000])
    number = larger * (larger - 1) // 2
    for offset, expected in ((0, larger), (-1, larger - 1)):
        first, second = pair_at_index(number + offset)
        np.testing.assert_array_equal(second, expected)
        np.testing.assert_array_equal(first, number + offset - second * (second - 1) // 2)
        assert np.all((first >= 0) & (first < second))


def test_all_pairs_are_drawn_when_all_are_wanted():
    first, second = sample_pairs(np.random.default_rng(0), 6, 15)
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == 15


def test_rows_of_distinct_numbers_are_every_set_as_often():
    rows = sample_rows(np.random.default_rng(3), 40_000, 5, 3)
    seen = Counter(tuple(sorted(row)) for row in rows.tolist())
    assert set(seen) == set(combinations(range(5), 3))
    chi_square = sum((count - 4000) ** 2 / 4000 for count in seen.values())
    assert chi_square < 27.9  # 9 degrees of freedom, 1 in 1000


def test_streams_differ_and_repeat():
    first, second = spawn_generators(5, 2)
    again = spawn_generators(5, 3)[0]
    values = first.random(4)
    np.testing.assert_array_equal(values, again.random(4))
    assert not np.any(values == second.random(4))


def test_a_negative_seed_is_refused():
    with pytest.raises(SettingError, match="seed must be zero or more, got -1"):
        spawn_generators(-1, 1)


@pytest.mark.parametrize("count", [9, 10, 1000])
def test_numbered_labels_sort_as_they_count(count):
    labels = numbered_labels("item", count).tolist()
    assert labels == sorted(labels)
    assert len(set(labels)) == count


def test_logistic_is_exact_and_never_overflows():
    margin = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    np.testing.assert_allclose(logistic(margin), [0, 1 / (1 + np.e), 0.5, np.e / (1 + np.e), 1], atol=1e-15)


def test_standardised_values_have_mean_zero_and_variance_one_unless_all_are_equal():
    values = standardised(np.array([3.0, 9.0, 27.0]))
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    np.testing.assert_array_equal(standardised(np.full(3, 7.0)), np.zeros(3))
