"""log Γ above its tangent, beside an integral of the trigamma function, which loses no digits either."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import digamma, gammaln, polygamma

from crowdrank.inference.special import above_tangent, excess

NODES, WEIGHTS = leggauss(40)


def integral(x, y):
    """∫ from y to x of (x − s)ψ′(s) ds."""
    half = (x - y) / 2
    s = (x + y) / 2 + half * NODES
    return half * np.sum(WEIGHTS * (x - s) * polygamma(1, s))


@pytest.mark.parametrize("y", [0.05, 0.5, 1.0, 3.7, 11.0, 200.0, 5e3])
@pytest.mark.parametrize("step", [-0.6, -1e-3, 1e-7, 0.02, 0.5, 1.0])
def test_above_tangent_keeps_its_digits(y, step):
    x = y * (1 + step) if step < 0 else y + step
    near = 1e-13 if abs(step) < 0.9 or y > 1 else 1e-5  # a quadrature near the pole
    np.testing.assert_allclose(above_tangent(x, y), integral(x, y), rtol=max(near, 1e-15 * y / abs(x - y)))


def test_above_tangent_is_what_it_says():
    x, y = np.random.default_rng(0).uniform(0.1, 5, (2, 100))
    np.testing.assert_allclose(above_tangent(x, y), gammaln(x) - gammaln(y) - (x - y) * digamma(y), atol=1e-13)


def test_above_tangent_is_nothing_at_the_point_of_contact():
    assert above_tangent(3.2, 3.2) == 0


def test_excess_is_smooth_where_the_series_ends():
    t = np.array([-0.01, 0.01])
    below, above = t * (1 - 1e-12), t * (1 + 1e-12)
    np.testing.assert_allclose(excess(below), excess(above), rtol=1e-11)
    np.testing.assert_allclose(excess(np.array([1e-8, -1e-8])), 5e-17, rtol=2e-8)
