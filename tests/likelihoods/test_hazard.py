"""log Φ and the hazard by a table, beside SciPy's."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.inference.special import hazard_by_table, log_cdf_by_table

POINTS = np.concatenate((np.linspace(-40, 40, 20_011), [-12.0, 8.0, np.nextafter(-12.0, -13), np.nextafter(8.0, 0)]))


def test_log_cdf_is_right_to_nine_digits():
    np.testing.assert_allclose([log_cdf_by_table(x) for x in POINTS], log_ndtr(POINTS), rtol=1e-9, atol=1e-9)


def test_the_hazard_is_right_to_four_digits():
    truth = np.exp(-0.5 * POINTS**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(POINTS))
    np.testing.assert_allclose([hazard_by_table(x) for x in POINTS], truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("by_table", [log_cdf_by_table, hazard_by_table])
def test_far_out_both_are_finite(by_table):
    assert np.all(np.isfinite([by_table(x) for x in (-1e6, -1e3, 1e3, 1e6)]))


def test_where_the_table_ends_nothing_jumps():
    for edge in (-12.0, 8.0):
        below = np.nextafter(edge, -100)
        assert log_cdf_by_table(below) == pytest.approx(log_cdf_by_table(edge), abs=1e-8)
        assert hazard_by_table(below) == pytest.approx(hazard_by_table(edge), abs=2e-3)
