"""Formulas of the Mallows distribution against enumeration of all lists."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.models.lists.mallows_likelihood import (
    estimate_theta,
    expected_distance,
    log_normaliser,
    pair_count,
    sample_lists,
)

THETAS = [-60.0, -3.0, -1.0, -0.999, -0.3, -0.01, -1e-6, -1e-12, 0.0, 1e-12, 1e-6, 0.02, 0.7, 1.0, 4.0, 60.0]


def turned(order):
    return sum(a > b for n, a in enumerate(order) for b in order[n + 1 :])


def distances(items):
    return np.array([turned(order) for order in permutations(range(items))], float)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("items", range(1, 7))
def test_normaliser_and_mean_equal_sums_over_all_lists(items, theta):
    exponent = theta * distances(items)
    top = exponent.max()
    weight = np.exp(exponent - top)
    assert log_normaliser(theta, items) == pytest.approx(top + np.log(weight.sum()), rel=1e-13, abs=1e-14)
    assert expected_distance(theta, items) == pytest.approx(weight @ distances(items) / weight.sum(), rel=1e-13)


@pytest.mark.parametrize("items", [2, 9, 60])
def test_the_mean_is_the_derivative_of_the_log_normaliser(items):
    for theta in (-2.5, -1.0, -0.4, -0.05, -1e-3, 0.0, 2e-3, 0.1, 1.5):
        h = 1e-4
        slope = (log_normaliser(theta + h, items) - log_normaliser(theta - h, items)) / (2 * h)
        assert expected_distance(theta, items) == pytest.approx(slope, rel=1e-6 * items)


@pytest.mark.parametrize("items", [2, 5, 100, 3000])
def test_the_mean_increases_with_theta_symmetrically(items):
    theta = np.sort(np.concatenate([sign * np.logspace(-15, 2, 120) for sign in (-1, 1)] + [np.zeros(1)]))
    mean = expected_distance(theta, items)
    assert np.isfinite(mean).all()
    assert np.isfinite(log_normaliser(theta, items)).all()
    assert (np.diff(mean) >= -1e-12 * pair_count(items)).all()
    np.testing.assert_allclose(mean + mean[::-1], pair_count(items), rtol=1e-14)
    assert mean[len(mean) // 2] == items * (items - 1) / 4


def test_small_means_keep_their_digits():
    assert expected_distance(-100.0, 5) == pytest.approx(4 * np.exp(-100.0), rel=1e-12)
    assert log_normaliser(-100.0, 5) == pytest.approx(4 * np.exp(-100.0), rel=1e-12)


@pytest.mark.parametrize("theta", THETAS[1:-1])
@pytest.mark.parametrize("items", [2, 6, 40])
def test_theta_is_recovered_from_the_mean(items, theta):
    slack = 1e-9 if theta < 0 else 1e-7 * np.exp(theta)  # near the far end the mean hardly moves
    assert estimate_theta(float(expected_distance(theta, items)), items) == pytest.approx(theta, rel=1e-9, abs=slack)


def test_theta_at_the_extremes_and_at_zero():
    assert estimate_theta(0.0, 5) == -np.inf
    assert estimate_theta(10.0, 5) == np.inf
    assert estimate_theta(5.0, 5) == 0.0
    assert estimate_theta(1e-200, 5) == pytest.approx(np.log(1e-200 / 4))


def test_theta_of_lists_of_several_lengths_and_ties():
    """Two lists of five and one of three, two items of which were tied."""
    mean = 2 * expected_distance(-0.7, 5) + expected_distance(-0.7, 3) - expected_distance(-0.7, 2)
    assert estimate_theta(float(mean), [5, 3, 2], [2.0, 1.0, -1.0]) == pytest.approx(-0.7)


def test_arrays_give_the_same_as_scalars():
    theta, items = np.array([[-0.4], [0.0], [2.0]]), np.array([1, 4, 7])
    found = expected_distance(theta, items)
    assert found.shape == (3, 3)
    assert found.tolist() == [[float(expected_distance(t, n)) for n in items] for t in theta[:, 0]]


@pytest.mark.parametrize("theta", [-0.8, -1e-12, 0.0, 0.5])
def test_sampled_lists_have_the_right_frequencies(theta):
    rng, items, draws = np.random.default_rng(4), 4, 40_000
    lists = sample_lists(rng, np.full(draws, theta), items)
    known = {order: n for n, order in enumerate(permutations(range(items)))}
    seen = np.bincount([known[tuple(order)] for order in lists.tolist()], minlength=len(known))
    chance = np.exp(theta * distances(items) - log_normaliser(theta, items))
    assert chi_square(seen, draws * chance) < 60
    wrong = np.exp((theta - 0.1) * distances(items) - log_normaliser(theta - 0.1, items))
    assert chi_square(seen, draws * wrong) > 60


def chi_square(seen, expected):
    """Of 23 degrees of freedom here: above 60 in three cases of a hundred thousand."""
    return float(np.sum((seen - expected) ** 2 / expected))


def test_each_list_is_sampled_with_its_own_theta():
    lists = sample_lists(np.random.default_rng(0), [-800.0, 800.0, -800.0], 6)
    assert lists.tolist() == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]]
