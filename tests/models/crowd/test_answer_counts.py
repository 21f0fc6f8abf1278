"""Counts over answers agree with counting one by one, and do not depend on the shards."""

import numpy as np
import pytest

from crowdrank.engines import LOCAL, LocalEngine
from crowdrank.models.crowd import encoding
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers, evaluate

ROWS, ITEMS, PEOPLE = 90, 5, 3


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    winner = rng.integers(ITEMS, size=ROWS).astype(np.int32)
    loser = ((winner + rng.integers(1, ITEMS, size=ROWS)) % ITEMS).astype(np.int32)
    who = rng.integers(PEOPLE, size=ROWS).astype(np.int32)
    return Answers(winner, loser, who, rng.uniform(0.5, 2.0, ROWS), np.zeros((ROWS, 0)))


def by_hand(answers, trust=None, scores=None):
    net, total = np.zeros(ITEMS), np.zeros(ITEMS)
    agreed, weight_of = np.zeros(PEOPLE), np.zeros(PEOPLE)
    for won, lost, who, weight in zip(*answers[:4], strict=True):
        counts = weight * (1.0 if trust is None else trust[who])
        net[won] += counts
        net[lost] -= counts
        total[[won, lost]] += abs(counts)
        weight_of[who] += weight
        if scores is not None:
            agreed[who] += weight * np.sign(scores[won] - scores[lost])
    return net, total, agreed, weight_of


@pytest.mark.parametrize("trust", [None, np.array([1.0, 0.3, -0.5])])
@pytest.mark.parametrize("engine", [LOCAL, LocalEngine(rows_per_shard=7)])
@pytest.mark.parametrize("compiled", [False, True])
def test_counts_are_those_made_by_hand(answers, trust, engine, compiled, monkeypatch):
    monkeypatch.setattr(encoding, "COMPILE_MIN_ROWS", 0 if compiled else 10**9)
    scores = np.random.default_rng(1).normal(size=ITEMS)
    net, total, agreed, weight_of = by_hand(answers, trust, scores)
    held = engine.load(answers)
    np.testing.assert_allclose(held.sum(encoding.win_loss_counts, ITEMS, trust), (net, total), atol=1e-12)
    np.testing.assert_allclose(held.sum(encoding.agreement_counts, scores, PEOPLE), (agreed, weight_of), atol=1e-12)
    np.testing.assert_allclose(held.sum(encoding.weight_by_annotator, PEOPLE)[0], weight_of)


def test_a_sample_has_the_same_rows_however_they_are_sharded(answers):
    points = [(np.zeros(ITEMS), np.ones(PEOPLE)), (np.arange(ITEMS) / 2, np.zeros(PEOPLE) + 2.0)]
    whole, cut = (engine.load(answers) for engine in (LOCAL, LocalEngine(rows_per_shard=11)))
    for every in (1, 4, 13):
        sampled = whole.sum(encoding.sampled_log_likelihoods, points, CROWD_BT, every)[0]
        np.testing.assert_allclose(cut.sum(encoding.sampled_log_likelihoods, points, CROWD_BT, every)[0], sampled)
    none = np.zeros((PEOPLE, 0))
    expected = [evaluate(answers, *point, none, CROWD_BT)[1].value for point in points]
    np.testing.assert_allclose(whole.sum(encoding.sampled_log_likelihoods, points, CROWD_BT, 1)[0], expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_rounding_does_not_decide_who_agrees(answers, compiled, monkeypatch):
    monkeypatch.setattr(encoding, "COMPILE_MIN_ROWS", 0 if compiled else 10**9)
    nearly_tied = 1e-16 * np.random.default_rng(2).normal(size=ITEMS)
    assert LOCAL.load(answers).sum(encoding.agreement_counts, nearly_tied, PEOPLE)[0].tolist() == [0.0] * PEOPLE
