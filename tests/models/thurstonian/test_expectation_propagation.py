"""The Gaussian approximation of one query: it agrees with dense matrices and is close to the posterior."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from crowdrank.models.thurstonian import expectation_propagation
from crowdrank.models.thurstonian.expectation_propagation import approximate, log_posterior, transform
from crowdrank.models.thurstonian.layout import build_layout

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
LAYOUT = build_layout(*np.array(ROWS, np.int32).T, np.array([0, 3, 7]))
QUERY, ITEMS = 1, 4
SLOPE = np.array([0.9, -0.6, 0.0, 1.4])
SCORE_VARIANCE, NOISE_VARIANCE = 2.5, 0.7
FIRST_ROW, LOW = LAYOUT.judgment_starts[QUERY], LAYOUT.utility_starts[3]
UTILITIES = len(LAYOUT.utility_item) - LOW
SIZE = ITEMS + UTILITIES
APPROXIMATION = approximate(LAYOUT, QUERY, SLOPE, SCORE_VARIANCE, NOISE_VARIANCE)


def margins():
    """Each judgment's margin as a row of weights of scores and perceived utilities."""
    rows = np.zeros((len(ROWS) - FIRST_ROW, SIZE))
    for index, row in enumerate(range(FIRST_ROW, len(ROWS))):
        slope = SLOPE[LAYOUT.annotator[row]]
        rows[index, ITEMS + LAYOUT.winner_utility[row] - LOW] = slope
        rows[index, ITEMS + LAYOUT.loser_utility[row] - LOW] = -slope
    return rows


def prior_precision():
    noise = np.eye(UTILITIES, SIZE, ITEMS) - np.eye(ITEMS, SIZE)[LAYOUT.utility_item[LOW:] - 3]
    return np.diag(np.r_[np.full(ITEMS, 1 / SCORE_VARIANCE), np.zeros(UTILITIES)]) + noise.T @ noise / NOISE_VARIANCE


def point_from(noise, approximation=APPROXIMATION):
    scores, perceived = np.empty(ITEMS), np.empty(UTILITIES)
    density = transform(LAYOUT, approximation, np.array(noise, np.float64), scores, perceived, True)
    return np.concatenate((scores, perceived)), density


def moments():
    """Mean and covariance of what is drawn: a linear map of the noise."""
    mean, _ = point_from(np.zeros(SIZE))
    root = np.stack([point_from(unit)[0] - mean for unit in np.eye(SIZE)], axis=1)
    return mean, root @ root.T


def test_the_block_algebra_agrees_with_dense_matrices():
    """With given sites, precisions and precision × mean add up."""
    rng = np.random.default_rng(2)
    sites = rng.random((2, len(ROWS) - FIRST_ROW)) + 0.1
    q = approximate(LAYOUT, QUERY, SLOPE, SCORE_VARIANCE, NOISE_VARIANCE)
    expectation_propagation._assemble(LAYOUT, SLOPE, sites, q)
    precision = prior_precision() + margins().T @ (sites[0][:, None] * margins())
    mean, density = point_from(np.zeros(SIZE), q)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, margins().T @ sites[1]))
    assert density == pytest.approx(0.5 * np.linalg.slogdet(precision)[1])
    np.testing.assert_allclose(q.covariance, np.linalg.inv(precision)[:ITEMS, :ITEMS])


def test_transforming_noise_to_a_point_can_be_inverted():
    noise = np.random.default_rng(3).normal(size=SIZE)
    point, density = point_from(noise)
    back = np.empty(SIZE)
    scores, perceived = point[:ITEMS].copy(), point[ITEMS:].copy()
    assert transform(LAYOUT, APPROXIMATION, back, scores, perceived, False) == pytest.approx(density)
    np.testing.assert_allclose(back, noise)
    np.testing.assert_array_equal(np.concatenate((scores, perceived)), point)
    mean, covariance = moments()
    difference = point - mean
    expected = -0.5 * (difference @ np.linalg.solve(covariance, difference) + np.linalg.slogdet(covariance)[1])
    assert density == pytest.approx(expected)


def test_the_log_posterior_agrees_with_the_formula():
    point = np.random.default_rng(4).normal(size=SIZE)
    prior = prior_precision()
    expected = log_ndtr(margins() @ point).sum() - 0.5 * point @ prior @ point + 0.5 * np.linalg.slogdet(prior)[1]
    found = log_posterior(LAYOUT, QUERY, SLOPE, APPROXIMATION, point[:ITEMS], point[ITEMS:])
    assert found == pytest.approx(expected, abs=1e-6)


def test_moments_and_evidence_are_close_to_the_posterior():
    """By importance sampling: draws from the prior, weighted by their likelihood."""
    rng = np.random.default_rng(5)
    draws = rng.multivariate_normal(np.zeros(SIZE), np.linalg.inv(prior_precision()), 200_000, method="cholesky")
    weight = np.exp(log_ndtr(draws @ margins().T).sum(axis=1))
    mean, covariance = moments()
    expected = np.average(draws, axis=0, weights=weight)
    std = np.sqrt(np.average((draws - expected) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(mean, expected, atol=0.05 * std.max())
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=0.05)
    point, density = point_from(np.zeros(SIZE))
    evidence = log_posterior(LAYOUT, QUERY, SLOPE, APPROXIMATION, point[:ITEMS], point[ITEMS:]) - density
    assert evidence == pytest.approx(np.log(weight.mean()), abs=0.5)


def test_a_query_without_judgments_has_its_prior():
    layout = build_layout(*np.array(ROWS[:2], np.int32).T, np.array([0, 3, 5]))
    nothing = approximate(layout, 1, SLOPE, SCORE_VARIANCE, NOISE_VARIANCE)
    np.testing.assert_allclose(nothing.mean, np.zeros(2))
    np.testing.assert_allclose(nothing.covariance, SCORE_VARIANCE * np.eye(2))


def test_large_blocks_by_lapack_agree_with_plain_loops(monkeypatch):
    pairs = np.array([(one, other, 0) for one in range(18) for other in range(one)], np.int32)
    layout, parts = build_layout(*pairs.T, np.array([0, 18])), []
    for limit in (16, 100):
        monkeypatch.setattr(expectation_propagation, "_SMALL", limit)
        found = approximate(layout, 0, np.array([0.8]), 2.0, 0.5)
        parts.append((found.mean, found.covariance, found.linear, np.tril(found.factor)))
    for one, other in zip(*parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
