"""Random answers do not become an order under any policy, and the leaderboard does not depend on their order."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.active import POLICIES, Adaptive, Random, Uncertainty
from crowdrank.active.null_simulation import (
    NullSimulation,
    SeparatedPairs,
    random_annotators,
    run_collection,
    separated_pairs,
    simulate_null,
)
from crowdrank.active.reliability import fit_quietly
from crowdrank.errors import SettingError
from crowdrank.online import CrowdBT as OnlineCrowdBT
from crowdrank.online import SequentialMCMC
from crowdrank.simulation.crowd import respondents

QUICK = SequentialMCMC(warmup=20, draws=50, thin=1)
BOARD = cr.BayesianCrowdBT(chains=2, draws=50, warmup=100)


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_finds_an_order_in_random_answers(name):
    found = simulate_null(POLICIES[name](), 12, 8, 80, model=QUICK, board=BOARD, trials=3)
    assert found.policy == name
    assert found.by_scores <= 0.05
    assert found.by_draws <= 0.05
    assert found.passed


def test_an_overconfident_leaderboard_is_caught():
    """Negative control: a very wide prior, and the closest pairs asked repeatedly."""
    board = cr.BradleyTerry(prior_scale=10.0)
    found = simulate_null(Uncertainty(), 20, 10, 400, model=OnlineCrowdBT(), board=board, trials=3)
    assert found.by_scores > 0.1
    assert not found.passed
    assert "finds an order where there is none" in found.lines()[1]


def test_a_true_order_is_still_found():
    """A leaderboard that separates nothing would pass every test, so check that this one does."""
    crowd = respondents(8, 4, quality=0.95, labels="order")
    log = run_collection(Adaptive(), crowd, 80, QUICK, np.random.default_rng(0))
    assert separated_pairs(fit_quietly(BOARD, log.comparisons())).by_draws > 0.5


def test_random_annotators_and_equal_items_give_the_same_answers():
    equal = respondents(6, 3, quality=1.0, labels="logistic", scale=0.0)
    logs = [
        run_collection(Random(), crowd, 30, OnlineCrowdBT(), np.random.default_rng(1))
        for crowd in (random_annotators(6, 3), equal)
    ]
    assert logs[0].winners == logs[1].winners
    assert logs[0].questions == logs[1].questions


def test_separated_pairs_agree_with_a_count_by_hand():
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
    assert separated_pairs(told) == SeparatedPairs(2 / 3, 2 / 3)


def test_the_mean_of_trials_comes_with_its_error():
    trials = (SeparatedPairs(0.0, 0.0), SeparatedPairs(0.1, 0.2))
    found = NullSimulation(policy="random", board="elo", items=3, annotators=2, votes=9, trials=trials)
    assert found.by_scores == pytest.approx(0.05)
    assert found.std_error == pytest.approx(0.05)
    assert found.by_draws == pytest.approx(0.1)
    assert "5.0% ± 5.0%" in found.lines()[1]


def test_a_check_without_trials_is_refused():
    with pytest.raises(SettingError, match="trials must be at least 1, got 0"):
        simulate_null(Random(), trials=0)


@pytest.fixture(scope="module")
def collected():
    crowd = respondents(10, 5, quality="beta(8,2)", labels="logistic", seed=2)
    return run_collection(Adaptive(), crowd, 120, QUICK, np.random.default_rng(2))


def test_the_order_of_votes_changes_beliefs_and_not_the_board(collected):
    votes = collected.comparisons()
    shuffled = votes.take(np.random.default_rng(0).permutation(len(votes)))
    assert np.array_equal(fit_quietly(BOARD, votes).scores, fit_quietly(BOARD, shuffled).scores)
    model = OnlineCrowdBT()
    first, second = (model.fold(model.start(votes.items, votes.annotators), told).mean for told in (votes, shuffled))
    assert np.abs(first - second).max() > 0.01


def test_written_votes_give_the_board_back(collected, tmp_path):
    votes = collected.comparisons()
    votes.to_frame().write_csv(tmp_path / "votes.csv")
    again = cr.read(tmp_path / "votes.csv")
    assert np.array_equal(fit_quietly(BOARD, votes).scores, fit_quietly(BOARD, again).scores)
    assert list(again.items.labels) == list(votes.items.labels)
