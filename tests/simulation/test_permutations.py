from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation.lists import lists_at_distance, mahonian_numbers, mallows_lists


def kendall_distance(places):
    """Number of discordant pairs; the true list puts item m at place m."""
    return np.triu(places[:, :, None] > places[:, None, :], 1).sum(axis=(1, 2))


def expected_mallows_distance(items, theta):
    q, j = np.exp(theta), np.arange(1, items + 1)
    return items * q / (1 - q) - np.sum(j * q**j / (1 - q**j))


def test_the_mahonian_table_counts_lists():
    counted = Counter(kendall_distance(np.array(list(permutations(range(6))))).tolist())
    table = mahonian_numbers(6, 15)
    assert table[6].tolist() == [counted[v] for v in range(16)]
    np.testing.assert_array_equal(mahonian_numbers(6, 4), table[:, :5])


def test_lists_have_the_requested_distance():
    distance = np.random.default_rng(0).integers(0, 106, 2000)
    places = lists_at_distance(np.random.default_rng(1), 15, distance)
    np.testing.assert_array_equal(np.sort(places, axis=1), np.tile(np.arange(15), (2000, 1)))
    np.testing.assert_array_equal(kendall_distance(places), distance)


@pytest.mark.parametrize(("distance", "lists", "bound"), [(1, 3, 13.8), (2, 5, 18.5), (3, 6, 20.5), (5, 3, 13.8)])
def test_every_list_at_a_distance_is_as_likely(distance, lists, bound):
    places = lists_at_distance(np.random.default_rng(7), 4, np.full(12_000, distance))
    seen = Counter(map(tuple, places.tolist()))
    assert len(seen) == lists
    assert sum((count - 12_000 / lists) ** 2 for count in seen.values()) / (12_000 / lists) < bound  # 1 in 1000


@pytest.mark.parametrize("theta", [-2.0, -0.4, -0.02, 0.5])
def test_mallows_lists_have_the_expected_distance(theta):
    distance = kendall_distance(mallows_lists(np.random.default_rng(2), 10, np.full(20_000, theta)))
    expected = expected_mallows_distance(10, theta) if theta < 0 else 45 - expected_mallows_distance(10, -theta)
    assert distance.mean() == pytest.approx(expected, abs=4 * distance.std() / np.sqrt(20_000))


def test_mallows_lists_of_four_have_the_probabilities_of_the_model():
    every = np.array(list(permutations(range(4))))
    weight = np.exp(-0.7 * kendall_distance(every))
    seen = Counter(map(tuple, mallows_lists(np.random.default_rng(4), 4, np.full(24_000, -0.7)).tolist()))
    expected = 24_000 * weight / weight.sum()
    found = np.array([seen[tuple(p)] for p in every.tolist()])
    assert np.sum((found - expected) ** 2 / expected) < 49.7  # 23 degrees of freedom, 1 in 1000


def test_impossible_distances_and_too_many_items_are_refused():
    with pytest.raises(SettingError, match="between 0 and 6"):
        lists_at_distance(np.random.default_rng(0), 4, np.array([7]))
    with pytest.raises(SettingError, match="at most 170 items, got 171"):
        lists_at_distance(np.random.default_rng(0), 171, np.array([7]))


def test_the_largest_lists_stay_finite():
    places = lists_at_distance(np.random.default_rng(0), 170, np.array([7000, 14365]))
    assert kendall_distance(places).tolist() == [7000, 14365]
