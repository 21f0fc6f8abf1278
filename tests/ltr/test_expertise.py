"""Expertise from distances, with side information."""

import numpy as np
import pytest

from crowdrank.data import SideInformation
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.ltr.expertise import SufficientStatistics, estimate_theta
from crowdrank.models.lists import mallows_likelihood

SIZES = np.array([15, 7, 3])
COUNT = np.array([[30.0, 0, 0], [30, 4, -2], [0, 50, 1], [20, 0, 5]])
THETA = np.array([-2.3, -0.013, 0.7, -1.1])
PEOPLE = np.array(["ann", "bob", "cem", "dan"], dtype=object)


@pytest.fixture
def statistics():
    return SufficientStatistics(
        COUNT, np.array([30.0, 34, 51, 25]), lambda theta: mallows_likelihood.expected_distance(theta[:, None], SIZES)
    )


def encoded(**known):
    return SideInformation(**known).encode_annotators(PEOPLE, larger_is_better=False)


def test_theta_is_recovered_from_expected_distances(statistics):
    found = estimate_theta(statistics, statistics.expected_totals(THETA), 0, NO_SIDE_INFORMATION)
    assert found == pytest.approx(THETA, abs=1e-4)


def test_the_information_is_the_variance_of_the_distance(statistics):
    theta, h = np.full(4, -0.8), 1e-3
    z = [COUNT @ mallows_likelihood.log_normaliser(-0.8 + shift, SIZES) for shift in (-h, 0, h)]
    assert statistics.information(theta) == pytest.approx((z[0] - 2 * z[1] + z[2]) / h**2, rel=1e-3)


def test_perfect_lists_give_a_finite_theta(statistics):
    found = estimate_theta(statistics, np.zeros(4), 0, NO_SIDE_INFORMATION)
    assert np.isfinite(found).all()
    assert (found <= -19).all()


def test_prior_lists_shrink_towards_the_mean_of_the_crowd(statistics):
    distance = statistics.expected_totals(THETA)
    alone, shrunk = (estimate_theta(statistics, distance, lists, NO_SIDE_INFORMATION) for lists in (0, 5))
    centre = shrunk.mean()
    assert (np.abs(shrunk - centre) < np.abs(alone - centre)).all()
    assert np.argsort(shrunk).tolist() == np.argsort(alone).tolist()


def test_an_annotator_without_lists_gets_the_mean(statistics):
    idle = SufficientStatistics(np.vstack((COUNT, np.zeros(3))), np.array([30.0, 34, 51, 25, 0]), statistics.expected)
    found = estimate_theta(idle, np.append(statistics.expected_totals(THETA), 0.0), 1, NO_SIDE_INFORMATION)
    assert found[:4].min() < found[4] < found[:4].max()


def test_known_values_are_fixed_and_ranges_respected(statistics):
    facts = encoded(quality={"ann": -1.5}, between={"bob": (-0.4, -0.2), "dan": (-3, 0)})
    found = estimate_theta(statistics, statistics.expected_totals(THETA), 0, facts)
    assert found == pytest.approx([-1.5, -0.2, 0.7, -1.1], abs=1e-4)


def test_annotators_in_the_wrong_order_are_pooled_by_their_lists(statistics):
    found = estimate_theta(
        statistics, statistics.expected_totals(THETA), 0, encoded(better=[("cem", "bob"), ("ann", "dan")])
    )
    pooled = (34 * -0.013 + 51 * 0.7) / 85
    assert found == pytest.approx([-2.3, pooled, pooled, -1.1], abs=1e-4)


def test_an_annotator_better_than_a_known_one_is_at_least_as_good(statistics):
    found = estimate_theta(
        statistics, statistics.expected_totals(THETA), 0, encoded(quality={"ann": -2.5}, better=[("bob", "ann")])
    )
    assert found[1] == pytest.approx(-2.5)


@pytest.mark.parametrize("largest", [0, 1, 2, 12])
def test_the_expected_distances_of_all_sizes_are_those_of_each(largest):
    theta = np.array([-4.0, -1.0, -0.3, 0.0, 1e-9, 0.2, 3.0])
    found = mallows_likelihood.expected_distance_by_size(theta, largest)
    each = [mallows_likelihood.expected_distance(theta, size) for size in range(largest + 1)]
    assert found == pytest.approx(np.array(each).T, rel=1e-12, abs=1e-12)
