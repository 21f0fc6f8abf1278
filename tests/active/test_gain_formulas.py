"""Eq. 10 against divergences written out and integrated numerically."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, digamma
from scipy.stats import beta as beta_law
from scipy.stats import norm

from crowdrank.active.gain_formulas import (
    expected_gain,
    item_divergence,
    quality_divergence,
    quality_gain,
    quality_increments,
)
from crowdrank.online.moments import (
    answer_probability,
    score_derivatives,
    update_quality,
    variance_factor,
    win_probability,
)


def divergence(after, before, low, high):
    return quad(lambda x: after.pdf(x) * (after.logpdf(x) - before.logpdf(x)), low, high, epsabs=1e-13)[0]


def of_normals(shift, ratio, variance):
    return 0.5 * (ratio - 1 - np.log(ratio) + shift**2 / variance)


def of_betas(a, b, alpha, beta):
    apart = (a - alpha) * digamma(a) + (b - beta) * digamma(b) + (alpha + beta - a - b) * digamma(a + b)
    return betaln(alpha, beta) - betaln(a, b) + apart


def written_out(lead, u, v, alpha, beta, exploration):
    truthful = win_probability(lead, u + v)
    total = 0.0
    for side, c in ((1, truthful), (-1, 1 - truthful)):
        pulled, curvature = score_derivatives(side * lead, alpha, beta)
        taught = sum(of_normals(w * pulled, variance_factor(w, curvature), w) for w in (u, v))
        taught += exploration * of_betas(*update_quality(c, alpha, beta), alpha, beta)
        total += answer_probability(c, alpha, beta) * taught
    return total


def draw(count, seed=0):
    rng = np.random.default_rng(seed)
    u, v = 10 ** rng.uniform(-4, np.log10(9), (2, count))
    alpha, beta = 10 ** rng.uniform(np.log10(0.5), np.log10(200), (2, count))
    return rng.normal(0, 2, count), u, v, alpha, beta


@pytest.mark.parametrize("exploration", [0.0, 1.0, 10.0])
def test_expected_gain_is_eq_10(exploration):
    state = draw(1000)
    np.testing.assert_allclose(
        expected_gain(*state, exploration), written_out(*state, exploration), rtol=1e-9, atol=1e-11
    )


def test_changes_are_integrals_of_densities():
    pulled, curvature = score_derivatives(0.7, 3.0, 1.5)
    after = norm(0.8 * pulled, np.sqrt(0.8 * variance_factor(0.8, curvature)))
    assert item_divergence(0.8, pulled, curvature) == pytest.approx(
        divergence(after, norm(0, np.sqrt(0.8)), -9, 9), abs=1e-10
    )
    after = beta_law(*update_quality(0.8, 3.0, 1.5))
    assert quality_divergence(0.8, 3.0, 1.5) == pytest.approx(divergence(after, beta_law(3.0, 1.5), 0, 1), abs=1e-10)


def test_the_step_of_a_quality_is_that_of_the_moments():
    _, _, _, alpha, beta = draw(1000)
    truthful = np.random.default_rng(1).uniform(0.001, 0.999, 1000)
    a, b = update_quality(truthful, alpha, beta)
    np.testing.assert_allclose(quality_increments(truthful, alpha, beta), (a - alpha, b - beta), atol=1e-11)


def test_gain_is_the_same_the_other_way_round():
    lead, u, v, alpha, beta = draw(1000)
    gain = expected_gain(lead, u, v, alpha, beta, 2.0)
    np.testing.assert_allclose(expected_gain(-lead, v, u, alpha, beta, 2.0), gain, rtol=1e-11)
    np.testing.assert_allclose(expected_gain(lead, v, u, alpha, beta, 2.0), gain, rtol=1e-12)


def test_gain_is_the_same_of_who_tells_the_truth_as_often_as_another_lies():
    lead, u, v, alpha, beta = draw(1000)
    gain = expected_gain(lead, u, v, alpha, beta, 2.0)
    np.testing.assert_allclose(expected_gain(lead, u, v, beta, alpha, 2.0), gain, rtol=1e-10)


def test_nothing_is_learnt_of_a_quality_where_nobody_knows_the_answer():
    assert quality_gain(0.5, 10.0, 1.0) == pytest.approx(0, abs=1e-28)


def test_nothing_is_learnt_of_items_from_who_tosses_a_coin():
    assert expected_gain(0.4, 1.0, 2.0, 3.0, 3.0, 0.0) == pytest.approx(0, abs=1e-28)


def test_leads_beyond_all_measure_do_no_harm():
    assert np.all(np.isfinite(expected_gain(np.array([-1e4, 1e4]), 1.0, 1.0, 10.0, 1.0, 1.0)))
