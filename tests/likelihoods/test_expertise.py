"""Moves of τ: the slopes that steer them."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.models.thurstonian.expertise_moves import _expertise_curvature
from crowdrank.models.thurstonian.gibbs import Beliefs, ready
from crowdrank.models.thurstonian.layout import sights_of

ROWS = [(0, 1, 0), (1, 0, 0), (0, 1, 1), (2, 3, 0), (3, 2, 1), (2, 3, 1)]
SIGHTS = sights_of(*np.array(ROWS, np.int32).T, np.array([0, 2, 4]))
BELIEFS = Beliefs(expertise=0.5, expertise_spread=1.2).of(2, 3)
RNG = np.random.default_rng(6)
STATE = ready(
    SIGHTS,
    RNG.normal(size=4),
    RNG.normal(size=len(SIGHTS.item)),
    np.ones(2),
    np.array([2, 0]),
    RNG.normal(size=(2, 3)),
    np.full(3, 1 / 3),
    np.ones(1),
)


def log_posterior(tau):
    """Of every annotator in every domain, from the formula."""
    total = -0.5 * ((tau - 0.5) / 1.2) ** 2
    domain = STATE.domain[np.repeat([0, 1], np.diff(SIGHTS.judgment_starts))]
    apart = (STATE.seen[SIGHTS.winner] - STATE.seen[SIGHTS.loser]) / np.sqrt(2)
    np.add.at(total, (SIGHTS.annotator, domain), log_ndtr(tau[SIGHTS.annotator, domain] * apart))
    return total


def bend(tau):
    parts = np.zeros((3, 2, 3))
    _expertise_curvature(SIGHTS, BELIEFS, STATE, tau, *parts)
    return parts


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
def test_value_slope_and_bend_are_those_of_the_formula(scale):
    tau, step = scale * STATE.expertise, 1e-3
    value, slope, bent = bend(tau)
    low, here, high = (log_posterior(tau + n * step) for n in (-1, 0, 1))
    np.testing.assert_allclose(value, here, atol=1e-7)
    np.testing.assert_allclose(slope, (high - low) / (2 * step), atol=1e-4)
    np.testing.assert_allclose(bent, -(high - 2 * here + low) / step**2, atol=1e-3)


def test_where_nobody_judged_the_prior_speaks():
    value, slope, bent = bend(np.zeros((2, 3)))[:, :, 1]
    np.testing.assert_allclose(value, -0.5 * (0.5 / 1.2) ** 2)
    np.testing.assert_allclose(slope, 0.5 / 1.2**2)
    np.testing.assert_allclose(bent, 1 / 1.2**2)
