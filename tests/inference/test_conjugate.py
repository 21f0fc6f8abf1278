import numpy as np
import pytest

from crowdrank.engines import LOCAL
from crowdrank.inference import Evaluation, dense, maximize
from crowdrank.inference.newton import maximize_nonlinear_cg
from crowdrank.models.crowd.encoding import encode_answers
from crowdrank.models.crowd.factor_bt import ScaledFeatures
from crowdrank.models.crowd.likelihood import CROWD_BT, FACTOR_BT
from crowdrank.models.crowd.objective import Layout, Objective
from crowdrank.models.crowd.priors import Priors
from crowdrank.simulation import factor_crowd


def hill(matrix, optimum):
    def at(x):
        away = x - optimum
        return Evaluation(float(-0.5 * away @ matrix @ away), -matrix @ away, dense(matrix))

    return at


def matrix_of(size=6, seed=0):
    half = np.random.default_rng(seed).normal(size=(size, size))
    return half @ half.T + np.eye(size)


@pytest.mark.parametrize("formula", [CROWD_BT, FACTOR_BT])
def test_the_optimum_is_the_one_newton_finds(formula):
    crowd = factor_crowd(items=12, annotators=8, pairs=40, votes=8, seed=1)
    votes = crowd.judgments
    features = (
        ScaledFeatures(tuple(votes.features), dict.fromkeys(votes.features, 1.0)) if formula == FACTOR_BT else None
    )
    answers = encode_answers(votes, features)
    layout = Layout(len(votes.items), len(votes.annotators), answers.features.shape[1])
    of_logits = {"quality": (3.0, 0.5)} if formula == CROWD_BT else {"logit": (1.0, 1.0), "feature_weight": 1.0}
    objective = Objective(LOCAL.load(answers), layout, formula, Priors(scale=3.0, **of_logits))
    start = np.zeros(layout.size)
    start[layout.items : layout.items + layout.annotators] = 1.0
    slow = maximize_nonlinear_cg(objective, start, tolerance=1e-4)
    quick = maximize(objective, slow.parameters + 0.01, tolerance=1e-8, max_step=2.0)
    assert slow.converged
    assert slow.distance <= 1e-4
    assert slow.evaluation.value == pytest.approx(quick.evaluation.value, abs=1e-6)
    np.testing.assert_allclose(slow.parameters, quick.parameters, atol=1e-3)


def test_a_quadratic_takes_about_as_many_steps_as_it_has_dimensions():
    optimum = np.arange(6.0)
    found = maximize_nonlinear_cg(hill(matrix_of(), optimum), np.zeros(6), tolerance=1e-6)
    assert found.converged
    assert found.steps <= 30
    np.testing.assert_allclose(found.parameters, optimum, atol=1e-5)


def test_a_start_at_the_optimum_takes_no_step():
    found = maximize_nonlinear_cg(hill(matrix_of(), np.zeros(6)), np.zeros(6))
    assert (found.converged, found.steps, found.distance) == (True, 0, 0.0)


def test_stopping_short_is_not_called_converged():
    found = maximize_nonlinear_cg(hill(matrix_of(), np.arange(6.0)), np.zeros(6), tolerance=1e-9, max_steps=2)
    assert not found.converged
    assert found.steps == 2
    assert found.distance > 1e-9


def test_a_flat_objective_is_not_taken_for_an_optimum_far_away():
    """An objective so wide that its gradient is small everywhere: only the distance shows that it has not converged."""
    found = maximize_nonlinear_cg(hill(1e-6 * np.eye(3), np.full(3, 1e4)), np.zeros(3), tolerance=1e-3)
    assert found.converged
    np.testing.assert_allclose(found.parameters, 1e4, atol=1.0)


def test_a_tolerance_below_rounding_is_said_to_be_met_only_if_nothing_is_left_to_gain():
    objective = hill(matrix_of(), np.full(6, 1e3))
    found = maximize_nonlinear_cg(objective, np.zeros(6), tolerance=1e-300)
    assert found.steps < 5_000
    assert found.distance < 1e-4
