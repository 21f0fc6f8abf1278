import numpy as np
import pytest

from crowdrank.inference import Evaluation, dense, maximize, sparse


def hill(matrix, optimum):
    """−½ (x−s)ᵀ M (x−s): one Newton step from anywhere."""

    def at(x):
        away = x - optimum
        return Evaluation(float(-0.5 * away @ matrix @ away), -matrix @ away, dense(matrix))

    return at


def steep(x):
    """−log cosh: Newton's full step overshoots from far away."""
    return Evaluation(
        float(-np.sum(np.logaddexp(x, -x) - np.log(2))),
        -np.tanh(x),
        dense(np.diag(np.maximum(1 - np.tanh(x) ** 2, 1e-300))),
    )


def matrix_of(size=6, seed=0):
    half = np.random.default_rng(seed).normal(size=(size, size))
    return half @ half.T + np.eye(size)


def test_a_quadratic_takes_one_step():
    optimum = np.arange(6.0)
    found = maximize(hill(matrix_of(), optimum), np.zeros(6), tolerance=1e-8)
    assert found.converged
    assert found.steps == 1
    np.testing.assert_allclose(found.parameters, optimum, atol=1e-9)


def test_a_start_at_the_optimum_takes_no_step():
    found = maximize(hill(matrix_of(), np.zeros(6)), np.zeros(6))
    assert (found.converged, found.steps, found.distance) == (True, 0, 0.0)


def test_distance_is_in_standard_errors():
    """For a quadratic, √(gᵀH⁻¹g) is the distance to the optimum in units of its curvature."""
    matrix, start = matrix_of(), np.full(6, 1e-3)
    found = maximize(hill(matrix, np.zeros(6)), start, tolerance=10.0)
    assert found.steps == 0
    assert found.distance == pytest.approx(np.sqrt(start @ matrix @ start))


@pytest.mark.parametrize("start", [0.5, 3.0, 9.0])
def test_the_line_search_holds_an_overshooting_step(start):
    found = maximize(steep, np.array([start, -start]), tolerance=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.parameters, 0.0, atol=1e-8)


def test_every_step_goes_uphill():
    values = []

    def watched(x):
        point = steep(x)
        values.append(point.value)
        return point

    found = maximize(watched, np.array([4.0, -2.0]), tolerance=1e-9)
    assert found.evaluation.value == max(values)


def test_stopping_short_is_not_called_converged():
    found = maximize(steep, np.array([5.0]), tolerance=1e-12, max_steps=1)
    assert not found.converged
    assert found.steps == 1
    assert found.distance > 1e-12


def test_a_point_that_is_no_number_is_never_accepted():
    """Beyond 2 the objective is nan; the optimum at 1.9 is found nevertheless."""

    def at(x):
        if x[0] >= 2:
            return Evaluation(float("nan"), np.array([np.nan]), dense(np.eye(1)))
        return Evaluation(
            float(np.log(2 - x[0]) + 10 * x[0]),
            np.array([10 - 1 / (2 - x[0])]),
            dense(np.array([[1 / (2 - x[0]) ** 2]])),
        )

    found = maximize(at, np.array([0.0]), tolerance=1e-8)
    assert found.converged
    assert found.parameters[0] == pytest.approx(1.9, abs=1e-6)


def test_a_gradient_that_points_nowhere_is_not_called_converged():
    """Negative control: with a wrong gradient, the solver does not report convergence."""

    def wrong(x):
        return Evaluation(float(-x @ x), 2 * x, dense(np.eye(len(x))))

    assert not maximize(wrong, np.array([3.0])).converged


def test_conjugate_gradients_maximise_where_factoring_does():
    matrix, optimum = matrix_of(40), np.linspace(-1, 1, 40)

    def at(x):
        away = x - optimum
        return Evaluation(
            float(-0.5 * away @ matrix @ away), -matrix @ away, sparse(lambda v: matrix @ v, np.diag(matrix))
        )

    found = maximize(at, np.zeros(40), tolerance=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.parameters, optimum, atol=1e-8)


@pytest.mark.parametrize("kind", ["factored", "iterated"])
def test_negative_curvature_is_not_taken_for_an_optimum(kind):
    """x² − x⁴ is convex at 0.1: the gradient still points uphill, whatever the curvature."""

    def at(x):
        diagonal = 12 * x**2 - 2
        curvature = dense(np.diag(diagonal)) if kind == "factored" else sparse(lambda v: diagonal * v, np.abs(diagonal))
        return Evaluation(float(np.sum(x**2 - x**4)), 2 * x - 4 * x**3, curvature)

    found = maximize(at, np.array([0.1]), max_steps=50)
    assert not found.converged or abs(found.evaluation.gradient[0]) < 1e-3
