"""HMC on scores: gradients match the energy, and the preconditioner whitens the curvature."""

import numpy as np
import pytest

from crowdrank.models.thurstonian import score_moves
from crowdrank.models.thurstonian.gibbs import make_state
from crowdrank.models.thurstonian.layout import build_layout
from crowdrank.models.thurstonian.score_moves import DENSE_UP_TO, Workspace, preconditioner_sizes

ROWS = [(0, 1, 0), (1, 2, 1), (2, 0, 0), (0, 3, 1), (3, 2, 0), (1, 3, 1), (0, 1, 1)]
LAYOUT = build_layout(*np.array(ROWS, np.int32).T, np.array([0, 4]))
SLOPE = np.array([0.9, -0.4])
SCORE_VARIANCE = 2.5


@pytest.fixture
def workspace():
    rng, size = np.random.default_rng(3), len(LAYOUT.utility_item)
    return Workspace(*(rng.normal(size=size) for _ in Workspace._fields))


def energy(workspace):
    return score_moves._energy(LAYOUT, 0, SLOPE, SCORE_VARIANCE, workspace)


def test_gradients_match_the_energy(workspace):
    score_moves._gradient(LAYOUT, 0, SLOPE, SCORE_VARIANCE, workspace)
    for item in range(4):
        ends = []
        for step in (-1e-3, 1e-3):
            moved = workspace._replace(scores=workspace.scores.copy())
            moved.scores[item] += step
            ends.append(energy(moved))
        assert workspace.gradient[item] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-4)


@pytest.mark.parametrize("dense", [True, False])
def test_position_and_momentum_use_the_same_preconditioner(dense):
    """⟨gradient, A · momentum⟩ = ⟨Aᵀ · gradient, momentum⟩; otherwise leapfrog would not conserve energy."""
    rng = np.random.default_rng(4)
    preconditioner = np.triu(rng.normal(size=(4, 4))).ravel() if dense else rng.random(4)
    momentum, gradient, scores, momenta = rng.normal(size=4), rng.normal(size=4), np.zeros(4), np.zeros(4)
    score_moves._update_position(preconditioner, 1.0, momentum, scores)
    score_moves._update_momentum(preconditioner, 1.0, gradient, momenta)
    np.testing.assert_allclose(scores, preconditioner.reshape(4, 4) @ momentum if dense else preconditioner * momentum)
    assert gradient @ scores == pytest.approx(momenta @ momentum)


def test_the_preconditioner_whitens_the_curvature():
    state = make_state(
        LAYOUT,
        np.zeros(4),
        np.zeros(len(LAYOUT.utility_item)),
        np.ones(1),
        np.zeros(1, np.int64),
        np.sqrt(2) * SLOPE[:, None],
        np.ones(1),
        np.full(1, SCORE_VARIANCE),
    )
    preconditioner = state.preconditioners.reshape(4, 4)
    information = np.zeros((4, 4))
    for one, other, who in ROWS:
        # at equal scores, both inverse Mills ratios are √(2/π)
        difference = np.eye(4)[one] - np.eye(4)[other]
        information += SLOPE[who] ** 2 * (2 / np.pi) * np.outer(difference, difference)
    np.testing.assert_allclose(
        preconditioner.T @ (information + np.eye(4) / SCORE_VARIANCE) @ preconditioner, np.eye(4), atol=1e-3
    )


def test_large_queries_have_a_diagonal_preconditioner():
    np.testing.assert_array_equal(
        preconditioner_sizes(np.array([0, 2, DENSE_UP_TO, DENSE_UP_TO + 1])), [0, 4, 64**2, 65]
    )
