"""Reliability is measured from the random share: close to the truth for an order, none for random answers."""

from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.active import Adaptive, Random, Thompson, Uncertainty
from crowdrank.active.collection import AnswerLog
from crowdrank.active.null_simulation import random_annotators, run_collection
from crowdrank.active.questions import Question
from crowdrank.active.reliability import Estimate, Reliability, fit_quietly, prequential_score, reliability
from crowdrank.errors import DataError, SettingError
from crowdrank.online import CrowdBT as OnlineCrowdBT
from crowdrank.simulation.crowd import respondents

QUICK = cr.BayesianCrowdBT(chains=2, draws=50, warmup=100)


def collected(policy, crowd, votes, seed=0):
    return run_collection(policy, crowd, votes, OnlineCrowdBT(), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def good():
    crowd = respondents(12, 6, quality=0.95, labels="logistic", seed=3)
    return crowd, collected(Adaptive(epsilon=0.5), crowd, 350)


def true_reliability(crowd, votes, model):
    board = fit_quietly(model, votes)
    truth = crowd.truth[[crowd.items.index(label) for label in board.items.labels]]
    return np.corrcoef(board.scores, truth)[0, 1] ** 2


def test_the_random_share_alone_is_measured(good):
    crowd, log = good
    found = reliability(log, model=cr.BradleyTerry())
    drawn = log.comparisons(lambda question: question.policy == "random")
    assert found.random == len(drawn) < found.judgments == 350
    truth = true_reliability(crowd, drawn, cr.BradleyTerry())
    for estimate in (found.separation, found.split_half):
        assert estimate.low <= truth <= estimate.high
        assert estimate.value == pytest.approx(truth, abs=0.15)
    assert not found.too_few


def test_the_default_model_agrees(good):
    crowd, log = good
    found = reliability(log, model=QUICK, halves=2)
    assert found.model == "bayesian-crowd-bt"
    truth = true_reliability(crowd, log.comparisons(lambda question: question.policy == "random"), QUICK)
    assert found.separation.low <= truth <= found.separation.high
    assert found.split_half.value == pytest.approx(truth, abs=0.2)
    assert found.prequential.gain > 3 * found.prequential.std_error
    assert abs(found.prequential.z) < 3


def test_random_answers_have_no_reliability():
    log = collected(Adaptive(epsilon=0.5), random_annotators(12, 6), 400)
    found = reliability(log, model=QUICK, halves=2)
    assert found.split_half.low < 0.1
    assert found.split_half.value < 0.5
    assert found.prequential.gain < 0.02
    assert "no better than a coin toss" in " ".join(found.lines())


def test_an_overconfident_leaderboard_is_caught_by_the_random_share():
    """Random answers to adaptive questions, and hardly any prior."""
    log = collected(Adaptive(epsilon=0.5), random_annotators(40, 10), 400)
    found = reliability(log, model=cr.BradleyTerry(prior_scale=10.0))
    assert found.prequential.overconfident
    assert found.prequential.expected > found.prequential.accuracy + 0.05
    assert "overconfident" in " ".join(found.lines())


def test_votes_from_a_file_give_the_same_result_as_the_log(good, tmp_path):
    _, log = good
    frame = log.comparisons().to_frame()
    told = frame.with_columns(
        policy=np.array([q.policy for q in log.questions]), probability=np.array([q.probability for q in log.questions])
    )
    told.write_csv(tmp_path / "votes.csv")
    votes = cr.read(tmp_path / "votes.csv", features=["policy", "probability"])
    first = reliability(log, model=cr.BradleyTerry())
    assert reliability(votes, model=cr.BradleyTerry()) == first
    plain = cr.read(tmp_path / "votes.csv")
    assert reliability(plain, policy=[q.policy for q in log.questions], model=cr.BradleyTerry()) == first


def test_the_second_half_is_predicted_from_earlier_judgments():
    crowd = respondents(8, 4, quality=0.95, labels="order", seed=1)
    found = reliability(collected(Random(), crowd, 100), model=cr.BradleyTerry())
    assert found.random == found.judgments == 100
    assert found.prequential.answers == 50
    assert found.prequential.accuracy > 0.7


def test_later_judgments_are_not_used_to_predict():
    """Answers to random questions influence later questions: only earlier ones are independent of them."""
    log = collected(Random(), respondents(6, 3, quality=1.0, labels="order", seed=1), 40)
    turned = AnswerLog()
    for n, (question, winner) in enumerate(zip(log.questions, log.winners, strict=True)):
        other = question.right if winner == question.left else question.left
        turned.add(question, winner if n < 20 else other)
    assert reliability(turned, model=cr.BradleyTerry()).prequential.accuracy < 0.5


def test_votes_that_carry_times_are_read_in_their_order(good):
    votes, policy = good[1].comparisons(), np.array([q.policy for q in good[1].questions])
    order = np.random.default_rng(0).permutation(len(votes))
    shuffled = replace(votes.take(order), time=order.astype(float))
    first, second = (
        reliability(told, policy=names, model=cr.BradleyTerry())
        for told, names in ((votes, policy), (shuffled, policy[order]))
    )
    assert first == second


def test_without_random_judgments_nothing_is_measured():
    log = collected(Uncertainty(), respondents(6, 3), 40)
    found = reliability(log)
    assert found.random == 0
    assert found.too_few
    assert found.separation is found.split_half is found.prequential is None
    assert "cannot be measured" in found.lines()[1]


def test_too_few_random_judgments_are_reported():
    log = collected(Adaptive(epsilon=0.05), respondents(20, 5, quality=0.8, labels="logistic", seed=1), 300)
    found = reliability(log, model=cr.BradleyTerry())
    assert 4 <= found.random < 30
    assert found.too_few
    assert "too few random judgments" in " ".join(found.lines())


def test_random_judgments_that_a_model_cannot_be_fitted_to_are_too_few():
    log = collected(Adaptive(epsilon=0.05), respondents(20, 5), 200)
    found = reliability(log, model=cr.BradleyTerry(prior_scale=None))
    assert found.separation is None
    assert "too few to fit bradley-terry" in found.lines()[1]


def test_a_model_without_probabilities_has_no_prequential_score(good):
    found = reliability(good[1], model=cr.Borda())
    assert found.prequential is None
    assert found.split_half.value > 0.5


def test_spearman_and_brown_by_hand():
    assert Estimate(0.5, 0.0, 1.0).extrapolate(2) == pytest.approx((2 / 3, 0.0, 1.0))
    found = Reliability(model="m", items=5, judgments=40, random=20, split_half=Estimate(0.5, 0.4, 0.6))
    assert found.projected == pytest.approx((2 / 3, 0.8 / 1.4, 0.75))
    assert not found.too_few


def test_predictions_are_compared_with_the_answers():
    outcome = np.array([1] * 60 + [-1] * 40, np.int8)
    found = prequential_score(np.full(100, 0.9), outcome)
    assert (found.answers, found.expected, found.accuracy) == (100, pytest.approx(0.9), pytest.approx(0.6))
    assert found.z == pytest.approx(-30 / np.sqrt(100 * 0.09))
    assert found.gain == pytest.approx(np.log(2) + 0.6 * np.log(0.9) + 0.4 * np.log(0.1))
    (only,) = found.bins
    assert (only.answers, only.accuracy) == (100, pytest.approx(0.6))
    fair = prequential_score(np.full(100, 0.5), outcome)
    assert fair.z == fair.gain == 0
    assert not prequential_score(np.full(100, 0.6), outcome).overconfident


def test_ties_are_not_scored():
    assert prequential_score(np.array([0.8, 0.8]), np.array([1, 0], np.int8)).answers == 1


def test_judgments_that_do_not_say_what_chose_them_are_refused():
    votes = cr.Comparisons.of(["a", "b"], ["b", "a"], ["a", "a"])
    with pytest.raises(DataError, match="which judgments were drawn at random"):
        reliability(votes)
    with pytest.raises(DataError, match="policy: 1 names for 2 judgments"):
        reliability(votes, policy=["random"])
    with pytest.raises(SettingError, match="halves must be at least 1"):
        reliability(votes, policy=["random"] * 2, halves=0)


def test_an_empty_log_is_reported():
    assert "0 of 0" in reliability(AnswerLog()).lines()[0]


def test_thompson_keeps_no_random_share():
    history = Question(left="a", right="b", annotator="x", probability=0.2, policy=Thompson.name)
    log = AnswerLog()
    log.add(history, "a")
    assert reliability(log).random == 0
