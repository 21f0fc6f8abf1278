"""Majority-Vote-BT: one comparison per pair, by majority; uncertainty from all the judgments."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank import BradleyTerry, Comparisons, MajorityBT
from crowdrank.errors import DataError, DisconnectedError, SeparationError, SettingError
from crowdrank.simulation import crowd_bt
from tests.strategies import comparisons, comparisons_of, disconnected_allowed

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def by_hand(votes):
    """The majority of each pair, added up row by row; tied pairs left out."""
    net = {}
    for a, b, outcome, weight in zip(votes.left, votes.right, votes.outcome, votes.weights, strict=True):
        pair, lead = (min(a, b), max(a, b)), outcome * weight * (1 if a < b else -1)
        net[pair] = net.get(pair, 0.0) + lead
    rows = [(a, b, 1 if lead > 0 else -1) for (a, b), lead in net.items() if lead]
    left, right, outcome = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    return Comparisons(items=votes.items, left=left, right=right, outcome=outcome.astype(np.int8))


@quick
@given(votes=comparisons())
def test_it_is_bradley_terry_on_the_majorities(votes):
    if not np.any(votes.counts.net):
        return
    with disconnected_allowed():
        found = MajorityBT(tolerance=1e-9).fit(votes)
        expected = BradleyTerry(prior_scale=3.0, tolerance=1e-9).fit(by_hand(votes))
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-7)


def test_the_paper_s_example_is_one_win():
    """Three say a beats b, two say b beats a: as one a beats b."""
    votes = comparisons_of(None, [0] * 5, [1] * 5, [1, 1, 1, -1, -1])
    one = comparisons_of(None, [0], [1], [1])
    np.testing.assert_allclose(MajorityBT().fit(votes).scores, BradleyTerry(prior_scale=3.0).fit(one).scores, atol=1e-4)


def test_a_vote_tied_but_for_rounding_is_tied():
    votes = comparisons_of(None, [0, 0, 0], [1, 1, 1], [1, 1, -1], weight=[0.1, 0.2, 0.3])
    assert 0.1 + 0.2 != 0.3
    with disconnected_allowed():
        assert MajorityBT().fit(votes).scores.tolist() == [0.0, 0.0]


def test_what_is_judged_and_noted_is_of_all_the_judgments():
    votes = comparisons_of(None, [0, 0, 1, 1, 2], [1, 1, 2, 2, 0], [1, -1, 1, 1, 1])
    ranking = MajorityBT().fit(votes)
    assert ranking.n_judgments.tolist() == [3, 4, 3]
    (note,) = ranking.notes
    assert note.startswith("Counting only pairs with a majority: Among all 3 items")
    assert "wins lead in one direction only" in note


def test_majorities_that_leave_no_finite_score_are_refused_without_a_prior():
    """Every item wins and loses, but not by majority."""
    rows = [(0, 1, 1), (0, 1, 1), (0, 1, -1), (1, 2, 1), (1, 2, 1), (1, 2, -1)]
    with pytest.raises(SeparationError, match="^Counting only pairs with a majority.*prior_scale"):
        MajorityBT(prior_scale=None).fit(comparisons_of(None, *zip(*rows, strict=True)))
    tied = [(0, 1, 1), (0, 1, -1), (1, 2, 1), (1, 2, -1)]
    with pytest.raises(DisconnectedError, match="^Counting only pairs with a majority"):
        MajorityBT(prior_scale=None).fit(comparisons_of(None, *zip(*tied, strict=True)))


def test_a_resample_without_finite_scores_asks_for_a_prior():
    rows = [(0, 1, 1), (1, 2, 1), (2, 0, 1)]
    ranking = MajorityBT(prior_scale=None).fit(comparisons_of(None, *zip(*rows, strict=True)))
    with pytest.raises(DataError, match="Set prior_scale"):
        _ = ranking.uncertainty


@pytest.mark.parametrize("votes_of_a_pair", [1, 5])
def test_errors_are_as_large_as_scores_vary(votes_of_a_pair):
    """Over fresh answers to the same pairs; with one answer a pair a plain bootstrap would give three quarters."""
    scores = np.linspace(-1.5, 1.5, 16)
    pairs = np.array([(a, b) for a in range(16) for b in range(a) if (a + b) % 3])
    left, right = np.repeat(pairs, votes_of_a_pair, axis=0).T
    chance = 1 / (1 + np.exp(scores[right] - scores[left]))
    found, errors = [], []
    for seed in range(40):
        said = np.where(np.random.default_rng(seed).random(len(left)) < chance, 1, -1)
        ranking = MajorityBT().fit(comparisons_of(None, left, right, said))
        found.append(ranking.scores)
        if seed < 3:
            errors.append(ranking.uncertainty.std_error)
    ratio = np.mean(errors) / np.std(found, axis=0).mean()
    assert 0.8 < ratio < 1.25


def test_annotators_are_resampled_where_there_are_enough():
    crowd = crowd_bt(items=10, annotators=12, pairs=30, votes=5, seed=1)
    assert MajorityBT().fit(crowd.judgments).uncertainty.method == "bootstrap over 12 annotators"


@pytest.mark.parametrize("wrong", [{"prior_scale": -1.0}, {"virtual_weight": -0.1}, {"tolerance": 0.0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        MajorityBT(**wrong)
