"""Variational inference: a normal posterior is left alone, a skewed one has its own mean and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from crowdrank.arrays import FloatArray
from crowdrank.inference.gaussian_variational import NormalApproximation, refine
from crowdrank.inference.newton import Evaluation


@dataclass(frozen=True)
class Matrix:
    matrix: FloatArray

    @property
    def diagonal(self) -> FloatArray:
        return np.abs(np.diag(self.matrix))

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        return np.linalg.solve(self.matrix, vector)


def curvature_of(evaluation: Evaluation) -> Matrix:
    assert isinstance(evaluation.curvature, Matrix)
    return evaluation.curvature


def iterate(objective, mean, precision, noise, prior_precision=0.1, rounds=20) -> NormalApproximation:
    root = np.linalg.cholesky(precision)
    for _ in range(rounds):
        found = refine(objective, curvature_of, mean, root, noise, prior_precision)
        mean, root = found.mean, found.root
    return found


def test_a_normal_posterior_is_found_from_elsewhere_and_then_left_alone():
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    centre = np.array([0.3, -0.2])

    def objective(x):
        away = x - centre
        return Evaluation(-0.5 * away @ precision @ away, -precision @ away, Matrix(precision))

    found = iterate(
        objective, np.zeros(2), 3.0 * np.eye(2), np.random.default_rng(0).standard_normal((3, 2)), rounds=40
    )
    assert found.mean == pytest.approx(centre, abs=1e-6)
    assert found.root @ found.root.T == pytest.approx(precision, abs=1e-6)
    assert found.shift == pytest.approx(0.0, abs=1e-6)


def test_a_skewed_posterior_has_its_own_mean_and_spread():
    """Five wins of five against an item of known score, with a wide prior: the mean is far above the mode."""
    wins, prior_precision = 5.0, 0.1

    def objective(x):
        lost = 1.0 / (1.0 + np.exp(x))
        curvature = wins * lost * (1.0 - lost) + prior_precision
        value = -wins * np.log1p(np.exp(-x[0])) - 0.5 * prior_precision * x[0] ** 2
        return Evaluation(value, wins * lost - prior_precision * x, Matrix(np.diag(curvature)))

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


def test_a_round_moves_no_parameter_by_more_than_one():
    def objective(x):
        return Evaluation(0.0, 100.0 * np.ones(2), Matrix(np.eye(2)))

    found = refine(objective, curvature_of, np.zeros(2), np.eye(2), np.ones((1, 2)), 0.1)
    assert np.max(np.abs(found.mean)) == pytest.approx(1.0)


def test_the_approximation_is_not_wider_than_the_prior():
    def objective(x):
        return Evaluation(0.0, np.zeros(2), Matrix(-np.eye(2)))  # not concave: a trough

    found = iterate(objective, np.zeros(2), np.eye(2), np.ones((1, 2)), prior_precision=0.5)
    assert np.min(np.linalg.eigvalsh(found.root @ found.root.T)) >= 0.49
