"""Crowd-BT's model of ties: what it learns, and that ties of bad items do not change the scores of good ones."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import CrowdBT
from tests.strategies import comparisons_of

ITEMS, ANNOTATORS = 10, 20
TRUTH = np.linspace(2.0, -2.0, ITEMS)


def crowd(rows, *, slope, effect, seed):
    """Good annotators who tie with the probability of the model."""
    rng = np.random.default_rng(seed)
    left = rng.integers(ITEMS, size=rows)
    right = (left + rng.integers(1, ITEMS, size=rows)) % ITEMS
    who = rng.integers(ANNOTATORS, size=rows)
    margin = TRUTH[left] - TRUTH[right]
    tendency = np.exp(rng.normal(0.0, 0.5, ANNOTATORS)[who] + effect[left] + effect[right])
    tied = rng.random(rows) < tendency / (tendency + 2.0 * np.cosh(0.5 * slope * margin))
    won = rng.random(rows) < 1.0 / (1.0 + np.exp(-margin))
    outcome = np.where(tied, 0, np.where(won, 1, -1))
    return comparisons_of(np.zeros(rows, int), left, right, outcome, annotator=who)


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_the_slope_is_learnt(slope):
    votes = crowd(6_000, slope=slope, effect=np.zeros(ITEMS), seed=1)
    found = CrowdBT().fit(votes)
    assert found.parameters["tie_slope"] == pytest.approx(slope, abs=0.4)
    assert np.abs(found.item_parameters["tie_effect"]).max() < 0.4


def test_items_that_are_tied_often_are_found():
    effect = np.where(np.arange(ITEMS) < 5, -0.8, 0.8)
    found = CrowdBT().fit(crowd(6_000, slope=0.5, effect=effect, seed=2)).item_parameters["tie_effect"]
    assert np.corrcoef(found, effect)[0, 1] > 0.95
    assert np.ptp(found) == pytest.approx(1.6, abs=0.6)


def test_ties_between_bad_items_do_not_make_them_alike():
    """Bad items are tied with each other far more often than their scores explain."""
    effect = np.where(np.arange(ITEMS) < 5, -1.0, 1.2)
    votes = crowd(4_000, slope=0.0, effect=effect, seed=3)
    scores = CrowdBT().fit(votes).scores
    assert np.polyfit(TRUTH, scores, 1)[0] == pytest.approx(1.0, abs=0.2)
    assert np.polyfit(TRUTH[5:], scores[5:], 1)[0] == pytest.approx(1.0, abs=0.35)


def test_predictions_of_ties_add_up():
    votes = crowd(3_000, slope=0.5, effect=np.linspace(-0.5, 0.5, ITEMS), seed=4)
    model = CrowdBT()
    predicted = model.predict(model.fit(votes), votes)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    assert predicted[:, 1].sum() == pytest.approx(votes.ties, rel=0.03)
