"""A first look at Thurstonian preferences: curves over expertise, and the summit of scores."""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from crowdrank.models.thurstonian.layout import climb, curves, sights_of, slope_of

STARTS = np.array([0, 4, 4, 7])
RNG = np.random.default_rng(8)
PAIRS = [(a, b) for block in (range(4), range(4, 7)) for a in block for b in block if a != b]
ROWS = [(*PAIRS[n], RNG.integers(3)) for n in RNG.integers(len(PAIRS), size=60)]
SIGHTS = sights_of(*np.array(ROWS, np.int32).T, STARTS)
SLOPES = np.array([[0.5, -0.2], [0.0, 0.6], [-0.4, 0.3]])
DOMAIN = np.array([1, 0, 0])
QUERY = np.repeat([0, 2], [len(range(4)), len(range(3))])


def test_a_slope_is_the_chance_of_a_judgment_with_what_was_seen_integrated_out():
    rng, tau, apart = np.random.default_rng(0), 1.7, 0.8
    seen = apart + rng.normal(size=(400_000, 2)) @ [1.0, -1.0]
    chance = np.mean(ndtr(tau * seen / np.sqrt(2)))
    assert ndtr(slope_of(tau) * apart) == pytest.approx(chance, abs=0.003)


def test_curves_are_sums_of_log_likelihoods():
    scores, slopes = RNG.normal(size=7), np.array([-0.5, 0.0, 0.5, 0.7])
    found = curves(SIGHTS, scores, slopes, np.array([2, 0, 1]), 3)
    direct = np.zeros((3, 3, 4))
    for one, other, who in ROWS:
        direct[QUERY[one], who] += log_ndtr(slopes * (scores[one] - scores[other]))
    np.testing.assert_allclose(found, direct[[2, 0, 1]], atol=1e-7)


def gradient(scores, variance):
    pull = -scores / variance
    for one, other, who in ROWS:
        steep = SLOPES[who, DOMAIN[QUERY[one]]]
        x = steep * (scores[one] - scores[other])
        push = steep * np.exp(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(x))
        pull[one] += push
        pull[other] -= push
    return pull


def test_a_long_climb_ends_on_the_top():
    start = RNG.normal(size=7)
    scores, bent = climb(SIGHTS, start, SLOPES, DOMAIN, 3.0, rounds=300)
    assert np.abs(gradient(start, 3.0)).max() > 0.1
    assert np.abs(gradient(scores, 3.0)).max() < 1e-3
    for item in range(7):
        aside = np.array([scores + step * np.eye(7)[item] for step in (-0.01, 0.01)])
        low, high = (gradient(at, 3.0)[item] for at in aside)
        assert bent[item] == pytest.approx((low - high) / 0.02, rel=1e-2)


def test_a_climb_leaves_its_start_alone():
    start = np.ones(7)
    climb(SIGHTS, start, SLOPES, DOMAIN, 3.0)
    np.testing.assert_array_equal(start, 1.0)
