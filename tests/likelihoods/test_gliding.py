"""Paths of scores: forces are slopes of the energy, and coordinates round the posterior off."""

import numpy as np
import pytest

from crowdrank.models.thurstonian import hmc
from crowdrank.models.thurstonian.gibbs import ready
from crowdrank.models.thurstonian.hmc import DENSE_UP_TO, Room, frame_sizes
from crowdrank.models.thurstonian.layout import sights_of

ROWS = [(0, 1, 0), (1, 2, 1), (2, 0, 0), (0, 3, 1), (3, 2, 0), (1, 3, 1), (0, 1, 1)]
SIGHTS = sights_of(*np.array(ROWS, np.int32).T, np.array([0, 4]))
SLOPE = np.array([0.9, -0.4])
SPREAD = 2.5


@pytest.fixture
def room():
    rng, size = np.random.default_rng(3), len(SIGHTS.item)
    return Room(*(rng.normal(size=size) for _ in Room._fields))


def energy(room):
    return hmc._energy(SIGHTS, 0, SLOPE, SPREAD, room)


def test_forces_are_slopes_of_the_energy(room):
    hmc._push(SIGHTS, 0, SLOPE, SPREAD, room)
    for item in range(4):
        ends = []
        for step in (-1e-3, 1e-3):
            moved = room._replace(scores=room.scores.copy())
            moved.scores[item] += step
            ends.append(energy(moved))
        assert room.pull[item] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-4)


@pytest.mark.parametrize("dense", [True, False])
def test_forces_and_steps_go_through_the_same_coordinates(dense):
    """⟨pull, frame · pace⟩ is ⟨frameᵀ · pull, pace⟩: else paths would not keep their energy."""
    rng = np.random.default_rng(4)
    frame = np.triu(rng.normal(size=(4, 4))).ravel() if dense else rng.random(4)
    pace, pull, scores, paces = rng.normal(size=4), rng.normal(size=4), np.zeros(4), np.zeros(4)
    hmc._go(frame, 1.0, pace, scores)
    hmc._hasten(frame, 1.0, pull, paces)
    np.testing.assert_allclose(scores, frame.reshape(4, 4) @ pace if dense else frame * pace)
    assert pull @ scores == pytest.approx(paces @ pace)


def test_coordinates_round_the_curvature_off():
    state = ready(
        SIGHTS,
        np.zeros(4),
        np.zeros(len(SIGHTS.item)),
        np.ones(1),
        np.zeros(1, np.int64),
        np.sqrt(2) * SLOPE[:, None],
        np.ones(1),
        np.full(1, SPREAD),
    )
    frame = state.frames.reshape(4, 4)
    told = np.zeros((4, 4))
    for one, other, who in ROWS:
        # at even scores, hazards both ways are √(2/π)
        apart = np.eye(4)[one] - np.eye(4)[other]
        told += SLOPE[who] ** 2 * (2 / np.pi) * np.outer(apart, apart)
    np.testing.assert_allclose(frame.T @ (told + np.eye(4) / SPREAD) @ frame, np.eye(4), atol=1e-3)


def test_large_queries_have_one_number_an_item():
    np.testing.assert_array_equal(frame_sizes(np.array([0, 2, DENSE_UP_TO, DENSE_UP_TO + 1])), [0, 4, 64**2, 65])
