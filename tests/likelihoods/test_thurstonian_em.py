"""Monte Carlo EM of Thurstonian preferences: draws are of the posterior, slopes are slopes, Newton finds the top."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from crowdrank.models.thurstonian.layout import sights_of
from crowdrank.models.thurstonian.mcem_kernels import (
    LARGEST,
    LEAST,
    Draws,
    Latent,
    Parameters,
    bounded,
    hazard_of_number,
    log_joint,
    maximize,
    slopes,
    walk,
)

# One query of three items, two annotators, two domains.
ROWS = [(0, 1, 0), (1, 2, 0), (0, 2, 0), (0, 1, 1), (2, 1, 1), (0, 1, 0), (2, 0, 1)]
AT = Parameters(
    scores=np.array([1.0, 0.4, 0.0]),
    difficulty=np.array([0.8]),
    shares=np.array([0.4, 0.6]),
    expertise=np.array([[1.5, 0.6], [0.8, -1.2]]),
)


def sights_from(rows, starts=(0, 3)):
    winner, loser, who = np.array(rows, np.int32).reshape(-1, 3).T
    return sights_of(winner, loser, who, np.array(starts))


def latent_of(sights, at):
    return Latent(np.zeros(len(at.difficulty), np.int64), at.scores[sights.item].copy(), np.ones(len(sights.winner)))


def some_draws(rows=ROWS, starts=(0, 3), domains=2, count=5):
    sights, rng = sights_from(rows, starts), np.random.default_rng(2)
    seen = rng.normal(scale=1.5, size=(count, len(sights.item)))
    return sights, Draws(rng.integers(domains, size=(count, len(starts) - 1)), seen)


def posterior_by_weights(count=200_000):
    """Means of seen, seen² and of being in the second domain: the prior's draws weighed by both domains' likelihood."""
    rng, sights = np.random.default_rng(5), sights_from(ROWS)
    seen = AT.scores[sights.item] + np.sqrt(AT.difficulty) * rng.normal(size=(count, len(sights.item)))
    apart = (seen[:, sights.winner] - seen[:, sights.loser]) / np.sqrt(2)
    likely = np.stack([log_ndtr(AT.expertise[sights.annotator, m] * apart).sum(axis=1) for m in (0, 1)], axis=1)
    chance = AT.shares * np.exp(likely)
    weight = chance.sum(axis=1) / chance.sum()
    values = np.concatenate((seen, seen**2, (chance[:, 1:] / chance.sum(axis=1, keepdims=True))), axis=1)
    mean = weight @ values
    return mean, np.sqrt(weight**2 @ (values - mean) ** 2)


@pytest.fixture(scope="module")
def posterior():
    return posterior_by_weights()


def off(posterior, at=AT, rows=ROWS):
    """How many standard errors of both the worst moment of a long walk is off."""
    sights = sights_from(rows)
    draws = walk(np.random.default_rng(1), sights, at, latent_of(sights, at), 200, 40_000)
    values = np.concatenate((draws.seen, draws.seen**2, draws.domain == 1), axis=1)
    # batches long enough to hardly depend on each other
    batches = values.reshape(100, -1, values.shape[1]).mean(axis=1)
    mean, error = posterior
    ours = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    return np.max(np.abs(batches.mean(axis=0) - mean) / np.sqrt(ours**2 + error**2))


def test_the_e_step_draws_from_the_posterior(posterior):
    assert off(posterior) < 4


@pytest.mark.parametrize(
    "fault",
    [
        {"at": AT._replace(shares=np.array([0.5, 0.5]))},
        {"at": AT._replace(difficulty=AT.difficulty * 1.2)},
        {"at": AT._replace(expertise=np.abs(AT.expertise))},
        {"at": AT._replace(scores=AT.scores[::-1].copy())},
        {"rows": [(1, 0, 0), *ROWS[1:]]},
    ],
    ids=["shares", "difficulty", "a liar's sign", "scores", "a judgment turned"],
)
def test_an_e_step_with_a_fault_is_noticed(fault, posterior):
    """The negative control of the test above."""
    assert off(posterior, **fault) > 6


def test_a_query_without_judgments_is_in_any_domain():
    sights, rng = sights_from([(0, 1, 0)], (0, 2, 4)), np.random.default_rng(0)
    at = Parameters(np.zeros(4), np.ones(2), np.array([0.2, 0.5, 0.3]), np.array([[1.0, -2.0, 0.5]]))
    draws = walk(rng, sights, at, latent_of(sights, at), 0, 20_000)
    np.testing.assert_allclose(np.bincount(draws.domain[:, 1]) / 20_000, at.shares, atol=0.02)


def test_a_dead_domain_stays_dead():
    sights, rng = sights_from(ROWS), np.random.default_rng(0)
    at = AT._replace(shares=np.array([1.0, 0.0]))
    assert not walk(rng, sights, at, latent_of(sights, at), 0, 200).domain.any()


def test_a_walk_repeats_with_its_seed():
    sights = sights_from(ROWS)
    one, other = (walk(np.random.default_rng(4), sights, AT, latent_of(sights, AT), 3, 5) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.01, 30.0])
def test_slopes_are_those_of_finite_differences(factor):
    sights, draws = some_draws()
    expertise, step = factor * AT.expertise, 1e-5
    _, slope, bend = slopes(sights, draws, expertise)
    for k in range(2):
        for m in range(2):
            shift = np.zeros((2, 2))
            shift[k, m] = step
            (up, rising, _), (down, falling, _) = (slopes(sights, draws, expertise + e) for e in (shift, -shift))
            assert slope[k, m] == pytest.approx((up.sum() - down.sum()) / (2 * step), rel=1e-5, abs=1e-6)
            assert bend[k, m] == pytest.approx((rising[k, m] - falling[k, m]) / (2 * step), rel=1e-5, abs=1e-6)


def test_values_are_log_chances():
    sights, draws = some_draws()
    value, _, _ = slopes(sights, draws, AT.expertise)
    tau = AT.expertise[sights.annotator, draws.domain[:, [0]]]
    chance = norm.cdf(tau * (draws.seen[:, sights.winner] - draws.seen[:, sights.loser]) / np.sqrt(2))
    assert value.sum() == pytest.approx(np.log(chance).sum() / len(draws.seen))


@pytest.mark.parametrize("x", [8.0, 1.0, 0.0, -3.0, -34.9, -35.1])
def test_the_hazard_is_that_of_the_normal(x):
    assert hazard_of_number(x) == pytest.approx(np.exp(norm.logpdf(x) - norm.logcdf(x)), rel=1e-9)


@pytest.mark.parametrize("x", [-1e2, -1e4, -1e8])
def test_the_hazard_goes_with_its_argument_far_out(x):
    """Not to 12/√(2π), as is printed; by Mills's bounds, 1 < f(−x) / −x < 1 + x⁻²."""
    assert 1.0 <= hazard_of_number(x) / -x <= 1 + x**-2 + 1e-15


def test_newton_finds_the_top():
    sights, draws = some_draws(count=40)
    found = maximize(sights, draws, np.ones((2, 2)), 50)
    value, slope, bend = slopes(sights, draws, found)
    assert np.abs(slope).max() < 1e-8
    assert bend.max() < 0
    for shift in (0.01, -0.01):
        assert np.all(slopes(sights, draws, found + shift)[0] < value)


@pytest.mark.parametrize("start", [-90.0, -1.0, 0.01, 90.0])
def test_newton_gets_to_the_same_top_from_anywhere(start):
    sights, draws = some_draws(count=40)
    expected = maximize(sights, draws, np.ones((2, 2)), 50)
    np.testing.assert_allclose(maximize(sights, draws, np.full((2, 2), start), 80), expected, rtol=1e-6)


def test_a_step_is_no_longer_than_it_may_be():
    sights, draws = some_draws(count=40)
    start = np.full((2, 2), 5.0)
    assert np.abs(maximize(sights, draws, start, 1, longest=0.25) - start).max() == pytest.approx(0.25)


def test_unanimous_answers_send_expertise_to_its_bound_and_no_answers_leave_it():
    sights = sights_from([(0, 1, 0)] * 4)
    draws = Draws(np.zeros((3, 1), np.int64), np.tile([1.0, 0.0], (3, 1)))
    found = maximize(sights, draws, np.full((2, 2), 0.7), 60)
    assert LARGEST / 10 < found[0, 0] <= LARGEST
    np.testing.assert_array_equal(found.ravel()[1:], 0.7)


def test_expertise_is_kept_within_bounds_with_its_sign():
    found = bounded(np.array([0.0, -1e-9, 3.0, -1e9]))
    np.testing.assert_array_equal(found, [LEAST, -LEAST, 3.0, -LARGEST])


def test_the_joint_is_that_of_equation_6():
    starts = (0, 3, 5)
    sights, draws = some_draws([*ROWS, (3, 4, 0), (4, 3, 1)], starts)
    at = AT._replace(scores=np.append(AT.scores, [0.3, -0.2]), difficulty=np.array([0.8, 2.0]))
    query = (sights.item > 2).astype(int)
    total = 0.0
    for domain, seen in zip(*draws, strict=True):
        tau = at.expertise[sights.annotator, domain[query[sights.winner]]]
        total += np.log(at.shares[domain]).sum()
        total += norm.logpdf(seen, at.scores[sights.item], np.sqrt(at.difficulty[query])).sum()
        total += log_ndtr(tau * (seen[sights.winner] - seen[sights.loser]) / np.sqrt(2)).sum()
    assert log_joint(sights, draws, at) == pytest.approx(total / len(draws.seen))
