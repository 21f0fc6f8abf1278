"""Default models are as sure as they should be: a small part of benchmarks/calibration.py.

The bounds leave room for other seeds and processors, and the joint estimate fails them.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from crowdrank import BradleyTerry, CrowdBT
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation import Coverage, count_held

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "benchmarks")]

from calibration import Size, simulate  # noqa: E402

ARENA, FEW = Size(10, 1_000, 2_000), Size(12, 10, 120)
JOINT = CrowdBT(estimation="joint", prior_scale=3.0, quality_prior=(3.0, 0.5))


def coverage(model, size: Size, crowd: str, spread: float, crowds: int) -> Coverage:
    found = []
    for seed in range(5_000, 5_000 + crowds):
        votes, truth = simulate(size, crowd, spread, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdrankWarning)
            found.append(count_held(model.fit(votes), truth, 0.95, 0.9))
    return Coverage(tuple(found))


@pytest.mark.parametrize("model", [CrowdBT(), BradleyTerry()], ids=["crowd-bt", "bradley-terry"])
def test_intervals_hold_with_many_voters_of_two_votes(model):
    found = coverage(model, ARENA, "equal", 1.0, 4)
    assert found.scores.value > 0.8
    assert found.ranks.value > 0.8
    assert found.claims_right.value > 0.9
    assert found.claimed.value > 0.3


def test_the_joint_estimate_fails_there():
    assert coverage(JOINT, ARENA, "equal", 1.0, 4).scores.value < 0.7


def test_coin_tosses_rarely_look_like_an_order():
    assert coverage(CrowdBT(), FEW, "coin", 0.0, 4).claimed.value < 0.04


def test_the_joint_estimate_sees_an_order_in_coin_tosses():
    found = coverage(JOINT, FEW, "coin", 0.0, 4)
    assert found.claimed.value > 0.04
    assert found.split.value > 0.5
