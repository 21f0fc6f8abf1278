"""The Gaussian approximation of one query: its algebra is that of dense matrices, and it is near the posterior."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.models.thurstonian import query_posterior
from crowdrank.models.thurstonian.layout import sights_of
from crowdrank.models.thurstonian.query_posterior import approximate, log_posterior, place

# The second query has items 3 to 6; annotator 1 judged only two of them, and annotator 2 has no expertise.
ROWS = [
    (0, 1, 0),
    (2, 0, 1),
    (3, 4, 0),
    (4, 5, 0),
    (3, 6, 0),
    (5, 6, 0),
    (4, 3, 1),
    (4, 3, 1),
    (5, 6, 2),
    (6, 4, 3),
    (3, 5, 3),
    (3, 4, 3),
]
SIGHTS = sights_of(*np.array(ROWS, np.int32).T, np.array([0, 3, 7]))
QUERY, ITEMS = 1, 4
SLOPE = np.array([0.9, -0.6, 0.0, 1.4])
SPREAD, BLUR = 2.5, 0.7
FIRST_ROW, LOW = SIGHTS.judgment_starts[QUERY], SIGHTS.sight_starts[3]
UTILITIES = len(SIGHTS.item) - LOW
SIZE = ITEMS + UTILITIES
APPROXIMATION = approximate(SIGHTS, QUERY, SLOPE, SPREAD, BLUR)


def margins():
    """Each judgment's margin as a row of weights of scores and perceived utilities."""
    rows = np.zeros((len(ROWS) - FIRST_ROW, SIZE))
    for place_, row in enumerate(range(FIRST_ROW, len(ROWS))):
        steep = SLOPE[SIGHTS.annotator[row]]
        rows[place_, ITEMS + SIGHTS.winner[row] - LOW] = steep
        rows[place_, ITEMS + SIGHTS.loser[row] - LOW] = -steep
    return rows


def prior_precision():
    blur = np.eye(UTILITIES, SIZE, ITEMS) - np.eye(ITEMS, SIZE)[SIGHTS.item[LOW:] - 3]
    return np.diag(np.r_[np.full(ITEMS, 1 / SPREAD), np.zeros(UTILITIES)]) + blur.T @ blur / BLUR


def made_of(noise, approximation=APPROXIMATION):
    scores, seen = np.empty(ITEMS), np.empty(UTILITIES)
    density = place(SIGHTS, approximation, np.array(noise, np.float64), scores, seen, True)
    return np.concatenate((scores, seen)), density


def moments():
    """Mean and covariance of what is drawn: a linear map of the noise."""
    mean, _ = made_of(np.zeros(SIZE))
    root = np.stack([made_of(unit)[0] - mean for unit in np.eye(SIZE)], axis=1)
    return mean, root @ root.T


def test_blocks_are_the_algebra_of_dense_matrices():
    """Factors that are set, not fitted: precisions and means add up."""
    rng = np.random.default_rng(2)
    sites = rng.random((2, len(ROWS) - FIRST_ROW)) + 0.1
    q = approximate(SIGHTS, QUERY, SLOPE, SPREAD, BLUR)
    query_posterior._assemble(SIGHTS, SLOPE, sites, q)
    precision = prior_precision() + margins().T @ (sites[0][:, None] * margins())
    mean, density = made_of(np.zeros(SIZE), q)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, margins().T @ sites[1]))
    assert density == pytest.approx(0.5 * np.linalg.slogdet(precision)[1])
    np.testing.assert_allclose(q.covariance, np.linalg.inv(precision)[:ITEMS, :ITEMS])


def test_noise_makes_a_point_and_the_point_gives_the_noise_back():
    noise = np.random.default_rng(3).normal(size=SIZE)
    point, density = made_of(noise)
    back = np.empty(SIZE)
    scores, seen = point[:ITEMS].copy(), point[ITEMS:].copy()
    assert place(SIGHTS, APPROXIMATION, back, scores, seen, False) == pytest.approx(density)
    np.testing.assert_allclose(back, noise)
    np.testing.assert_array_equal(np.concatenate((scores, seen)), point)
    mean, covariance = moments()
    apart = point - mean
    expected = -0.5 * (apart @ np.linalg.solve(covariance, apart) + np.linalg.slogdet(covariance)[1])
    assert density == pytest.approx(expected)


def test_the_log_posterior_is_the_formula():
    point = np.random.default_rng(4).normal(size=SIZE)
    prior = prior_precision()
    expected = log_ndtr(margins() @ point).sum() - 0.5 * point @ prior @ point + 0.5 * np.linalg.slogdet(prior)[1]
    found = log_posterior(SIGHTS, QUERY, SLOPE, APPROXIMATION, point[:ITEMS], point[ITEMS:])
    assert found == pytest.approx(expected, abs=1e-6)


def test_moments_and_evidence_are_near_those_of_the_posterior():
    """By importance sampling: draws from the prior, weighed by their likelihood."""
    rng = np.random.default_rng(5)
    draws = rng.multivariate_normal(np.zeros(SIZE), np.linalg.inv(prior_precision()), 200_000, method="cholesky")
    weight = np.exp(log_ndtr(draws @ margins().T).sum(axis=1))
    mean, covariance = moments()
    expected = np.average(draws, axis=0, weights=weight)
    spread = np.sqrt(np.average((draws - expected) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(mean, expected, atol=0.05 * spread.max())
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), spread, rtol=0.05)
    point, density = made_of(np.zeros(SIZE))
    evidence = log_posterior(SIGHTS, QUERY, SLOPE, APPROXIMATION, point[:ITEMS], point[ITEMS:]) - density
    assert evidence == pytest.approx(np.log(weight.mean()), abs=0.5)


def test_a_query_without_judgments_is_its_prior():
    sights = sights_of(*np.array(ROWS[:2], np.int32).T, np.array([0, 3, 5]))
    nothing = approximate(sights, 1, SLOPE, SPREAD, BLUR)
    np.testing.assert_allclose(nothing.mean, np.zeros(2))
    np.testing.assert_allclose(nothing.covariance, SPREAD * np.eye(2))
