"""The Mallows distribution of top-k lists against enumeration of all lists."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.models.lists import mallows_likelihood
from crowdrank.models.lists.mallows_likelihood import (
    estimate_top_k_theta,
    expected_top_k_distance,
    max_top_k_distance,
    top_k_distance,
    top_k_log_normaliser,
)

SHAPES = [(2, 1), (5, 2), (6, 3), (6, 4), (7, 2), (7, 5), (5, 5)]
THETAS = [-20.0, -2.0, -0.3, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.4, 3.0]


def all_distances(items, top):
    centre = tuple(range(top))
    return np.array([top_k_distance(centre, other) for other in permutations(range(items), top)], float)


def by_definition(first, second):
    """Wu et al. 2016, Definition 1, term by term."""
    k = len(first)
    both, alone, theirs = set(first) & set(second), set(first) - set(second), set(second) - set(first)
    place = {item: n for n, item in enumerate(second)} | dict.fromkeys(alone, k)
    swaps = sum(
        place[a] > place[b] for n, a in enumerate(first) if a in both for b in first[n + 1 :] if b in both
    ) + sum(place[a] > place[b] for a in both for b in theirs)
    passed = sum(b in both for n, a in enumerate(first) if a in alone for b in first[n + 1 :])
    return swaps + passed + len(alone) * (len(alone) + 1) // 2


def test_the_distance_follows_definition_1():
    rng = np.random.default_rng(0)
    for _ in range(300):
        items, top = 8, int(rng.integers(1, 7))
        first, second = (tuple(rng.permutation(items)[:top].tolist()) for _ in range(2))
        assert top_k_distance(first, second) == by_definition(first, second)
        assert top_k_distance(first, second) == top_k_distance(second, first)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize(("items", "top"), SHAPES)
def test_normaliser_and_mean_equal_sums_over_all_lists(items, top, theta):
    far = all_distances(items, top)
    log_z = np.logaddexp.reduce(theta * far)
    assert top_k_log_normaliser(theta, items, top) == pytest.approx(log_z, abs=1e-9)
    assert expected_top_k_distance(theta, items, top) == pytest.approx(np.exp(theta * far - log_z) @ far, abs=1e-9)
    assert max_top_k_distance(items, top) == far.max()


@pytest.mark.parametrize("theta", THETAS[1:])
def test_the_mean_is_the_derivative_of_the_log_normaliser(theta):
    h = 1e-4
    slope = (top_k_log_normaliser(theta + h, 60, 10) - top_k_log_normaliser(theta - h, 60, 10)) / (2 * h)
    assert expected_top_k_distance(theta, 60, 10) == pytest.approx(slope, rel=1e-5)


def test_k_equal_to_n_is_a_full_list():
    theta = np.array(THETAS)
    assert top_k_log_normaliser(theta, 9, 9) == pytest.approx(mallows_likelihood.log_normaliser(theta, 9), abs=1e-10)
    assert expected_top_k_distance(theta, 9, 9) == pytest.approx(
        mallows_likelihood.expected_distance(theta, 9), abs=1e-10
    )


@pytest.mark.parametrize("theta", [-4.0, -0.5, -1e-4, 0.0, 0.3, 2.0])
def test_theta_is_recovered_from_the_mean(theta):
    items, top, weight = np.array([60, 12, 5]), np.array([10, 4, 5]), np.array([3.0, 1.0, 0.5])
    mean = sum(w * expected_top_k_distance(theta, n, k) for n, k, w in zip(items, top, weight, strict=True))
    assert estimate_top_k_theta(float(mean), items, top, weight) == pytest.approx(theta, abs=1e-8)


def test_theta_is_infinite_at_the_extremes():
    assert estimate_top_k_theta(0.0, 6, 3) == -np.inf
    assert estimate_top_k_theta(max_top_k_distance(6, 3), 6, 3) == np.inf
