"""A plan agrees with new collections, and its parts with results by hand."""

from itertools import pairwise

import numpy as np
import pytest

from crowdrank.active import Adaptive, Random
from crowdrank.active.null_simulation import run_collection
from crowdrank.active.planning import CurvePoint, Plan, ThrottledMCMC, Trajectory, plan
from crowdrank.errors import SettingError
from crowdrank.evaluation import kendall_correlation
from crowdrank.online import CrowdBT as OnlineCrowdBT
from crowdrank.simulation.crowd import respondents

EASY = {"items": 8, "annotators": 4, "quality": 0.95, "labels": "order", "target": "tau 0.8"}


@pytest.fixture(scope="module")
def easy():
    heard = []
    found = plan(**EASY, trials=8, price=0.5, on_progress=lambda done, total: heard.append((done, total)))
    return found, heard


def test_a_plan_says_how_many_votes_and_what_they_cost(easy):
    found, _ = easy
    low, high = found.interval
    assert low <= found.votes <= high <= found.max_votes == 800
    assert found.votes == np.ceil(np.median(found.reached))
    assert found.cost == found.votes / 2
    assert found.n_failed == 0
    assert f"About {found.votes:,.0f} votes" in found.lines()[1]


def test_progress_is_reported_per_trial(easy):
    assert easy[1] == [(n, 8) for n in range(1, 9)]


def test_the_curve_rises_to_the_target(easy):
    curve = easy[0].curve
    assert all(before.votes < after.votes for before, after in pairwise(curve))
    assert curve[0].mean < 0.8 <= curve[-1].mean
    assert all(point.std_error < 0.3 for point in curve)


def test_fresh_collections_need_what_was_planned(easy):
    """At the high end most collections have reached the target; at half of the low end most have not."""
    found, _ = easy
    low, high = found.interval
    early, late, model = [], [], ThrottledMCMC(refit_every=2, warmup=100, draws=100)
    for seed in range(12):
        crowd = respondents(8, 4, 0.95, "order", seed=1000 + seed)
        log = run_collection(Adaptive(), crowd, round(high), model, np.random.default_rng([seed, 9]))
        for votes, reached in ((low / 2, early), (high, late)):
            told = log.comparisons().take(slice(round(votes)))
            beliefs = model.fold(model.start(crowd.items, crowd.annotators), told)
            reached.append(kendall_correlation(beliefs.mean, crowd.truth) >= 0.8)
    assert np.mean(late) >= 0.7
    assert np.mean(early) < 0.5


def test_the_same_seed_plans_the_same(easy):
    again = plan(**EASY, trials=2)
    assert again.reached == easy[0].reached[:2]


def test_an_unreachable_target_is_reported():
    found = plan(6, 3, quality=0.5, target="accuracy 0.95", trials=2, max_votes=120)
    assert found.votes == found.cost == np.inf
    assert found.n_failed == 2
    assert "Out of reach: 2 of 2" in found.lines()[1]


def test_the_best_few_are_planned_for_most_collections():
    found = plan(6, 4, quality=0.95, labels="order", target="top 1", trials=4, policy=Random())
    assert found.probability == 0.9
    assert found.policy == "random"
    assert found.votes == np.ceil(np.quantile(found.reached, 0.9))


def test_trials_can_run_side_by_side():
    alone, together = (plan(4, 2, quality=0.95, trials=2, max_votes=8, processes=count) for count in (1, 2))
    assert alone == together


@pytest.mark.parametrize(
    ("closeness", "reached"),
    [
        ([0.9, 0.9, 0.9], 10),
        ([0.5, 0.5, 0.9], 20 * 2**0.75),
        ([0.9, 0.5, 0.9], 20 * 2**0.75),
        ([0.9, 0.9, 0.5], np.inf),
    ],
    ids=["from the first look", "between two looks", "for good", "lost again"],
)
def test_a_target_is_reached_when_it_is_kept(closeness, reached):
    assert Trajectory([10, 20, 40], closeness).reached(0.8) == pytest.approx(reached)


def test_a_trial_ends_when_the_target_held_or_is_out_of_reach():
    assert not Trajectory([10, 20], [0.5, 0.9]).is_over(0.8, max_votes=1000)
    assert not Trajectory([10, 20, 40], [0.5, 0.9, 0.9]).is_over(0.8, max_votes=1000)
    assert Trajectory([10, 20, 22, 24, 26, 28, 40], [0.5, *[0.9] * 6]).is_over(0.8, max_votes=1000)
    assert not Trajectory([100], [0.0]).is_over(0.9, max_votes=1000)
    assert Trajectory([201], [0.0]).is_over(0.9, max_votes=1000)


def test_a_trial_without_end_makes_quantiles_infinite():
    made = Plan(
        target="tau 0.9",
        items=10,
        annotators=2,
        policy="random",
        price=1.0,
        probability=0.5,
        max_votes=500,
        reached=(100.0, 200.0, np.inf),
        curve=(CurvePoint(500, 0.8, 0.1),),
    )
    assert made.votes == 200
    assert made.interval == (pytest.approx(120), np.inf)
    assert made.lines()[2:] == [
        "Eight collections in ten needed between 120 and more than 500 votes.",
        "1 of 3 collections missed the target within 500 votes.",
    ]


def test_the_chain_runs_less_often_as_votes_grow():
    model = ThrottledMCMC(refit_every=2, warmup=5, draws=10)
    crowd = respondents(6, 3)
    beliefs, walks = model.start(crowd.items, crowd.annotators), []
    log = run_collection(Random(), crowd, 45, OnlineCrowdBT(), np.random.default_rng(0))
    for vote, (question, winner) in enumerate(zip(log.questions, log.winners, strict=True), 1):
        beliefs = model.update(beliefs, question.answered(winner))
        walks += [] if beliefs.n_pending else [vote]
    assert np.all(np.diff(walks) == 2)
    more = beliefs.replace(n_judgments=100)
    assert model.update(more, log.questions[0].answered(log.winners[0])).n_pending == beliefs.n_pending + 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"target": "item1 over item2"}, "The target of a plan must be"),
        ({"target": "tau high"}, "Unknown decision"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"price": -1.0}, "price must be zero or more"),
        ({"probability": 1.0}, "probability must lie between"),
        ({"quality": "gamma(1,2)"}, "gamma"),
    ],
)
def test_impossible_plans_are_refused(wrong, told):
    with pytest.raises((SettingError, KeyError), match=told):
        plan(**{"items": 5, "annotators": 2, **wrong})
