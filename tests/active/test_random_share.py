"""Reliability is told from the random share: near the truth for an order, none for coin tosses."""

from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.active import Adaptive, Random, Thompson, Uncertainty
from crowdrank.active.collection import Log
from crowdrank.active.null_simulation import coin_tossers, played
from crowdrank.active.prequential import foretold
from crowdrank.active.question import Question
from crowdrank.active.reliability import Estimate, Reliability, fitted, reliability
from crowdrank.errors import DataError, SettingError
from crowdrank.online import CrowdBT as OnlineCrowdBT
from crowdrank.simulation.crowd import respondents

QUICK = cr.BayesianCrowdBT(chains=2, draws=50, warmup=100)


def collected(policy, crowd, votes, seed=0):
    return played(policy, crowd, votes, OnlineCrowdBT(), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def good():
    crowd = respondents(12, 6, quality=0.95, labels="logistic", seed=3)
    return crowd, collected(Adaptive(epsilon=0.5), crowd, 350)


def true_reliability(crowd, votes, model):
    board = fitted(model, votes)
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


def test_the_default_board_tells_the_same(good):
    crowd, log = good
    found = reliability(log, model=QUICK, halves=2)
    assert found.model == "bayesian-crowd-bt"
    truth = true_reliability(crowd, log.comparisons(lambda question: question.policy == "random"), QUICK)
    assert found.separation.low <= truth <= found.separation.high
    assert found.split_half.value == pytest.approx(truth, abs=0.2)
    assert found.foretold.gain > 3 * found.foretold.std_error
    assert abs(found.foretold.z) < 3


def test_coin_tosses_have_none():
    log = collected(Adaptive(epsilon=0.5), coin_tossers(12, 6), 400)
    found = reliability(log, model=QUICK, halves=2)
    assert found.split_half.low < 0.1
    assert found.split_half.value < 0.5
    assert found.foretold.gain < 0.02
    assert "no better than a coin toss" in " ".join(found.lines())


def test_a_board_that_claims_too_much_is_caught_by_the_random_share():
    """Adaptive coin tosses, and next to no prior: the share drawn at random says so."""
    log = collected(Adaptive(epsilon=0.5), coin_tossers(40, 10), 400)
    found = reliability(log, model=cr.BradleyTerry(prior_scale=10.0))
    assert found.foretold.overconfident
    assert found.foretold.expected > found.foretold.right + 0.05
    assert "claims too much" in " ".join(found.lines())


def test_written_votes_tell_the_same_as_the_log(good, tmp_path):
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


def test_the_second_half_is_foretold_by_what_came_before():
    crowd = respondents(8, 4, quality=0.95, labels="order", seed=1)
    found = reliability(collected(Random(), crowd, 100), model=cr.BradleyTerry())
    assert found.random == found.judgments == 100
    assert found.foretold.answers == 50
    assert found.foretold.right > 0.7


def test_nothing_is_foretold_by_what_came_after():
    """Answers to random questions have part in choosing what is asked after them: only the past is innocent."""
    log = collected(Random(), respondents(6, 3, quality=1.0, labels="order", seed=1), 40)
    turned = Log()
    for n, (question, winner) in enumerate(zip(log.questions, log.winners, strict=True)):
        other = question.right if winner == question.left else question.left
        turned.add(question, winner if n < 20 else other)
    assert reliability(turned, model=cr.BradleyTerry()).foretold.right < 0.5


def test_votes_that_carry_times_are_read_in_their_order(good):
    votes, policy = good[1].comparisons(), np.array([q.policy for q in good[1].questions])
    order = np.random.default_rng(0).permutation(len(votes))
    shuffled = replace(votes.take(order), time=order.astype(float))
    first, second = (
        reliability(told, policy=names, model=cr.BradleyTerry())
        for told, names in ((votes, policy), (shuffled, policy[order]))
    )
    assert first == second


def test_without_a_random_share_nothing_can_be_told():
    log = collected(Uncertainty(), respondents(6, 3), 40)
    found = reliability(log)
    assert found.random == 0
    assert found.too_few
    assert found.separation is found.split_half is found.foretold is None
    assert "cannot be told" in found.lines()[1]


def test_a_small_random_share_is_said_to_be_small():
    log = collected(Adaptive(epsilon=0.05), respondents(20, 5, quality=0.8, labels="logistic", seed=1), 300)
    found = reliability(log, model=cr.BradleyTerry())
    assert 4 <= found.random < 30
    assert found.too_few
    assert "too small a share" in " ".join(found.lines())


def test_a_share_that_a_model_cannot_be_fitted_to_is_too_small():
    log = collected(Adaptive(epsilon=0.05), respondents(20, 5), 200)
    found = reliability(log, model=cr.BradleyTerry(prior_scale=None))
    assert found.separation is None
    assert "too few to fit bradley-terry" in found.lines()[1]


def test_an_order_without_chances_foretells_nothing(good):
    found = reliability(good[1], model=cr.Borda())
    assert found.foretold is None
    assert found.split_half.value > 0.5


def test_spearman_and_brown_by_hand():
    assert Estimate(0.5, 0.0, 1.0).lengthened(2) == pytest.approx((2 / 3, 0.0, 1.0))
    found = Reliability(model="m", items=5, judgments=40, random=20, split_half=Estimate(0.5, 0.4, 0.6))
    assert found.of_all == pytest.approx((2 / 3, 0.8 / 1.4, 0.75))
    assert not found.too_few


def test_chances_are_held_against_what_came():
    outcome = np.array([1] * 60 + [-1] * 40, np.int8)
    found = foretold(np.full(100, 0.9), outcome)
    assert (found.answers, found.expected, found.right) == (100, pytest.approx(0.9), pytest.approx(0.6))
    assert found.z == pytest.approx(-30 / np.sqrt(100 * 0.09))
    assert found.gain == pytest.approx(np.log(2) + 0.6 * np.log(0.9) + 0.4 * np.log(0.1))
    (only,) = found.bins
    assert (only.answers, only.right) == (100, pytest.approx(0.6))
    fair = foretold(np.full(100, 0.5), outcome)
    assert fair.z == fair.gain == 0
    assert not foretold(np.full(100, 0.6), outcome).overconfident


def test_ties_foretell_nothing():
    assert foretold(np.array([0.8, 0.8]), np.array([1, 0], np.int8)).answers == 1


def test_judgments_that_do_not_say_what_chose_them_are_refused():
    votes = cr.Comparisons.of(["a", "b"], ["b", "a"], ["a", "a"])
    with pytest.raises(DataError, match="which judgments were drawn at random"):
        reliability(votes)
    with pytest.raises(DataError, match="policy: 1 names for 2 judgments"):
        reliability(votes, policy=["random"])
    with pytest.raises(SettingError, match="halves must be at least 1"):
        reliability(votes, policy=["random"] * 2, halves=0)


def test_an_empty_log_is_told_about():
    assert "0 of 0" in reliability(Log()).lines()[0]


def test_thompson_keeps_no_random_share():
    asked = Question(left="a", right="b", annotator="x", probability=0.2, policy=Thompson.name)
    log = Log()
    log.add(asked, "a")
    assert reliability(log).random == 0
