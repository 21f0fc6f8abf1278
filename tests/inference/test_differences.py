"""Maximisation by differences: the optimum within bounds, and coordinates that are kept."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank.inference.newton import derivatives, maximize_within

BOUNDS = ((-1.0, 0.5), (-3.0, 3.0), (-2.0, 2.0))


def function(x):
    return -3 * (x[0] - 1) ** 2 - (x[1] + 2) ** 2 - 0.3 * x[0] * x[1] - np.cosh(x[2] - 0.5)


def test_derivatives_of_a_parabola_are_exact():
    hessian = np.array([[2.0, 0.3], [0.3, 1.0]])
    gradient, curvature = derivatives(lambda x: x @ [1.0, -2.0] - 0.5 * x @ hessian @ x, 0.0, np.array([0.1, 0.2]))
    assert gradient == pytest.approx([1.0, -2.0])
    assert curvature == pytest.approx(hessian)


@pytest.mark.parametrize("start", [np.zeros(3), np.array([0.4, -1.0, 1.0])], ids=["zero", "elsewhere"])
def test_the_optimum_lies_at_a_bound_where_it_must(start):
    assert maximize_within(function, start, [0, 1, 2], BOUNDS) == pytest.approx([0.5, -2.075, 0.5], abs=1e-3)


def test_coordinates_that_are_not_free_are_kept_even_beyond_their_bounds():
    found = maximize_within(function, np.array([2.0, -1.0, 1.0]), [1], BOUNDS)
    assert found == pytest.approx([2.0, -2.3, 1.0], abs=1e-3)


def test_without_a_free_coordinate_nothing_moves():
    assert maximize_within(function, np.ones(3), [], BOUNDS).tolist() == [1.0, 1.0, 1.0]
