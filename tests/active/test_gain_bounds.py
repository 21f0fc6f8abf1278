"""The bounds hold, and so do the unproven properties that they rely on."""

import numpy as np
import pytest

from crowdrank.active.gain_formulas import (
    INTERPOLATION_ERROR,
    ITEM_CONCAVITY_SQUARED,
    MAX_CHORD_VARIANCE,
    N_KNOTS,
    QUALITY_CONCAVITY,
    QUALITY_CONCAVITY_SQUARED,
    chord_bound,
    expected_gain,
    gain_bound,
    item_gain,
    quality_gain,
    quality_gain_bound,
)
from crowdrank.online.moments import win_probability

COUNTS = 10 ** np.linspace(-1, 3, 21)
ALPHAS, BETAS = (column.ravel() for column in np.meshgrid(COUNTS, COUNTS))
RNG = np.random.default_rng(0)


def concavity(values, width):
    """The largest concavity of the columns."""
    return (-np.diff(values, 2, axis=0) / width**2).max(axis=0)


def quality_on(y):
    most = quality_gain(1.0, ALPHAS, BETAS)
    return quality_gain(1 / (1 + np.exp(-y[:, None])), ALPHAS, BETAS) / most


def test_the_annotators_part_grows_with_what_is_known_of_the_answer():
    shares = quality_on(np.linspace(0, 20, 201))
    assert np.all(np.diff(shares, axis=0) > -1e-12)
    assert np.all(shares <= 1 + 1e-12)


def test_the_annotators_part_is_no_more_concave_than_reckoned():
    y = np.linspace(0, 14, 281)
    assert concavity(quality_on(y), y[1]).max() < QUALITY_CONCAVITY
    for reach in (2, 144):
        square = np.linspace(0, reach, 201)
        assert concavity(quality_on(np.sqrt(square)), square[1]).max() < QUALITY_CONCAVITY_SQUARED


def test_the_annotators_part_is_interpolated_from_above_and_closely():
    for alpha, beta in ((10.0, 1.0), (0.5, 0.5), (200.0, 0.5), (3.0, 2.0), (0.1, 0.1)):
        table = np.full(N_KNOTS, np.nan)
        most = quality_gain(1.0, alpha, beta)
        for y in (0.0, 1e-6, 0.00781, 0.3, 1.98, 2.007, 4.4444, 7.1, 23.9, 24.1, 1e3):
            above = quality_gain_bound(y, alpha, beta, table) - quality_gain(1 / (1 + np.exp(-y)), alpha, beta)
            assert -1e-16 * most <= above <= (2 * INTERPOLATION_ERROR if y < 24 else 1e-6) * most


def tame_items():
    """The items' part by lead, for many annotators, variances and sums of variances."""
    size = 2000
    ratio = np.where(RNG.random(size) < 0.3, 1 + 10 ** RNG.uniform(-3, 0, size), 10 ** RNG.uniform(0, 4, size))
    u, v = np.where(
        RNG.random((2, size)) < 0.3, MAX_CHORD_VARIANCE, 10 ** RNG.uniform(-4, np.log10(MAX_CHORD_VARIANCE), (2, size))
    )
    total = (u + v) * RNG.choice([0, 0.5, 1], size)
    curvature = 8 * chord_bound(1e3, 1e3 + 1, u, v, 1.0, ratio, 1.0, 0.0)  # far from zero, where that of d decides
    return curvature, lambda lead: item_gain(lead[:, None], u, v, win_probability(lead[:, None], total), ratio, 1.0)


def test_the_items_part_falls_with_the_lead_where_variances_are_tame():
    _, items = tame_items()
    values = items(np.linspace(0, 16, 161))
    assert np.all(np.diff(values, axis=0) < 0)


def test_the_items_part_is_no_more_concave_than_reckoned_where_variances_are_tame():
    curvature, items = tame_items()
    lead = np.linspace(0, 10, 201)
    assert np.all(concavity(items(lead), lead[1]) <= curvature)
    for reach in (2, 100):
        square = np.linspace(0, reach, 201)
        assert np.all(concavity(items(np.sqrt(square)), square[1]) < ITEM_CONCAVITY_SQUARED * curvature)


@pytest.mark.parametrize("exploration", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("most_variance", [0.01, 2.8, 9.0])
def test_a_box_is_bounded(exploration, most_variance):
    for _ in range(25):
        low = RNG.choice([0, RNG.uniform(0, 6)])
        high = low + 10 ** RNG.uniform(-3, 1)
        (a, u), (b, v) = np.sort(RNG.uniform(0.0001, most_variance, (2, 2)), axis=1)
        beta, alpha = np.sort(10 ** RNG.uniform(np.log10(0.5), np.log10(200), 2))
        bound = gain_bound(low, high, u, v, a + b, u + v, alpha, beta, exploration, np.full(N_KNOTS, np.nan))
        lead = np.append(RNG.uniform(low, high, 198), (low, high))
        one, other = RNG.choice([a, u, RNG.uniform(a, u)], 200), RNG.choice([b, v, RNG.uniform(b, v)], 200)
        assert expected_gain(lead, one, other, alpha, beta, exploration).max() <= bound * (1 + 1e-13)


def test_a_box_that_is_a_point_is_bounded_by_its_gain():
    for state in ((0.7, 1.0, 0.5, 10.0, 1.0), (3.0, 4.0, 9.0, 5.0, 2.0)):
        lead, u, v, alpha, beta = state
        bound = gain_bound(lead, lead, u, v, u + v, u + v, alpha, beta, 2.0, np.full(N_KNOTS, np.nan))
        assert bound == pytest.approx(expected_gain(*state, 2.0), rel=4 * INTERPOLATION_ERROR)
