"""The sign of the scores, when some annotators answer in reverse."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from crowdrank import Comparisons, CrowdBT, SideInformation
from crowdrank.models.base import FitOptions
from crowdrank.models.crowd.direction import log_odds_of_direction
from crowdrank.models.crowd.encoding import annotator_votes, is_reversed
from crowdrank.models.crowd.likelihood import CROWD_BT
from crowdrank.models.crowd.random_effects import fit_random_effects


def test_a_few_certain_annotators_do_not_outvote_many():
    agreed, judged = np.array([100.0, 100.0, *[8.0] * 5]), np.array([100.0, 100.0, *[20.0] * 5])
    assert agreed.sum() > judged.sum() / 2
    assert is_reversed(agreed, judged)
    assert not is_reversed(judged - agreed, judged)


def test_those_who_guess_do_not_outvote_one_who_knows():
    agreed, judged = np.array([20.0, *[9.0] * 3]), np.full(4, 20.0)
    assert not is_reversed(agreed[:1], judged[:1])
    assert np.abs(annotator_votes(agreed, judged)[1:]).max() < 0.9
    assert annotator_votes(agreed, judged)[0] == 1


def test_annotators_without_answers_have_no_vote():
    assert annotator_votes(np.zeros(2), np.zeros(2)).tolist() == [0, 0]
    assert not is_reversed(np.zeros(2), np.zeros(2))


def test_reversing_the_order_reverses_the_votes():
    judged = np.arange(1.0, 9.0)
    agreed = judged * np.linspace(0, 1, 8)
    np.testing.assert_allclose(annotator_votes(agreed, judged), -annotator_votes(judged - agreed, judged), atol=1e-12)


def test_rounding_does_not_reverse_an_order_with_equal_votes():
    agreed, judged = np.array([5.5, 4.5]), np.full(2, 10.0)
    assert not is_reversed(agreed, judged)
    assert not is_reversed(agreed - 1e-12, judged)
    assert is_reversed(agreed - 1e-3, judged)


def crowd_with_reversed(qualities, seed):
    """Answers about 20 items, 25 by each annotator of these qualities, to pairs that differ clearly."""
    rng = np.random.default_rng(seed)
    truth, who = np.arange(20.0), np.repeat(np.arange(len(qualities)), 25)
    left = rng.integers(20, size=len(who))
    right = (left + rng.integers(1, 20, size=len(who))) % 20
    is_right = rng.random(len(who)) < np.asarray(qualities)[who]
    winner = np.where((truth[left] > truth[right]) == is_right, left, right)
    return Comparisons.of(left, right, winner, annotator=[f"annotator {k:02}" for k in who]), truth


def agreement_with(ranking, truth):
    estimate = [ranking[str(item)].score for item in range(len(truth))]
    return kendalltau(estimate, truth).statistic


@pytest.mark.parametrize("seed", range(4))
def test_a_minority_who_always_answer_in_reverse_do_not_turn_the_order_round(seed):
    honest = np.random.default_rng([seed, 1]).uniform(0.5, 0.95, 30)
    votes, truth = crowd_with_reversed([*honest, *[0.0] * 12], seed)
    ranking = CrowdBT().fit(votes)
    assert agreement_with(ranking, truth) > 0.8
    quality = ranking.annotators["quality"]
    assert quality[-12:].max() < 0.2
    assert np.mean(quality[:30] > 0.5) > 0.8


def test_gold_pairs_decide_against_the_majority():
    votes, truth = crowd_with_reversed([*[0.8] * 10, *[0.02] * 20], 0)
    assert agreement_with(CrowdBT().fit(votes), truth) < -0.8
    gold = SideInformation(gold=[("19", "0"), ("18", "1"), ("17", "2"), ("16", "3"), ("15", "4")])
    assert agreement_with(CrowdBT().fit(votes, side_information=gold), truth) > 0.8


def test_the_odds_of_a_direction_are_the_inverse_of_those_of_its_mirror_image():
    votes, _ = crowd_with_reversed([0.9, 0.8, 0.7, 0.7, 0.1], 3)
    estimate = fit_random_effects(CrowdBT(), votes, CROWD_BT, FitOptions(), model_ties=False)
    tables, grids = estimate.best.curvature.tables.quality, estimate.objective.grids
    odds = log_odds_of_direction(tables, grids)
    assert odds > 1.0
    assert np.all(grids.grid_of == 0)  # the common grid is symmetric: reversed tables are those of the mirror image
    np.testing.assert_allclose(log_odds_of_direction(tables[:, ::-1], grids), -odds, rtol=1e-9)


def test_nothing_is_known_of_the_direction_of_coin_tosses():
    votes, _ = crowd_with_reversed([0.5] * 20, 5)
    estimate = fit_random_effects(CrowdBT(), votes, CROWD_BT, FitOptions(), model_ties=False)
    odds = log_odds_of_direction(estimate.best.curvature.tables.quality, estimate.objective.grids)
    assert not estimate.is_flipped
    assert abs(odds) < 3.0
