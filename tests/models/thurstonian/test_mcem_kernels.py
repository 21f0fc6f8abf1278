"""Loops of the Monte Carlo EM: the E-step samples the posterior, derivatives are right, Newton converges."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.mcem import (
    MAX_EXPERTISE,
    MIN_EXPERTISE,
    Draws,
    Latent,
    Parameters,
    clip_expertise,
    e_step,
    expertise_derivatives,
    inverse_mills_scalar,
    log_joint,
    update_expertise,
)

# One query of three items, two annotators, two domains.
ROWS = [(0, 1, 0), (1, 2, 0), (0, 2, 0), (0, 1, 1), (2, 1, 1), (0, 1, 0), (2, 0, 1)]
PARAMETERS = Parameters(
    scores=np.array([1.0, 0.4, 0.0]),
    difficulty=np.array([0.8]),
    domain_probs=np.array([0.4, 0.6]),
    expertise=np.array([[1.5, 0.6], [0.8, -1.2]]),
)


def layout_from(rows, starts=(0, 3)):
    winner, loser, who = np.array(rows, np.int32).reshape(-1, 3).T
    return build_layout(winner, loser, who, np.array(starts))


def latent_of(layout, parameters):
    return Latent(
        np.zeros(len(parameters.difficulty), np.int64),
        parameters.scores[layout.utility_item].copy(),
        np.ones(len(layout.winner_utility)),
    )


def some_draws(rows=ROWS, starts=(0, 3), domains=2, count=5):
    layout, rng = layout_from(rows, starts), np.random.default_rng(2)
    perceived = rng.normal(scale=1.5, size=(count, len(layout.utility_item)))
    return layout, Draws(rng.integers(domains, size=(count, len(starts) - 1)), perceived)


def posterior_by_weights(count=200_000):
    """Posterior means of utilities, their squares and the second domain, by importance sampling."""
    rng, layout = np.random.default_rng(5), layout_from(ROWS)
    perceived = PARAMETERS.scores[layout.utility_item] + np.sqrt(PARAMETERS.difficulty) * rng.normal(
        size=(count, len(layout.utility_item))
    )
    difference = (perceived[:, layout.winner_utility] - perceived[:, layout.loser_utility]) / np.sqrt(2)
    log_likelihood = np.stack(
        [log_ndtr(PARAMETERS.expertise[layout.annotator, m] * difference).sum(axis=1) for m in (0, 1)], axis=1
    )
    joint = PARAMETERS.domain_probs * np.exp(log_likelihood)
    weight = joint.sum(axis=1) / joint.sum()
    values = np.concatenate((perceived, perceived**2, (joint[:, 1:] / joint.sum(axis=1, keepdims=True))), axis=1)
    mean = weight @ values
    return mean, np.sqrt(weight**2 @ (values - mean) ** 2)


@pytest.fixture(scope="module")
def posterior():
    return posterior_by_weights()


def deviation(posterior, parameters=PARAMETERS, rows=ROWS):
    """Largest deviation of a moment of a long E-step, in standard errors of both samples."""
    layout = layout_from(rows)
    draws = e_step(np.random.default_rng(1), layout, parameters, latent_of(layout, parameters), 200, 40_000)
    values = np.concatenate((draws.perceived, draws.perceived**2, draws.domain == 1), axis=1)
    # batches long enough to be almost independent
    batches = values.reshape(100, -1, values.shape[1]).mean(axis=1)
    mean, error = posterior
    ours = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    return np.max(np.abs(batches.mean(axis=0) - mean) / np.sqrt(ours**2 + error**2))


def test_the_e_step_draws_from_the_posterior(posterior):
    assert deviation(posterior) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"parameters": PARAMETERS._replace(domain_probs=np.array([0.5, 0.5]))},
        {"parameters": PARAMETERS._replace(difficulty=PARAMETERS.difficulty * 1.2)},
        {"parameters": PARAMETERS._replace(expertise=np.abs(PARAMETERS.expertise))},
        {"parameters": PARAMETERS._replace(scores=PARAMETERS.scores[::-1].copy())},
        {"rows": [(1, 0, 0), *ROWS[1:]]},
    ],
    ids=["domain_probs", "difficulty", "a reversed annotator's sign", "scores", "a reversed judgment"],
)
def test_a_faulty_e_step_is_detected(fault, posterior):
    """Negative control of the previous test."""
    assert deviation(posterior, **fault) > 6


def test_a_query_without_judgments_follows_the_prior():
    layout, rng = layout_from([(0, 1, 0)], (0, 2, 4)), np.random.default_rng(0)
    parameters = Parameters(np.zeros(4), np.ones(2), np.array([0.2, 0.5, 0.3]), np.array([[1.0, -2.0, 0.5]]))
    draws = e_step(rng, layout, parameters, latent_of(layout, parameters), 0, 20_000)
    np.testing.assert_allclose(np.bincount(draws.domain[:, 1]) / 20_000, parameters.domain_probs, atol=0.02)


def test_a_domain_of_probability_zero_stays_empty():
    layout, rng = layout_from(ROWS), np.random.default_rng(0)
    parameters = PARAMETERS._replace(domain_probs=np.array([1.0, 0.0]))
    assert not e_step(rng, layout, parameters, latent_of(layout, parameters), 0, 200).domain.any()


def test_an_e_step_is_reproducible():
    layout = layout_from(ROWS)
    one, other = (
        e_step(np.random.default_rng(4), layout, PARAMETERS, latent_of(layout, PARAMETERS), 3, 5) for _ in range(2)
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.01, 30.0])
def test_derivatives_agree_with_finite_differences(factor):
    layout, draws = some_draws()
    expertise, step = factor * PARAMETERS.expertise, 1e-5
    _, gradient, curvature = expertise_derivatives(layout, draws, expertise)
    for k in range(2):
        for m in range(2):
            shift = np.zeros((2, 2))
            shift[k, m] = step
            (up, rising, _), (down, falling, _) = (
                expertise_derivatives(layout, draws, expertise + e) for e in (shift, -shift)
            )
            assert gradient[k, m] == pytest.approx((up.sum() - down.sum()) / (2 * step), rel=1e-5, abs=1e-6)
            assert curvature[k, m] == pytest.approx((rising[k, m] - falling[k, m]) / (2 * step), rel=1e-5, abs=1e-6)


def test_values_are_log_probabilities():
    layout, draws = some_draws()
    value, _, _ = expertise_derivatives(layout, draws, PARAMETERS.expertise)
    tau = PARAMETERS.expertise[layout.annotator, draws.domain[:, [0]]]
    joint = norm.cdf(
        tau * (draws.perceived[:, layout.winner_utility] - draws.perceived[:, layout.loser_utility]) / np.sqrt(2)
    )
    assert value.sum() == pytest.approx(np.log(joint).sum() / len(draws.perceived))


@pytest.mark.parametrize("x", [8.0, 1.0, 0.0, -3.0, -34.9, -35.1])
def test_the_inverse_mills_ratio_is_that_of_the_normal(x):
    assert inverse_mills_scalar(x) == pytest.approx(np.exp(norm.logpdf(x) - norm.logcdf(x)), rel=1e-9)


@pytest.mark.parametrize("x", [-1e2, -1e4, -1e8])
def test_the_inverse_mills_ratio_approaches_its_argument_in_the_tail(x):
    """Not to 12/√(2π), as is printed; by Mills's bounds, 1 < f(−x) / −x < 1 + x⁻²."""
    assert 1.0 <= inverse_mills_scalar(x) / -x <= 1 + x**-2 + 1e-15


def test_newton_finds_the_optimum():
    layout, draws = some_draws(count=40)
    found = update_expertise(layout, draws, np.ones((2, 2)), 50)
    value, gradient, curvature = expertise_derivatives(layout, draws, found)
    assert np.abs(gradient).max() < 1e-8
    assert curvature.max() < 0
    for shift in (0.01, -0.01):
        assert np.all(expertise_derivatives(layout, draws, found + shift)[0] < value)


@pytest.mark.parametrize("start", [-90.0, -1.0, 0.01, 90.0])
def test_newton_finds_the_same_optimum_from_any_start(start):
    layout, draws = some_draws(count=40)
    expected = update_expertise(layout, draws, np.ones((2, 2)), 50)
    np.testing.assert_allclose(update_expertise(layout, draws, np.full((2, 2), start), 80), expected, rtol=1e-6)


def test_a_step_is_at_most_max_step_long():
    layout, draws = some_draws(count=40)
    start = np.full((2, 2), 5.0)
    assert np.abs(update_expertise(layout, draws, start, 1, max_step=0.25) - start).max() == pytest.approx(0.25)


def test_unanimous_answers_send_expertise_to_its_bound_and_no_answers_leave_it_unchanged():
    layout = layout_from([(0, 1, 0)] * 4)
    draws = Draws(np.zeros((3, 1), np.int64), np.tile([1.0, 0.0], (3, 1)))
    found = update_expertise(layout, draws, np.full((2, 2), 0.7), 60)
    assert MAX_EXPERTISE / 10 < found[0, 0] <= MAX_EXPERTISE
    np.testing.assert_array_equal(found.ravel()[1:], 0.7)


def test_expertise_is_kept_within_bounds_with_its_sign():
    found = clip_expertise(np.array([0.0, -1e-9, 3.0, -1e9]))
    np.testing.assert_array_equal(found, [MIN_EXPERTISE, -MIN_EXPERTISE, 3.0, -MAX_EXPERTISE])


def test_the_joint_density_is_equation_6():
    starts = (0, 3, 5)
    layout, draws = some_draws([*ROWS, (3, 4, 0), (4, 3, 1)], starts)
    parameters = PARAMETERS._replace(scores=np.append(PARAMETERS.scores, [0.3, -0.2]), difficulty=np.array([0.8, 2.0]))
    query = (layout.utility_item > 2).astype(int)
    total = 0.0
    for domain, perceived in zip(*draws, strict=True):
        tau = parameters.expertise[layout.annotator, domain[query[layout.winner_utility]]]
        total += np.log(parameters.domain_probs[domain]).sum()
        total += norm.logpdf(
            perceived, parameters.scores[layout.utility_item], np.sqrt(parameters.difficulty[query])
        ).sum()
        total += log_ndtr(tau * (perceived[layout.winner_utility] - perceived[layout.loser_utility]) / np.sqrt(2)).sum()
    assert log_joint(layout, draws, parameters) == pytest.approx(total / len(draws.perceived))
