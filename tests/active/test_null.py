"""Coin tosses stay coin tosses, whatever chose the questions; and the board is what was said, in whatever order."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.active import POLICIES, Adaptive, Random, Uncertainty
from crowdrank.active.null_simulation import Claims, NullCheck, claims, coin_tossers, null_check, played
from crowdrank.active.reliability import fitted
from crowdrank.errors import SettingError
from crowdrank.online import CrowdBT as OnlineCrowdBT
from crowdrank.online import Refits
from crowdrank.simulation.crowd import respondents

QUICK = Refits(warmup=20, keep=50, thin=1)
BOARD = cr.BayesianCrowdBT(chains=2, draws=50, warmup=100)


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_makes_an_order_of_coin_tosses(name):
    found = null_check(POLICIES[name](), 12, 8, 80, model=QUICK, board=BOARD, trials=3)
    assert found.policy == name
    assert found.separated <= 0.05
    assert found.sure <= 0.05
    assert found.passed


def test_a_board_that_claims_too_much_is_caught():
    """The negative control: next to no prior, and the pairs that look closest asked for again and again."""
    board = cr.BradleyTerry(prior_scale=10.0)
    found = null_check(Uncertainty(), 20, 10, 400, model=OnlineCrowdBT(), board=board, trials=3)
    assert found.separated > 0.1
    assert not found.passed
    assert "sees an order where there is none" in found.lines()[1]


def test_a_true_order_is_still_seen():
    """Nothing is told apart by a board that never speaks: this one does."""
    crowd = respondents(8, 4, quality=0.95, labels="order")
    log = played(Adaptive(), crowd, 80, QUICK, np.random.default_rng(0))
    assert claims(fitted(BOARD, log.comparisons())).sure > 0.5


def test_liars_by_half_and_equal_items_toss_the_same_coins():
    equal = respondents(6, 3, quality=1.0, labels="logistic", scale=0.0)
    logs = [
        played(Random(), crowd, 30, OnlineCrowdBT(), np.random.default_rng(1)) for crowd in (coin_tossers(6, 3), equal)
    ]
    assert logs[0].winners == logs[1].winners
    assert logs[0].questions == logs[1].questions


def test_claims_are_counted_by_hand():
    draws = np.array([[3.0, 0.1, 0.0], [3.1, 0.0, 0.1], [2.9, -0.1, 0.0], [3.0, 0.0, -0.1]])
    votes = cr.Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    ranking = cr.BradleyTerry().fit(votes)
    told = type(ranking)(
        model="by hand",
        settings={},
        items=ranking.items,
        scores=draws.mean(axis=0),
        _lazy=cr.results.LazyParts(
            n_judgments=lambda: ranking.n_judgments,
            uncertainty=lambda: type(ranking.uncertainty)(draws, draws.std(axis=0), "by hand"),
        ),
    )
    assert claims(told) == Claims(2 / 3, 2 / 3)


def test_the_mean_of_trials_comes_with_its_error():
    trials = (Claims(0.0, 0.0), Claims(0.1, 0.2))
    found = NullCheck(policy="random", board="elo", items=3, annotators=2, votes=9, trials=trials)
    assert found.separated == pytest.approx(0.05)
    assert found.std_error == pytest.approx(0.05)
    assert found.sure == pytest.approx(0.1)
    assert "5.0% ± 5.0%" in found.lines()[1]


def test_a_check_without_trials_is_refused():
    with pytest.raises(SettingError, match="trials must be at least 1, got 0"):
        null_check(Random(), trials=0)


@pytest.fixture(scope="module")
def collected():
    crowd = respondents(10, 5, quality="beta(8,2)", labels="logistic", seed=2)
    return played(Adaptive(), crowd, 120, QUICK, np.random.default_rng(2))


def test_the_order_of_votes_changes_beliefs_and_not_the_board(collected):
    votes = collected.comparisons()
    shuffled = votes.take(np.random.default_rng(0).permutation(len(votes)))
    assert np.array_equal(fitted(BOARD, votes).scores, fitted(BOARD, shuffled).scores)
    model = OnlineCrowdBT()
    first, second = (model.fold(model.start(votes.items, votes.annotators), told).mean for told in (votes, shuffled))
    assert np.abs(first - second).max() > 0.01


def test_written_votes_give_the_board_back(collected, tmp_path):
    votes = collected.comparisons()
    votes.to_frame().write_csv(tmp_path / "votes.csv")
    again = cr.read(tmp_path / "votes.csv")
    assert np.array_equal(fitted(BOARD, votes).scores, fitted(BOARD, again).scores)
    assert list(again.items.labels) == list(votes.items.labels)
