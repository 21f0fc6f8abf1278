"""One factor for much at once: slopes, and draws of a posterior of one dimension that is known."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.models.thurstonian.expertise_moves import Powers, _scale_curvature, stretch

FIXED, MOVED = np.array([0.3, -1.0, 2.0, 0.0]), np.array([1.0, 0.7, -0.4, 1.5])
PRIORS = [Powers(-0.8, 0.5, 3.0, 0.0), Powers(0.0, 0.0, -2.0, 1.5)]


def log_posterior(prior, log_factor):
    f = np.exp(log_factor)
    likely = log_ndtr(FIXED + np.multiply.outer(f, MOVED)).sum(axis=-1)
    return likely + prior.square * f**2 + prior.plain * f + prior.log * log_factor - prior.inverse_square / f**2


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("at", [-0.7, 0.0, 0.6])
def test_value_slope_and_bend_are_those_of_the_formula(prior, at):
    value, slope, bent = _scale_curvature(FIXED, MOVED, prior, at)
    step = 1e-3
    low, here, high = (log_posterior(prior, at + n * step) for n in (-1, 0, 1))
    assert value == pytest.approx(here, abs=1e-7)
    assert slope == pytest.approx((high - low) / (2 * step), abs=1e-3)
    # slopes by log f leave something out that may bend up; what is left bends down
    assert bent > 0


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_are_of_the_posterior(prior):
    """Steps one after another: each multiplies what is moved, and the prior with it."""
    rng, at, drawn = np.random.default_rng(1), 0.0, []
    for _ in range(4000):
        f = math.exp(at)
        here = Powers(prior.square * f**2, prior.plain * f, prior.log, prior.inverse_square / f**2)
        at += math.log(stretch(rng, FIXED, f * MOVED, here))
        drawn.append(at)
    grid = np.linspace(-6, 4, 4001)
    weight = np.exp(log_posterior(prior, grid) - log_posterior(prior, grid).max())
    weight /= weight.sum()
    mean = weight @ grid
    spread = np.sqrt(weight @ (grid - mean) ** 2)
    assert np.mean(drawn) == pytest.approx(mean, abs=0.12 * spread)
    assert np.std(drawn) == pytest.approx(spread, rel=0.1)


def test_a_step_too_far_is_not_taken():
    assert stretch(np.random.default_rng(0), np.zeros(0), np.zeros(0), Powers(0.0, 0.0, 1e4, 0.0)) == 1.0
