import numpy as np
import pytest

from crowdrank.inference.curvature import DampedCurvature, DenseCurvature, MatrixFreeCurvature, conjugate_gradients


def matrix_of(size, seed=0):
    half = np.random.default_rng(seed).normal(size=(size, size))
    return half @ half.T + np.eye(size)


@pytest.mark.parametrize("size", [1, 5, 60])
def test_both_kinds_solve_the_same_system(size):
    matrix, target = matrix_of(size), np.random.default_rng(1).normal(size=size)
    expected = np.linalg.solve(matrix, target)
    np.testing.assert_allclose(DenseCurvature(matrix).solve(target), expected, rtol=1e-8, atol=1e-10)
    iterated = MatrixFreeCurvature(lambda v: matrix @ v, np.diag(matrix)).solve(target, 1e-12)
    np.testing.assert_allclose(iterated, expected, rtol=1e-6, atol=1e-8)


def test_a_matrix_flat_in_one_direction_is_solved_in_the_others():
    matrix = np.array([[1.0, -1.0], [-1.0, 1.0]])
    answer = DenseCurvature(matrix).solve(np.array([1.0, -1.0]))
    np.testing.assert_allclose(matrix @ answer, [1.0, -1.0], atol=1e-12)
    answer = MatrixFreeCurvature(lambda v: matrix @ v, np.diag(matrix)).solve(np.array([1.0, -1.0]), 1e-12)
    np.testing.assert_allclose(matrix @ answer, [1.0, -1.0], atol=1e-12)


def test_columns_are_solved_together_as_they_are_alone():
    matrix, targets = matrix_of(20), np.random.default_rng(1).normal(size=(20, 4))
    targets[:, 2] = 0.0  # one that needs no solving must not disturb the others
    together = conjugate_gradients(lambda v: matrix @ v, targets, np.diag(matrix), 1e-12)
    alone = [conjugate_gradients(lambda v: matrix @ v, column, np.diag(matrix), 1e-12) for column in targets.T]
    np.testing.assert_allclose(together, np.array(alone).T, rtol=1e-8, atol=1e-10)
    assert (together[:, 2] == 0).all()


def test_a_looser_tolerance_takes_fewer_products():
    matrix, target = matrix_of(80), np.random.default_rng(1).normal(size=80)

    def products(tolerance):
        count = 0

        def multiply(v):
            nonlocal count
            count += 1
            return matrix @ v

        answer = conjugate_gradients(multiply, target, np.diag(matrix), tolerance)
        return count, np.linalg.norm(matrix @ answer - target) / np.linalg.norm(target)

    (loose, rough), (tight, fine) = products(1e-1), products(1e-10)
    assert loose < tight
    assert fine < 1e-8 < rough < 1


def test_a_better_guess_of_the_diagonal_leads_to_the_same_answer_in_fewer_products():
    rng = np.random.default_rng(2)
    matrix, target = np.diag(rng.uniform(1, 1000, 200)) + 0.1 * matrix_of(200) / 200, rng.normal(size=200)
    count = 0

    def multiply(v):
        nonlocal count
        count += 1
        return matrix @ v

    expected, counts = np.linalg.solve(matrix, target), []
    for scale in (None, np.diag(matrix)):
        count = 0
        found = DampedCurvature(multiply, np.ones(200), scale=scale).solve(target, 1e-10)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)
        counts.append(count)
    assert counts[1] < counts[0] / 4
