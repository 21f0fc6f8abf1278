"""Truncated normal draws have the right distribution, in the far tails too."""

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from crowdrank.engines.compilation import compiled
from crowdrank.inference.special import sample_positive_normal, sample_tail_excess, sample_truncated_normal

COUNT = 40_000


@compiled(sample_positive_normal)
def _positive_normals(rng, means):
    draws = np.empty_like(means)
    for row in range(len(means)):
        draws[row] = sample_positive_normal(rng, means[row])
    return draws


@compiled(sample_tail_excess, sample_truncated_normal)
def _truncated_normals(rng, means, low, high):
    draws = np.empty_like(means)
    for row in range(len(means)):
        draws[row] = sample_truncated_normal(rng, means[row], low[row], high[row])
    return draws


def positive_normals(rng, means):
    return _positive_normals(rng, np.asarray(means, np.float64))


def truncated_normals(rng, means, low, high):
    columns = np.broadcast_arrays(*(np.asarray(column, np.float64) for column in (means, low, high)))
    draws = _truncated_normals(rng, *(np.ascontiguousarray(column.ravel()) for column in columns))
    return draws.reshape(columns[0].shape)


def assert_moments(drawn, truth):
    """Mean and mean square are within four standard errors."""
    for power in (1, 2):
        values = drawn**power
        assert abs(values.mean() - truth.moment(power)) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("mean", [-30.0, -8.0, -2.0, -0.46, -0.44, 0.0, 1.0, 6.0, 30.0])
def test_positive_normals_have_the_right_moments(mean):
    drawn = positive_normals(np.random.default_rng(1), np.full(COUNT, mean))
    assert drawn.min() > 0
    assert_moments(drawn, truncnorm(-mean, np.inf, loc=mean))


@pytest.mark.parametrize("mean", [-1e9, -1e5, 1e9])
def test_positive_normals_are_finite_far_out(mean):
    drawn = positive_normals(np.random.default_rng(1), np.full(1000, mean))
    assert np.all(np.isfinite(drawn) & (drawn > 0))
    assert np.mean(drawn) == pytest.approx(max(mean, -1 / mean), rel=0.2)


BOUNDS = [
    (-np.inf, np.inf),
    (-np.inf, 0.5),
    (0.0, np.inf),
    (0.2, np.inf),
    (30.0, np.inf),
    (-np.inf, -8.0),
    (-1.0, 0.1),
    (0.0, 2.4),
    (-0.1, 2.6),
    (-9.0, 0.01),
    (0.1, 0.2),
    (0.5, 6.0),
    (3.0, 3.5),
    (8.0, 8.01),
    (30.0, 31.0),
    (-20.0, -7.0),
    (-1e-2, 1e-2),
]


@pytest.mark.parametrize("flipped", [False, True], ids=["as they are", "flipped"])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_truncated_normals_have_the_right_distribution(low, high, flipped):
    low, high = (-high, -low) if flipped else (low, high)
    drawn = truncated_normals(np.random.default_rng(2), 0.0, np.full(COUNT, low), high)
    assert np.all((low <= drawn) & (drawn <= high))
    assert kstest(drawn, truncnorm(low, high).cdf).pvalue > 1e-4
    if max(low, -high) < 5:  # beyond, moments about zero hide the spread past the bound
        assert_moments(drawn, truncnorm(low, high))


def test_other_means_only_shift():
    still, moved = (
        truncated_normals(np.random.default_rng(3), mean, np.linspace(-4, 4, 50) + mean, np.linspace(-3, 6, 50) + mean)
        for mean in (0.0, 64.0)
    )
    np.testing.assert_allclose(moved, still + 64.0, atol=1e-9)


def test_another_mean_is_detected():
    """Negative control: a mean that is off by a twentieth."""
    drawn = truncated_normals(np.random.default_rng(2), np.full(COUNT, 0.05), -1.0, 2.0)
    with pytest.raises(AssertionError):
        assert_moments(drawn, truncnorm(-1.0, 2.0))


@pytest.mark.parametrize("mean", [-1e12, -40.0, 0.0, 40.0, 1e12])
@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (1.0, 1.0 + 1e-15), (1.0, 1.0 - 1e-15), (1.0, 2.0)])
def test_bounds_that_meet_or_are_far_off_neither_hang_nor_overflow(mean, low, high):
    drawn = truncated_normals(np.random.default_rng(4), np.full(100, mean), low, high)
    assert np.all((drawn >= min(low, high)) & (drawn <= max(low, high)))
