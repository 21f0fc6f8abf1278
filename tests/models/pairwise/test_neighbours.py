"""Items that were only compared with their neighbours in a long order are ranked, not taken for coin tosses."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, CrowdBT, Thurstone
from crowdrank.models.pairwise.spread import neighbours_only
from tests.strategies import comparisons_of

WINS = [1] * 9 + [-1]


def chain(items, outcomes):
    """Each item is compared ten times with the next one."""
    left = np.repeat(np.arange(items - 1), len(outcomes))
    outcome = np.tile(outcomes, items - 1)
    return comparisons_of(np.zeros(len(left), int), left, left + 1, outcome, annotator=np.arange(len(left)) % 3)


@pytest.mark.parametrize("model", [BradleyTerry, Thurstone, CrowdBT])
@pytest.mark.parametrize("items", [9, 60])
def test_a_chain_is_ranked_in_its_order(model, items):
    votes = chain(items, WINS)
    ranking = model().fit(votes)
    number = np.array([int(label[1:]) for label in ranking.items.labels])
    assert number[ranking.order].tolist() == list(range(items))
    gaps = -np.diff(ranking.scores[ranking.order])
    assert 0.5 < np.median(gaps) / gaps.min() < 5  # as far apart in the middle as at the ends


def test_even_answers_to_neighbours_are_coin_tosses():
    votes = chain(40, [1] * 5 + [-1] * 5)
    assert not neighbours_only(votes, np.zeros(40))
    assert np.ptp(BradleyTerry().fit(votes).scores) < 0.2


def test_random_pairs_are_not_taken_for_neighbours():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=20)
    left = rng.integers(20, size=2_000)
    right = (left + rng.integers(1, 20, size=2_000)) % 20
    won = rng.random(2_000) < 1 / (1 + np.exp(truth[right] - truth[left]))
    votes = comparisons_of(np.zeros(2_000, int), left, right, np.where(won, 1, -1))
    assert not neighbours_only(votes, truth)
    assert neighbours_only(votes, 0.1 * truth)
