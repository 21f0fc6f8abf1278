import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from crowdrank.inference.special import hazard, log_cdf, log_cdf_of_number

GRID = np.unique(
    np.concatenate((np.linspace(-1000, 40, 4001), np.linspace(-40, 10, 2001), [-35.0, -34.999, 0.0, -0.0]))
)


def test_log_cdf_of_a_number_is_that_of_scipy():
    ours = np.array([log_cdf_of_number(float(x)) for x in GRID])
    np.testing.assert_allclose(ours, log_ndtr(GRID), rtol=1e-12, atol=1e-300)


def test_log_cdf_of_a_number_joins_smoothly_where_its_formulas_meet():
    for meeting in (-35.0, 0.0):
        around = meeting + np.array([-1e-9, 0.0, 1e-9])
        ours = np.array([log_cdf_of_number(float(x)) for x in around])
        np.testing.assert_allclose(ours, log_ndtr(around), rtol=1e-12)


def test_log_cdf_of_an_array_is_scipys():
    np.testing.assert_array_equal(log_cdf(GRID), log_ndtr(GRID))


def test_hazard_is_density_over_distribution_where_both_can_be_computed():
    x = np.linspace(-30, 8, 500)
    np.testing.assert_allclose(hazard(x), norm.pdf(x) / norm.cdf(x), rtol=1e-10)


@pytest.mark.parametrize("x", [-1000.0, -100.0, -50.0])
def test_hazard_is_nearly_minus_x_far_below_zero(x):
    assert hazard(np.array([x]))[0] == pytest.approx(-x + 1 / -x - 2 / -(x**3), rel=1e-8)
