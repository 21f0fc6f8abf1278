"""Crowd-BT's moments: as printed in the paper, and against the posterior by numerical integration."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta as beta_distribution
from scipy.stats import norm

from crowdrank.online import moments
from crowdrank.online.moments import (
    answer_probability,
    exact_score_derivatives,
    score_derivatives,
    update_quality,
    variance_factor,
    win_probability,
    win_probability_taylor,
)

LEADS = (-3.0, -1.0, 0.0, 0.5, 2.0)
CROWDS = ((10.0, 1.0), (2.0, 1.0), (1.5, 6.0))


def printed(mu_i, mu_j, var_i, var_j, alpha, beta, kappa=1e-4):
    """Eq. 12 to 19 as printed (with e^μ where eq. 19 has s^μ): i was preferred to j."""
    ei, ej = math.exp(mu_i), math.exp(mu_j)
    step = alpha * ei / (alpha * ei + beta * ej) - ei / (ei + ej)
    curvature = alpha * ei * beta * ej / (alpha * ei + beta * ej) ** 2 - ei * ej / (ei + ej) ** 2
    c1 = ei / (ei + ej) + 0.5 * (var_i + var_j) * ei * ej * (ej - ei) / (ei + ej) ** 3
    c2 = 1 - c1
    c = (c1 * alpha + c2 * beta) / (alpha + beta)
    total = alpha + beta
    first = (c1 * (alpha + 1) * alpha + c2 * alpha * beta) / (c * (total + 1) * total)
    second = (c1 * (alpha + 2) * (alpha + 1) * alpha + c2 * (alpha + 1) * alpha * beta) / (
        c * (total + 2) * (total + 1) * total
    )
    return {
        "mean": (mu_i + var_i * step, mu_j - var_j * step),
        "variance": (var_i * max(1 + var_i * curvature, kappa), var_j * max(1 + var_j * curvature, kappa)),
        "chance": c,
        "truths": (first - second) * first / (second - first**2),
        "lies": (first - second) * (1 - first) / (second - first**2),
    }


def integrated(mu_i, mu_j, var_i, var_j, alpha, beta):
    """Means and variances of both scores and of quality after the answer, over a grid of both scores."""
    grids = []
    for mu, var in ((mu_i, var_i), (mu_j, var_j)):
        reach = 9 * math.sqrt(var)
        grids.append(np.linspace(mu - reach, mu + reach, 2 * math.ceil(reach / min(0.3, reach / 40)) + 1))
    si, sj = grids[0][:, None], grids[1][None, :]
    prior = norm.pdf(si, mu_i, math.sqrt(var_i)) * norm.pdf(sj, mu_j, math.sqrt(var_j))
    prior /= prior.sum()
    truthful = expit(si - sj)
    c1 = float((prior * truthful).sum())
    joint = prior * (alpha * truthful + beta * (1 - truthful))
    joint /= joint.sum()
    found = {"mean": [float((joint * s).sum()) for s in (si, sj)]}
    found["variance"] = [float((joint * (s - m) ** 2).sum()) for s, m in zip((si, sj), found["mean"], strict=True)]

    def of_quality(power):
        density = beta_distribution(alpha, beta).pdf
        return quad(lambda q: q**power * (q * c1 + (1 - q) * (1 - c1)) * density(q), 0, 1, epsabs=1e-13)[0]

    whole, first, second = (of_quality(power) for power in range(3))
    found["quality"] = [first / whole, second / whole - (first / whole) ** 2]
    found["truthful"] = c1
    return found


def ours(mu_i, mu_j, var_i, var_j, alpha, beta, how):
    lead, both = mu_i - mu_j, var_i + var_j
    if how == "exact":
        pulled, curvature, truthful = exact_score_derivatives(lead, both, alpha, beta)
    else:
        pulled, curvature = score_derivatives(lead, alpha, beta)
        truthful = (win_probability_taylor if how == "taylor" else win_probability)(lead, both)
    truths, lies = update_quality(truthful, alpha, beta)
    return {
        "mean": (mu_i + var_i * pulled, mu_j - var_j * pulled),
        "variance": (var_i * variance_factor(var_i, curvature), var_j * variance_factor(var_j, curvature)),
        "chance": answer_probability(truthful, alpha, beta),
        "truths": truths,
        "lies": lies,
        "truthful": truthful,
    }


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("variances", [(0.1, 0.4), (1.0, 1.0), (2.0, 0.3)])
def test_the_closed_form_is_as_printed(crowd, variances):
    for lead in LEADS:
        expected = printed(0.3 + lead, 0.3, *variances, *crowd)
        found = ours(0.3 + lead, 0.3, *variances, *crowd, "taylor")
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("slip", ["wrong sign", "twice the variance", "truths and lies exchanged"])
def test_a_slip_in_a_formula_would_be_noticed(slip):
    """The negative control of the test above."""
    lead, variances, crowd = 0.7, (0.3, 0.4), (10.0, 1.0)
    mean = {
        "wrong sign": ours(-lead, 0.0, *variances, *crowd, "taylor"),
        "twice the variance": ours(lead, 0.0, 0.6, 0.8, *crowd, "taylor"),
        "truths and lies exchanged": ours(lead, 0.0, *variances, *crowd[::-1], "taylor"),
    }[slip]["mean"]
    assert abs(mean[0] - printed(lead, 0.0, *variances, *crowd)["mean"][0]) > 1e-3


@pytest.mark.parametrize("variances", [(0.01, 0.02), (0.5, 0.5), (4.0, 0.1), (50.0, 50.0), (100.0, 1.0)])
@pytest.mark.parametrize("crowd", CROWDS)
def test_the_exact_moments_are_those_of_the_posterior(crowd, variances):
    for lead in (-4.0, 0.0, 2.5):
        true, found = integrated(lead, 0.0, *variances, *crowd), ours(lead, 0.0, *variances, *crowd, "exact")
        np.testing.assert_allclose(found["mean"], true["mean"], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found["variance"], true["variance"], rtol=1e-6)
        np.testing.assert_allclose(found["truthful"], true["truthful"], rtol=1e-6)
        matched = beta_distribution(found["truths"], found["lies"])
        np.testing.assert_allclose((matched.mean(), matched.var()), true["quality"], rtol=1e-6)


@pytest.mark.parametrize("variance", [0.05, 0.1, 0.2])
def test_the_closed_form_is_within_two_percent_for_small_variances(variance):
    """Leads up to 1 either way: shifts within 2 % of a standard deviation, variances, and the mean of quality."""
    for lead, crowd in product((-1.0, 0.0, 1.0), CROWDS):
        for how in ("stable", "taylor"):
            found = ours(lead, 0.0, variance, variance, *crowd, how)
            true = ours(lead, 0.0, variance, variance, *crowd, "exact")
            np.testing.assert_allclose(found["mean"], true["mean"], atol=0.02 * math.sqrt(variance))
            np.testing.assert_allclose(found["variance"], true["variance"], rtol=0.02)
            quality = [q["truths"] / (q["truths"] + q["lies"]) for q in (found, true)]
            assert quality[0] == pytest.approx(quality[1], rel=0.02)


def test_the_closed_form_is_not_for_large_variances():
    """With beliefs this far apart, the closed form inflates the variance, although the posterior is hardly wider."""
    closed, exact = (ours(-2.3, 0.0, 50.0, 50.0, 10.0, 1.0, how)["variance"][0] for how in ("stable", "exact"))
    assert closed > 400
    assert exact < 55


@pytest.mark.parametrize("variance", [4.0, 20.0, 50.0, 100.0])
def test_everything_stays_within_bounds(variance):
    for lead, crowd in product((-40.0, -5.0, 0.0, 1.0, 30.0, 900.0), (*CROWDS, (1000.0, 0.01), (0.01, 0.01))):
        for how in ("stable", "exact"):
            found = ours(lead, 0.0, variance, 4.0, *crowd, how)
            assert np.all(np.isfinite(found["mean"]))
            assert 0 <= found["truthful"] <= 1
            assert 0 <= found["chance"] <= 1
            assert found["truths"] > 0
            assert found["lies"] > 0
            assert found["truths"] + found["lies"] <= sum(crowd) + 1 + 1e-12
            for before, after in zip((variance, 4.0), found["variance"], strict=True):
                assert after > 0
                assert after <= before * (1 + before / 4)
            if how == "exact":  # the more certain score must not move by more than its share
                assert found["variance"][0] >= variance * 4.0 / (variance + 4.0)


def test_the_taylor_series_leaves_its_bounds_and_the_stable_form_does_not():
    assert win_probability_taylor(-2.0, 40.0) > 1 > win_probability(-2.0, 40.0) > 0
    assert win_probability_taylor(2.0, 40.0) < 0 < win_probability(2.0, 40.0) < 1


@pytest.mark.parametrize("variance", [0.5, 2.0, 10.0, 100.0, 200.0])
def test_the_stable_form_is_within_one_and_a_half_percent(variance):
    for lead in np.linspace(-12, 12, 25):
        assert win_probability(lead, variance) == pytest.approx(
            exact_score_derivatives(lead, variance, 2.0, 1.0)[2], abs=0.015
        )


def test_an_answer_of_a_random_annotator_moves_no_score():
    for lead, variance in product(LEADS, (0.1, 10.0)):
        for moved in (score_derivatives(lead, 3.0, 3.0), exact_score_derivatives(lead, variance, 3.0, 3.0)[:2]):
            np.testing.assert_allclose(moved, 0.0, atol=1e-15)


def test_a_reversed_annotator_is_a_truthful_one_who_says_the_opposite():
    for lead, (truths, lies) in product(LEADS, CROWDS):
        for as_said, turned in (
            (score_derivatives(lead, truths, lies), score_derivatives(-lead, lies, truths)),
            (
                exact_score_derivatives(lead, 3.0, truths, lies)[:2],
                exact_score_derivatives(-lead, 3.0, lies, truths)[:2],
            ),
        ):
            np.testing.assert_allclose(turned, (-as_said[0], as_said[1]), rtol=1e-12, atol=1e-15)


def test_quality_keeps_its_digits_after_very_many_answers():
    """Var η is a difference of close numbers here; α + β must not lose digits."""
    truths, lies = update_quality(0.5, 9e9, 1e9)
    assert truths + lies == pytest.approx(1e10, rel=1e-9)
    assert truths / (truths + lies) == pytest.approx(0.9, abs=1e-12)


def test_arrays_give_what_numbers_give():
    leads = np.array(LEADS)
    whole = score_derivatives(leads, 10.0, 1.0)
    np.testing.assert_array_equal(np.transpose(whole), [score_derivatives(lead, 10.0, 1.0) for lead in LEADS])
    np.testing.assert_array_equal(win_probability(leads, 2.0), [win_probability(lead, 2.0) for lead in LEADS])


@pytest.mark.parametrize("how", [(False, False), (False, True), (True, False)], ids=["stable", "taylor", "exact"])
def test_the_loop_runs_plain_and_compiled_alike(how):
    rng = np.random.default_rng(3)
    left = rng.integers(8, size=200).astype(np.int32)
    right = ((left + rng.integers(1, 8, size=200)) % 8).astype(np.int32)
    outcome, who = rng.integers(-1, 2, size=200).astype(np.int8), rng.integers(3, size=200).astype(np.int32)
    weight = rng.choice([0.3, 1.0, 2.5], 200)
    states = []
    for run in (moments.fold, moments.fold.function):
        state = np.zeros(8), np.ones(8), np.full(3, 4.0), np.ones(3)
        run(left, right, outcome, who, weight, *state, *how, True)
        states.append(np.concatenate(state))
    np.testing.assert_allclose(*states, rtol=1e-12)
