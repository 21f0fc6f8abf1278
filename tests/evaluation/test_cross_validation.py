"""Held-out likelihood: its sum, and that it distinguishes models."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, Copeland, Elo, Thurstone
from crowdrank.errors import SettingError
from crowdrank.evaluation import cross_validate, log_probabilities
from crowdrank.simulation import crowd_bt, mixed_crowd


@pytest.fixture(scope="module")
def votes() -> Comparisons:
    return mixed_crowd(items=12, kinds={"good": 15}, votes_each=40, seed=1).judgments


def test_probabilities_are_those_of_the_formula():
    votes = Comparisons.of(["a", "a", "b", "a"], ["b", "b", "a", "b"], ["a", "b", "b", "tie"])
    model = BradleyTerry(ties="half")
    ranking = model.fit(votes)
    lead = ranking.scores[0] - ranking.scores[1]
    expected = -np.log1p(np.exp([-lead, lead, lead]))
    np.testing.assert_allclose(log_probabilities(model, ranking, votes), expected)


def test_kept_ties_are_given_their_own_chance():
    votes = Comparisons.of(["a", "a", "b", "a"], ["b", "b", "a", "b"], ["a", "b", "b", "tie"])
    model = BradleyTerry()
    ranking = model.fit(votes)
    probabilities = model.predict(ranking, votes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    kept = log_probabilities(model, ranking, votes, ties="keep")
    np.testing.assert_allclose(
        kept, np.log([probabilities[0, 0], probabilities[1, 2], probabilities[2, 0], probabilities[3, 1]])
    )


def test_a_model_that_knows_the_items_beats_a_coin(votes):
    score = cross_validate(BradleyTerry(), votes)
    assert score.mean > np.log(0.5) + 5 * score.std_error
    assert score.n_judgments == len(votes)


def test_coin_tosses_cannot_be_predicted():
    noise = crowd_bt(items=12, annotators=30, pairs=60, votes=10, quality="0.5", seed=2).judgments
    score = cross_validate(BradleyTerry(prior_scale=0.3), noise)
    assert abs(score.mean - np.log(0.5)) < 0.03


def test_a_strong_prior_to_equality_loses_what_the_votes_say(votes):
    assert (
        cross_validate(BradleyTerry(prior_scale=0.01), votes).mean < cross_validate(BradleyTerry(), votes).mean - 0.05
    )


def test_whole_annotators_can_be_held_out(votes):
    by_annotator = cross_validate(BradleyTerry(), votes, by="annotator", folds=5)
    assert by_annotator.n_judgments == len(votes)
    assert abs(by_annotator.mean - cross_validate(BradleyTerry(), votes).mean) < 0.05


def test_the_seed_decides_the_folds(votes):
    assert cross_validate(Thurstone(), votes, seed=3) == cross_validate(Thurstone(), votes, seed=3)
    assert cross_validate(Thurstone(), votes, seed=3) != cross_validate(Thurstone(), votes, seed=4)


def test_elo_foretells_too(votes):
    assert cross_validate(Elo(), votes).mean > np.log(0.5)


def test_an_order_foretells_nothing(votes):
    with pytest.raises(SettingError, match="copeland gives an order"):
        cross_validate(Copeland(), votes)


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"folds": 10**9}, {"by": "mood"}])
def test_folds_that_cannot_be_are_refused(votes, wrong):
    with pytest.raises(SettingError):
        cross_validate(BradleyTerry(), votes, **wrong)


def test_annotators_cannot_be_held_out_where_none_are_known():
    votes = Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "c"])
    with pytest.raises(SettingError, match="annotators are known"):
        cross_validate(BradleyTerry(), votes, by="annotator")
