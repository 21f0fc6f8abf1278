"""From distances to expertise, with what else is known."""

import numpy as np
import pytest

from crowdrank.data import Better, Between, Known
from crowdrank.data.side_information import NOTHING_KNOWN, known_of_annotators
from crowdrank.ltr.expertise import SufficientStatistics, estimate_theta
from crowdrank.models.lists import mallows_likelihood

SIZES = np.array([15, 7, 3])
COUNT = np.array([[30.0, 0, 0], [30, 4, -2], [0, 50, 1], [20, 0, 5]])
THETA = np.array([-2.3, -0.013, 0.7, -1.1])
PEOPLE = np.array(["ann", "bob", "cem", "dan"], dtype=object)


@pytest.fixture
def kinds():
    return SufficientStatistics(
        COUNT, np.array([30.0, 34, 51, 25]), lambda theta: mallows_likelihood.expected_distance(theta[:, None], SIZES)
    )


def told(*facts):
    return known_of_annotators(PEOPLE, facts, larger_is_better=False)


def test_theta_comes_back_from_the_distances(kinds):
    found = estimate_theta(kinds, kinds.totals(THETA), 0, NOTHING_KNOWN)
    assert found == pytest.approx(THETA, abs=1e-4)


def test_the_information_is_the_variance_of_the_distance(kinds):
    theta, h = np.full(4, -0.8), 1e-3
    z = [COUNT @ mallows_likelihood.log_normaliser(-0.8 + shift, SIZES) for shift in (-h, 0, h)]
    assert kinds.information(theta) == pytest.approx((z[0] - 2 * z[1] + z[2]) / h**2, rel=1e-3)


def test_who_is_without_fault_gets_a_number(kinds):
    found = estimate_theta(kinds, np.zeros(4), 0, NOTHING_KNOWN)
    assert np.isfinite(found).all()
    assert (found <= -19).all()


def test_lent_lists_draw_to_the_middle_of_the_crowd(kinds):
    distance = kinds.totals(THETA)
    alone, lent = (estimate_theta(kinds, distance, lists, NOTHING_KNOWN) for lists in (0, 5))
    middle = lent.mean()
    assert (np.abs(lent - middle) < np.abs(alone - middle)).all()
    assert np.argsort(lent).tolist() == np.argsort(alone).tolist()


def test_who_made_no_list_is_in_the_middle(kinds):
    idle = SufficientStatistics(np.vstack((COUNT, np.zeros(3))), np.array([30.0, 34, 51, 25, 0]), kinds.expected)
    found = estimate_theta(idle, np.append(kinds.totals(THETA), 0.0), 1, NOTHING_KNOWN)
    assert found[:4].min() < found[4] < found[:4].max()


def test_known_values_are_held_and_ranges_kept_to(kinds):
    facts = told(Known("ann", -1.5), Between("bob", -0.4, -0.2), Between("dan", -3, 0))
    found = estimate_theta(kinds, kinds.totals(THETA), 0, facts)
    assert found == pytest.approx([-1.5, -0.2, 0.7, -1.1], abs=1e-4)


def test_those_in_the_wrong_order_are_pooled_by_lists(kinds):
    found = estimate_theta(kinds, kinds.totals(THETA), 0, told(Better("cem", "bob"), Better("ann", "dan")))
    pooled = (34 * -0.013 + 51 * 0.7) / 85
    assert found == pytest.approx([-2.3, pooled, pooled, -1.1], abs=1e-4)


def test_who_is_better_than_a_known_one_is_no_worse(kinds):
    found = estimate_theta(kinds, kinds.totals(THETA), 0, told(Known("ann", -2.5), Better("bob", "ann")))
    assert found[1] == pytest.approx(-2.5)
