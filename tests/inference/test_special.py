"""Special functions against SciPy: log Φ, the inverse Mills ratio, and the Bregman divergence of lnΓ."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import digamma, gammaln, log_ndtr, polygamma
from scipy.stats import norm

from crowdrank.inference.special import (
    inverse_mills,
    inverse_mills_table,
    log_gamma_bregman,
    log_normal_cdf,
    log_normal_cdf_scalar,
    log_normal_cdf_table,
    x_minus_log1p,
)

GRID = np.unique(
    np.concatenate((np.linspace(-1000, 40, 4001), np.linspace(-40, 10, 2001), [-35.0, -34.999, 0.0, -0.0]))
)


def test_the_scalar_log_cdf_agrees_with_scipy():
    ours = np.array([log_normal_cdf_scalar(float(x)) for x in GRID])
    np.testing.assert_allclose(ours, log_ndtr(GRID), rtol=1e-12, atol=1e-300)


def test_the_scalar_log_cdf_is_continuous_where_its_formulas_meet():
    for meeting in (-35.0, 0.0):
        around = meeting + np.array([-1e-9, 0.0, 1e-9])
        ours = np.array([log_normal_cdf_scalar(float(x)) for x in around])
        np.testing.assert_allclose(ours, log_ndtr(around), rtol=1e-12)


def test_the_array_log_cdf_is_that_of_scipy():
    np.testing.assert_array_equal(log_normal_cdf(GRID), log_ndtr(GRID))


def test_the_inverse_mills_ratio_is_density_over_distribution():
    x = np.linspace(-30, 8, 500)
    np.testing.assert_allclose(inverse_mills(x), norm.pdf(x) / norm.cdf(x), rtol=1e-10)


@pytest.mark.parametrize("x", [-1000.0, -100.0, -50.0])
def test_the_inverse_mills_ratio_is_nearly_minus_x_in_the_tail(x):
    assert inverse_mills(np.array([x]))[0] == pytest.approx(-x + 1 / -x - 2 / -(x**3), rel=1e-8)


POINTS = np.concatenate((np.linspace(-40, 40, 20_011), [-12.0, 8.0, np.nextafter(-12.0, -13), np.nextafter(8.0, 0)]))


def test_the_tabulated_log_cdf_is_right_to_nine_digits():
    np.testing.assert_allclose([log_normal_cdf_table(x) for x in POINTS], log_ndtr(POINTS), rtol=1e-9, atol=1e-9)


def test_the_tabulated_inverse_mills_ratio_is_right_to_four_digits():
    truth = np.exp(-0.5 * POINTS**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(POINTS))
    np.testing.assert_allclose([inverse_mills_table(x) for x in POINTS], truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("table", [log_normal_cdf_table, inverse_mills_table])
def test_tables_are_finite_in_the_tails(table):
    assert np.all(np.isfinite([table(x) for x in (-1e6, -1e3, 1e3, 1e6)]))


def test_tables_are_continuous_at_their_ends():
    for edge in (-12.0, 8.0):
        below = np.nextafter(edge, -100)
        assert log_normal_cdf_table(below) == pytest.approx(log_normal_cdf_table(edge), abs=1e-8)
        assert inverse_mills_table(below) == pytest.approx(inverse_mills_table(edge), abs=2e-3)


NODES, WEIGHTS = leggauss(40)


def integral(x, y):
    """∫ from y to x of (x − s)ψ′(s) ds."""
    half = (x - y) / 2
    s = (x + y) / 2 + half * NODES
    return half * np.sum(WEIGHTS * (x - s) * polygamma(1, s))


@pytest.mark.parametrize("y", [0.05, 0.5, 1.0, 3.7, 11.0, 200.0, 5e3])
@pytest.mark.parametrize("step", [-0.6, -1e-3, 1e-7, 0.02, 0.5, 1.0])
def test_the_divergence_keeps_its_digits(y, step):
    x = y * (1 + step) if step < 0 else y + step
    tolerance = 1e-13 if abs(step) < 0.9 or y > 1 else 1e-5  # a quadrature tolerance the pole
    np.testing.assert_allclose(log_gamma_bregman(x, y), integral(x, y), rtol=max(tolerance, 1e-15 * y / abs(x - y)))


def test_the_divergence_agrees_with_its_definition():
    x, y = np.random.default_rng(0).uniform(0.1, 5, (2, 100))
    np.testing.assert_allclose(log_gamma_bregman(x, y), gammaln(x) - gammaln(y) - (x - y) * digamma(y), atol=1e-13)


def test_the_divergence_of_equal_arguments_is_zero():
    assert log_gamma_bregman(3.2, 3.2) == 0


def test_the_series_of_x_minus_log1p_is_continuous_at_its_end():
    t = np.array([-0.01, 0.01])
    below, above = t * (1 - 1e-12), t * (1 + 1e-12)
    np.testing.assert_allclose(x_minus_log1p(below), x_minus_log1p(above), rtol=1e-11)
    np.testing.assert_allclose(x_minus_log1p(np.array([1e-8, -1e-8])), 5e-17, rtol=2e-8)
