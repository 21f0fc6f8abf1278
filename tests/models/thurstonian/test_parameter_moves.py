"""Moves of expertise and of common factors: derivatives, and draws from a known posterior."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.models.thurstonian.gibbs import Prior, make_state
from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.parameter_moves import (
    FactorPrior,
    _expertise_log_posterior,
    _factor_log_posterior,
    scale_move,
)

ROWS = [(0, 1, 0), (1, 0, 0), (0, 1, 1), (2, 3, 0), (3, 2, 1), (2, 3, 1)]
LAYOUT = build_layout(*np.array(ROWS, np.int32).T, np.array([0, 2, 4]))
PRIOR = Prior(expertise_mean=0.5, expertise_std=1.2).broadcast(2, 3)
RNG = np.random.default_rng(6)
STATE = make_state(
    LAYOUT,
    RNG.normal(size=4),
    RNG.normal(size=len(LAYOUT.utility_item)),
    np.ones(2),
    np.array([2, 0]),
    RNG.normal(size=(2, 3)),
    np.full(3, 1 / 3),
    np.ones(1),
)


def log_posterior(tau):
    """Log posterior of every annotator in every domain, from the formula."""
    total = -0.5 * ((tau - 0.5) / 1.2) ** 2
    domain = STATE.domain[np.repeat([0, 1], np.diff(LAYOUT.judgment_starts))]
    difference = (STATE.perceived[LAYOUT.winner_utility] - STATE.perceived[LAYOUT.loser_utility]) / np.sqrt(2)
    np.add.at(total, (LAYOUT.annotator, domain), log_ndtr(tau[LAYOUT.annotator, domain] * difference))
    return total


def derivatives(tau):
    parts = np.zeros((3, 2, 3))
    _expertise_log_posterior(LAYOUT, PRIOR, STATE, tau, *parts)
    return parts


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
def test_the_log_posterior_of_expertise_has_the_right_derivatives(scale):
    tau, step = scale * STATE.expertise, 1e-3
    value, gradient, curvature = derivatives(tau)
    low, here, high = (log_posterior(tau + n * step) for n in (-1, 0, 1))
    np.testing.assert_allclose(value, here, atol=1e-7)
    np.testing.assert_allclose(gradient, (high - low) / (2 * step), atol=1e-4)
    np.testing.assert_allclose(curvature, -(high - 2 * here + low) / step**2, atol=1e-3)


def test_without_judgments_the_prior_remains():
    value, gradient, curvature = derivatives(np.zeros((2, 3)))[:, :, 1]
    np.testing.assert_allclose(value, -0.5 * (0.5 / 1.2) ** 2)
    np.testing.assert_allclose(gradient, 0.5 / 1.2**2)
    np.testing.assert_allclose(curvature, 1 / 1.2**2)


FIXED, SCALED = np.array([0.3, -1.0, 2.0, 0.0]), np.array([1.0, 0.7, -0.4, 1.5])
FACTOR_PRIORS = [FactorPrior(-0.8, 0.5, 3.0, 0.0), FactorPrior(0.0, 0.0, -2.0, 1.5)]


def factor_log_posterior(prior, log_factor):
    f = np.exp(log_factor)
    log_likelihood = log_ndtr(FIXED + np.multiply.outer(f, SCALED)).sum(axis=-1)
    return (
        log_likelihood + prior.square * f**2 + prior.linear * f + prior.log * log_factor - prior.inverse_square / f**2
    )


@pytest.mark.parametrize("prior", FACTOR_PRIORS)
@pytest.mark.parametrize("at", [-0.7, 0.0, 0.6])
def test_the_log_posterior_of_a_factor_has_the_right_derivatives(prior, at):
    value, gradient, curvature = _factor_log_posterior(FIXED, SCALED, prior, at)
    step = 1e-3
    low, here, high = (factor_log_posterior(prior, at + n * step) for n in (-1, 0, 1))
    assert value == pytest.approx(here, abs=1e-7)
    assert gradient == pytest.approx((high - low) / (2 * step), abs=1e-3)
    # the curvature leaves out the terms that may be negative
    assert curvature > 0


@pytest.mark.parametrize("prior", FACTOR_PRIORS)
def test_scale_moves_sample_the_posterior(prior):
    """Repeated moves: each multiplies the scaled part and the prior."""
    rng, at, draws = np.random.default_rng(1), 0.0, []
    for _ in range(4000):
        f = math.exp(at)
        here = FactorPrior(prior.square * f**2, prior.linear * f, prior.log, prior.inverse_square / f**2)
        at += math.log(scale_move(rng, FIXED, f * SCALED, here))
        draws.append(at)
    grid = np.linspace(-6, 4, 4001)
    weight = np.exp(factor_log_posterior(prior, grid) - factor_log_posterior(prior, grid).max())
    weight /= weight.sum()
    mean = weight @ grid
    std = np.sqrt(weight @ (grid - mean) ** 2)
    assert np.mean(draws) == pytest.approx(mean, abs=0.12 * std)
    assert np.std(draws) == pytest.approx(std, rel=0.1)


def test_a_step_that_is_too_long_is_rejected():
    assert scale_move(np.random.default_rng(0), np.zeros(0), np.zeros(0), FactorPrior(0.0, 0.0, 1e4, 0.0)) == 1.0
