"""Variational inference: a normal posterior is left alone, a skewed one has its own mean and spread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from crowdrank.arrays import FloatArray
from crowdrank.inference.laplace import (
    NormalApproximation,
    gauss_hermite_draws,
    log_evidence,
    refine,
)


class Evaluation(NamedTuple):
    """A log density at one place."""

    value: float
    gradient: FloatArray
    matrix: FloatArray


class Mean(NamedTuple):
    """Means over draws."""

    gradient: FloatArray
    matrix: FloatArray

    @property
    def diagonal(self) -> FloatArray:
        return np.abs(np.diag(self.matrix))


def mean_of(objective):
    def mean_over(draws):
        found = [objective(one) for one in draws]
        return Mean(np.mean([one.gradient for one in found], axis=0), np.mean([one.matrix for one in found], axis=0))

    return mean_over


def iterate(objective, mean, precision, noise, prior_precision=0.1, rounds=20) -> NormalApproximation:
    root = np.linalg.cholesky(precision)
    for _ in range(rounds):
        found = refine(mean_of(objective), mean, root, noise, prior_precision)
        mean, root = found.mean, found.root
    return found


def test_a_normal_posterior_is_found_from_elsewhere_and_then_left_alone():
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    centre = np.array([0.3, -0.2])

    def objective(x):
        away = x - centre
        return Evaluation(-0.5 * away @ precision @ away, -precision @ away, precision)

    found = iterate(
        objective, np.zeros(2), 3.0 * np.eye(2), np.random.default_rng(0).standard_normal((3, 2)), rounds=40
    )
    assert found.mean == pytest.approx(centre, abs=1e-6)
    assert found.root @ found.root.T == pytest.approx(precision, abs=1e-6)
    assert found.shift == pytest.approx(0.0, abs=1e-6)


def five_wins(prior_precision):
    """Log posterior after five wins of five against an item of known score."""
    wins = 5.0

    def objective(x):
        lost = 1.0 / (1.0 + np.exp(x))
        curvature = wins * lost * (1.0 - lost) + prior_precision
        value = -wins * np.log1p(np.exp(-x[0])) - 0.5 * prior_precision * x[0] ** 2
        return Evaluation(value, wins * lost - prior_precision * x, np.diag(curvature))

    return objective


def test_a_skewed_posterior_has_its_own_mean_and_spread():
    """With a wide prior the mean is far above the mode."""
    objective = five_wins(prior_precision := 0.1)
    grid = np.linspace(-10.0, 25.0, 20_001)
    density = np.exp([objective(np.array([x])).value for x in grid])
    mode = grid[np.argmax(density)]
    mean = np.sum(grid * density) / np.sum(density)
    spread = np.sqrt(np.sum((grid - mean) ** 2 * density) / np.sum(density))
    quantiles = np.random.default_rng(1).standard_normal((2_000, 1))
    found = iterate(objective, np.array([mode]), np.array([[1.0]]), quantiles, prior_precision)
    assert mean - mode > 0.5
    assert found.mean[0] == pytest.approx(mean, abs=0.15)
    assert abs(1.0 / found.root[0, 0] - spread) < 0.15 * spread


def test_the_evidence_of_a_skewed_posterior():
    """Two cumulants are closer to the evidence than the lower bound is."""
    objective = five_wins(prior_precision := 0.3)
    grid = np.linspace(-10.0, 25.0, 20_001)
    density = np.exp([objective(np.array([x])).value for x in grid])
    evidence = np.log(np.sum(density) * (grid[1] - grid[0])) - 0.5 * np.log(2.0 * np.pi)
    noise = np.random.default_rng(1).standard_normal((2_000, 1))
    found = iterate(objective, np.zeros(1), np.array([[1.0]]), noise, prior_precision)

    def log_densities(draws):
        return np.array([objective(one).value for one in draws])

    value = log_evidence(log_densities, found.mean, found.root, noise)
    draws = found.mean + np.concatenate((noise, -noise)) / found.root[0, 0]
    entropy = 0.5 - np.log(found.root[0, 0])
    bound = np.mean(log_densities(draws)) + entropy
    assert bound < evidence
    assert abs(value - evidence) < 0.5 * (evidence - bound)


def test_the_evidence_of_a_normal_posterior_is_exact():
    root = np.linalg.cholesky(np.array([[2.0, 0.5], [0.5, 1.0]]))
    centre, noise = np.array([0.3, -0.2]), np.random.default_rng(0).standard_normal((2, 2))
    value = log_evidence(lambda x: 1.5 - 0.5 * np.sum(((x - centre) @ root) ** 2, axis=1), centre, root, noise)
    assert value == pytest.approx(1.5 - np.sum(np.log(np.diag(root))))


def test_gauss_hermite_draws_have_the_moments_of_the_normal():
    draws = gauss_hermite_draws(6, 4, np.random.default_rng(0))
    both = np.concatenate((draws, -draws))
    assert np.mean(both, axis=0) == pytest.approx(np.zeros(4))
    assert np.mean(both**2, axis=0) == pytest.approx(np.ones(4))
    assert np.mean(both**4, axis=0) == pytest.approx(np.full(4, 3.0))


def test_a_round_moves_no_parameter_by_more_than_one():
    def objective(x):
        return Evaluation(0.0, 100.0 * np.ones(2), np.eye(2))

    found = refine(mean_of(objective), np.zeros(2), np.eye(2), np.ones((1, 2)), 0.1)
    assert np.max(np.abs(found.mean)) == pytest.approx(1.0)


def test_the_approximation_is_not_wider_than_the_prior():
    def objective(x):
        return Evaluation(0.0, np.zeros(2), -np.eye(2))  # not concave: a trough

    found = iterate(objective, np.zeros(2), np.eye(2), np.ones((1, 2)), prior_precision=0.5)
    assert np.min(np.linalg.eigvalsh(found.root @ found.root.T)) >= 0.49
