"""Crowd-BT's own pass over many answers gives what the general one gives."""

import numpy as np
import pytest

from crowdrank.engines.compilation import COMPILE_MIN_ROWS
from crowdrank.models.crowd import crowd_bt_kernel, likelihood
from crowdrank.models.crowd.likelihood import RELIABLE, Answers


def shard(weights):
    rng = np.random.default_rng(0)
    rows, items, people = COMPILE_MIN_ROWS, 50, 20
    winner = rng.integers(items, size=rows).astype(np.int32)
    loser = ((winner + rng.integers(1, items, size=rows)) % items).astype(np.int32)
    weight = np.ones(rows) if weights is None else rng.choice(weights, rows)
    return Answers(winner, loser, rng.integers(people, size=rows).astype(np.int32), weight, np.zeros((rows, 0)))


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 3.0]], ids=["plain", "weighed"])
@pytest.mark.parametrize("spread", [1.0, 12.0], ids=["near", "far"])
def test_the_quick_pass_equals_the_general_one(weights, spread, monkeypatch):
    rng = np.random.default_rng(1)
    answers, scores, gates = shard(weights), rng.uniform(-spread, spread, 50), rng.uniform(-spread, spread, 20)
    rows, quick = likelihood.slopes(answers, scores, gates, np.zeros((20, 0)), RELIABLE)
    monkeypatch.setattr(crowd_bt_kernel, "FARTHEST", -1.0)
    general_rows, general = likelihood.slopes(answers, scores, gates, np.zeros((20, 0)), RELIABLE)
    for ours, theirs in zip(quick, general, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(rows.bends, general_rows.bends, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_scores_too_far_for_it_go_the_general_way():
    far = np.linspace(-900, 900, 50)
    _, slopes = likelihood.slopes(shard(None), far, np.full(20, 50.0), np.zeros((20, 0)), RELIABLE)
    assert np.isfinite(slopes.value)
    assert np.isfinite(slopes.scores).all()
