"""Small matrices by NumPy and large ones by SciPy give the same answers."""

import numpy as np
import pytest

from crowdrank.inference import curvature
from crowdrank.inference.curvature import invert_triangular, solve_factored, solve_positive, solve_transposed


@pytest.fixture(params=[0, 1000], ids=["scipy", "numpy"], autouse=True)
def library(request, monkeypatch):
    monkeypatch.setattr(curvature, "SCIPY_MIN_SIZE", request.param)


@pytest.fixture
def matrix():
    half = np.random.default_rng(0).normal(size=(30, 30))
    return half @ half.T + np.eye(30)


def test_a_positive_definite_matrix_is_solved(matrix):
    vector = np.random.default_rng(1).normal(size=30)
    np.testing.assert_allclose(matrix @ solve_positive(matrix, vector), vector, atol=1e-9)


def test_other_matrices_have_no_answer():
    assert solve_positive(np.diag([1.0, -1.0]), np.ones(2)) is None
    assert solve_positive(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.ones(2)) is None


@pytest.mark.parametrize("columns", [(), (4,)])
def test_factors_are_solved_with(matrix, columns):
    factor = np.linalg.cholesky(matrix)
    vector = np.random.default_rng(1).normal(size=(30, *columns))
    np.testing.assert_allclose(matrix @ solve_factored(factor, vector), vector, atol=1e-9)
    np.testing.assert_allclose(factor.T @ solve_transposed(factor, vector), vector, atol=1e-9)


def test_the_inverse_of_a_triangle_is_a_triangle(matrix):
    factor = np.linalg.cholesky(matrix)
    inverse = invert_triangular(factor)
    np.testing.assert_allclose(inverse @ factor, np.eye(30), atol=1e-10)
    assert not np.triu(inverse, 1).any()
