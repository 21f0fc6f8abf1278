"""Crowd-BT's own compiled pass over many answers gives the same numbers as the general one."""

import numpy as np
import pytest

from crowdrank.engines.compilation import COMPILE_MIN_ROWS
from crowdrank.models.crowd import likelihood
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers


def shard(weights):
    rng = np.random.default_rng(0)
    rows, items, people = COMPILE_MIN_ROWS, 50, 20
    winner = rng.integers(items, size=rows).astype(np.int32)
    loser = ((winner + rng.integers(1, items, size=rows)) % items).astype(np.int32)
    weight = np.ones(rows) if weights is None else rng.choice(weights, rows)
    return Answers(winner, loser, rng.integers(people, size=rows).astype(np.int32), weight, np.zeros((rows, 0)))


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 3.0]], ids=["plain", "weighed"])
@pytest.mark.parametrize("spread", [1.0, 12.0], ids=["near", "far"])
def test_the_fast_pass_equals_the_general_one(weights, spread, monkeypatch):
    rng = np.random.default_rng(1)
    answers, scores, logits = shard(weights), rng.uniform(-spread, spread, 50), rng.uniform(-spread, spread, 20)
    rows, quick = likelihood.evaluate(answers, scores, logits, np.zeros((20, 0)), CROWD_BT)
    monkeypatch.setattr(likelihood, "MAX_PARAMETER", -1.0)
    general_rows, general = likelihood.evaluate(answers, scores, logits, np.zeros((20, 0)), CROWD_BT)
    for ours, theirs in zip(quick, general, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(rows.second, general_rows.second, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_large_parameters_take_the_general_pass():
    far = np.linspace(-900, 900, 50)
    _, found = likelihood.evaluate(shard(None), far, np.full(20, 50.0), np.zeros((20, 0)), CROWD_BT)
    assert np.isfinite(found.value)
    assert np.isfinite(found.scores).all()
