"""Steps of EM that are extrapolated to their fixed point."""

import numpy as np
import pytest

from crowdrank.ltr.em import Secant

GOAL = np.array([2.0, -1.0])


def distance_after(steps, slope, secant):
    """Distance to the fixed point of a linear map, evaluated where the secant steps say."""
    x = np.zeros(2)
    for _ in range(steps):
        x = secant.next(x, GOAL + slope * (x - GOAL))
    return float(np.abs(x - GOAL).max())


@pytest.mark.parametrize("slope", [0.7, 0.9, -0.9])
def test_a_slow_or_oscillating_map_is_brought_to_its_fixed_point(slope):
    extrapolated = distance_after(12, slope, Secant((-1.0, 0.8), limit=5.0))
    assert extrapolated < 0.01
    assert extrapolated < 0.1 * np.abs(GOAL).max() * abs(slope) ** 12


def test_no_component_moves_further_beyond_the_map_than_the_limit():
    secant = Secant((-1.0, 0.8), limit=0.1, first_slope=0.8)
    x, y = np.zeros(2), np.array([1.0, 0.01])
    assert secant.next(x, y) == pytest.approx([1.1, 0.05])


def test_the_first_step_is_that_of_the_map():
    assert Secant((0.0, 0.8), limit=1.0).next(np.zeros(2), GOAL) == pytest.approx(GOAL)
