"""Crowd-BT by default, with the annotators integrated out: the scale of the scores, who is found out, and settings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from crowdrank import BradleyTerry, Comparisons, CrowdBT, SideInformation
from crowdrank.errors import ConvergenceWarning, SettingError
from crowdrank.evaluation import accuracy
from crowdrank.models.crowd.hyperparameter_designs import StarExplorer
from crowdrank.simulation import mixed_crowd
from tests.strategies import joint_crowd_bt


def voted(scores, votes, annotators, seed, quality=1.0, nu=0.0):
    """Answers to random pairs by annotators of one quality, tied with the probability of Davidson's model."""
    rng = np.random.default_rng(seed)
    size = len(scores)
    left = rng.integers(size, size=votes)
    right = (left + rng.integers(1, size, size=votes)) % size
    margin = scores[left] - scores[right]
    left_won = (rng.random(votes) < expit(margin)) == (rng.random(votes) < quality)
    tied = rng.random(votes) < nu / (nu + 2 * np.cosh(margin / 2))
    names = np.array([f"i{n:02d}" for n in range(size)], dtype=object)
    winner = np.where(tied, "tie", np.where(left_won, names[left], names[right]))
    who = [f"w{k:04d}" for k in rng.integers(annotators, size=votes)]
    return Comparisons.of(names[left], names[right], winner, annotator=who)


def scale_of(found, truth):
    """Slope of the scores on the truth."""
    truth = truth - truth.mean()
    return float(found @ truth / (truth @ truth))


def test_equal_annotators_make_it_bradley_terry():
    truth = np.linspace(1.5, -1.5, 8)
    votes = voted(truth, 400, 10, seed=1)
    ranking = CrowdBT().fit(votes)
    assert scale_of(ranking.scores, BradleyTerry().fit(votes).scores) == pytest.approx(1.0, abs=0.25)
    assert ranking.annotators["quality"].min() > 0.7
    assert ranking.annotators.reversed == []


def test_many_casual_voters_do_not_stretch_the_scores():
    """Two answers each: estimating every voter's quality with the scores makes these far too wide."""
    truth = np.linspace(1.0, -1.0, 10)
    ours, joint = [], []
    for seed in range(2):
        votes = voted(truth, 1500, 800, seed)
        ours.append(scale_of(CrowdBT().fit(votes).scores, truth))
        joint.append(scale_of(joint_crowd_bt().fit(votes).scores, truth))
    assert 0.85 < np.mean(ours) < 1.4
    assert np.mean(joint) > 3


@pytest.fixture(scope="module")
def with_reversed():
    return mixed_crowd(items=10, kinds={"good": 6, "random": 2, "reversed": 2}, votes_each=40, seed=3)


def test_reversed_annotators_are_found(with_reversed):
    ranking = CrowdBT().fit(with_reversed.judgments)
    kinds = with_reversed.annotators["kind"]
    quality = ranking.annotators["quality"]
    assert quality[kinds == "reversed"].max() < 0.3
    assert quality[kinds == "good"].min() > 0.7
    assert accuracy(ranking.scores, with_reversed.truth) > 0.85
    assert ranking.parameters["reversed_probability"] < 0.05
    assert ranking.uncertainty.sampled


def test_estimates_lie_in_their_intervals(with_reversed):
    for estimate, low, high in CrowdBT().fit(with_reversed.judgments).annotators.estimates.values():
        assert np.all((low <= estimate) & (estimate <= high) & (low >= 0) & (high <= 1))


def test_gold_pairs_settle_the_sign():
    crowd = mixed_crowd(items=10, kinds={"good": 3, "reversed": 4}, votes_each=40, seed=2)
    names = [str(crowd.judgments.items.labels[n]) for n in np.argsort(-crowd.truth)]
    alone = CrowdBT().fit(crowd.judgments)
    assert accuracy(alone.scores, crowd.truth) < 0.5
    gold = SideInformation(gold=[(names[0], names[-1]), (names[1], names[-2]), (names[0], names[-3])])
    told = CrowdBT().fit(crowd.judgments, side_information=gold)
    assert accuracy(told.scores, crowd.truth) > 0.8
    assert told.parameters["reversed_probability"] == 0.0


@pytest.mark.parametrize("votes_count", [600, 3_000])
def test_gold_pairs_turn_a_crowd_that_surely_answers_in_reverse(votes_count):
    """The reading that all annotators are good is far more probable before the gold pair is known."""
    truth = np.linspace(3, -3, 10)
    votes = voted(truth, votes_count, 12, seed=7, quality=0.9).with_outcomes_reversed()
    known = SideInformation(gold=[("i00", "i09")], gold_weight=0)
    assert accuracy(CrowdBT().fit(votes).scores, truth) < 0.1
    ranking = CrowdBT().fit(votes, side_information=known)
    assert accuracy(ranking.scores, truth) > 0.9
    assert ranking.annotators.estimate("quality").max() < 0.5


def test_two_votes_each_do_not_turn_the_order_upside_down():
    """Far from the best hyperparameters the mode of the scores may turn; its mirror image is the better reading."""
    rng = np.random.default_rng(6)
    truth, quality = rng.standard_normal(30), rng.beta(3, 0.5, 8_000)
    left = rng.integers(30, size=15_000)
    right = (left + rng.integers(1, 30, size=15_000)) % 30
    who = rng.integers(8_000, size=15_000)
    won = (rng.random(15_000) < expit(truth[left] - truth[right])) == (rng.random(15_000) < quality[who])
    names = np.array([f"i{n:02d}" for n in range(30)], dtype=object)
    votes = Comparisons.of(names[left], names[right], np.where(won, names[left], names[right]), annotator=who)
    ranking = CrowdBT().fit(votes)
    assert np.corrcoef(ranking.scores, truth)[0, 1] > 0.9
    assert ranking.parameters["quality_mean"] > 0.7


def test_a_spread_that_only_the_order_supports_is_bounded():
    """Answers that depend on the order alone would allow any spread; that of equal annotators is not exceeded."""
    rng = np.random.default_rng(3)
    left = rng.integers(40, size=3_000)
    right = (left + rng.integers(1, 40, size=3_000)) % 40
    is_right = rng.random(3_000) < 0.9
    winner = np.where((left < right) == is_right, left, right)
    names = [f"i{n:02d}" for n in range(40)]
    votes = Comparisons.of(
        *([names[n] for n in side] for side in (left, right, winner)), annotator=rng.integers(20, size=3_000)
    )
    assert CrowdBT().fit(votes).parameters["prior_scale"] < 3.01


def test_a_crowd_that_may_be_upside_down_says_so():
    crowd = mixed_crowd(items=10, kinds={"good": 1, "reversed": 1}, votes_each=40, seed=1)
    ranking = CrowdBT().fit(crowd.judgments)
    assert ranking.parameters["reversed_probability"] > 0.05
    assert any("upside down" in note for note in ranking.notes)


def test_known_quality_and_ranges_hold(with_reversed):
    names = [str(name) for name in with_reversed.judgments.annotators]
    known = SideInformation(quality={names[0]: 0.6}, between={names[1]: (0.5, 0.65)})
    quality = CrowdBT().fit(with_reversed.judgments, side_information=known).annotators["quality"]
    assert quality[0] == pytest.approx(0.6)
    assert 0.5 < quality[1] < 0.65


def test_ties_are_used():
    truth = np.array([1.0, 0.9, -0.9, -1.0])
    votes = voted(truth, 600, 6, seed=4, nu=1.0)
    model = CrowdBT()
    ranking = model.fit(votes)
    tie = model.predict(ranking, votes)[:, 1]
    is_close = np.abs(truth[votes.left] - truth[votes.right]) < 0.5
    assert tie[is_close].mean() > tie[~is_close].mean() + 0.02
    assert tie.mean() == pytest.approx(np.mean(votes.outcome == 0), abs=0.04)
    assert set(ranking.annotators.estimates) == {"quality", "tie_tendency"}
    assert not any("ties were dropped" in note for note in ranking.notes)


def test_ties_draw_items_together():
    """Six wins and thirty ties are less of a lead than six wins alone."""
    wins = Comparisons.of(["a"] * 6, ["b"] * 6, ["a"] * 6, annotator=["x", "y"] * 3)
    both = Comparisons.of(["a"] * 36, ["b"] * 36, ["a"] * 6 + ["tie"] * 30, annotator=["x", "y"] * 18)
    assert CrowdBT().fit(both).scores[0] < CrowdBT().fit(wins).scores[0]


@pytest.mark.parametrize(
    "setting",
    [
        {"virtual_weight": 0.5},
        {"prior_scale": None, "virtual_weight": 0.5},
        {"quality_prior": None},
        {"start": "one"},
        {"solver": "alternating"},
    ],
    ids=str,
)
def test_settings_of_joint_estimation_are_refused(setting):
    with pytest.raises(SettingError, match='estimation="joint"'):
        CrowdBT(**setting)
    assert CrowdBT(estimation="joint", **setting).estimation == "joint"


def test_settings_that_are_given_are_kept(with_reversed):
    ranking = CrowdBT(prior_scale=0.7, quality_prior=(4.0, 1.0)).fit(with_reversed.judgments)
    assert ranking.parameters["prior_scale"] == pytest.approx(0.7)
    assert ranking.parameters["quality_mean"] == pytest.approx(0.8)
    assert ranking.parameters["quality_concentration"] == pytest.approx(5.0)


def test_coin_tosses_make_no_order():
    """At most one of ten tables claims a pair at .95."""
    claims = 0
    for seed in range(10):
        votes = voted(np.zeros(6), 60, 5, seed)
        draws = CrowdBT().fit(votes).uncertainty.draws
        above = np.mean(draws[:, :, None] > draws[:, None, :], axis=0)
        claims += bool(np.any(above > 0.95))
    assert claims <= 1


def thin_crowd(spread, seed, items=100, votes=1500, annotators=100):
    """Few answers per item by annotators of quality from Beta(2, 1), and the true scores."""
    rng = np.random.default_rng(seed)
    truth, quality = spread * rng.standard_normal(items), rng.beta(2.0, 1.0, annotators)
    left = rng.integers(items, size=votes)
    right = (left + rng.integers(1, items, size=votes)) % items
    who = rng.integers(annotators, size=votes)
    left_won = (rng.random(votes) < expit(truth[left] - truth[right])) == (rng.random(votes) < quality[who])
    names = np.array([f"i{n:03d}" for n in range(items)], dtype=object)
    winner = np.where(left_won, names[left], names[right])
    return Comparisons.of(names[left], names[right], winner, annotator=[f"w{k:03d}" for k in who]), truth - truth.mean()


def test_intervals_hold_where_items_have_few_answers():
    """At the mode the scores would be too close together, and their intervals hold about 60 %."""
    held = []
    for seed in (30, 31, 32):
        votes, truth = thin_crowd(3.0, seed, votes=4000)
        ranking = CrowdBT().fit(votes)
        low, high = np.quantile(ranking.uncertainty.draws, [0.025, 0.975], axis=0)
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(held) > 0.8


def test_items_with_few_answers_are_not_taken_for_equal():
    """By Laplace's approximation of the evidence these crowds look like coin tosses."""
    slopes, held = [], []
    for seed in (30, 31, 32):
        votes, truth = thin_crowd(1.0, seed, annotators=40)
        ranking = CrowdBT().fit(votes)
        slopes.append(scale_of(ranking.scores, truth))
        held.append(np.mean(np.abs(ranking.scores - truth) < 1.96 * ranking.uncertainty.std_error))
    assert np.mean(slopes) > 0.2
    assert np.mean(held) > 0.7


@pytest.mark.parametrize("settings", [{"prior_scale": 1.0}, {"quality_prior": (2.0, 1.0)}], ids=str)
def test_settings_are_kept_where_items_have_few_answers(settings):
    votes, truth = thin_crowd(1.0, seed=33)
    ranking = CrowdBT(**settings).fit(votes)
    found = ranking.parameters
    assert scale_of(ranking.scores, truth) > 0.1
    if "prior_scale" in settings:
        assert found["prior_scale"] == pytest.approx(1.0)
    else:
        assert found["quality_mean"] == pytest.approx(2.0 / 3.0)


def test_an_unfinished_fit_of_few_answers_says_so():
    votes, _ = thin_crowd(1.0, seed=33)
    with pytest.warns(ConvergenceWarning):
        CrowdBT(max_steps=1).fit(votes)


def test_annotators_of_two_minds_are_in_the_middle():
    """Good on half of the queries and reversed on the others: at the mode of the scores they seem always reversed."""
    rng = np.random.default_rng(3)
    left, right = rng.integers(6, size=(2, 1600))
    left, right, query = left[left != right], right[left != right], rng.integers(30, size=np.sum(left != right))
    truth, who = rng.standard_normal((30, 6)), rng.integers(8, size=len(left))
    is_reversed = (who == 0) & (query < 15) | (who == 1) & (query >= 15)
    left_won = (rng.random(len(left)) < expit(4.0 * (truth[query, left] - truth[query, right]))) != is_reversed
    names = [[f"i{n}" for n in side] for side in (left, right, np.where(left_won, left, right))]
    votes = Comparisons.of(*names, annotator=[f"w{k}" for k in who], query=[f"q{n:02d}" for n in query])
    quality = CrowdBT().fit(votes).annotators["quality"]
    assert np.all((quality[:2] > 0.3) & (quality[:2] < 0.7))
    assert np.all(quality[2:] > 0.9)


def test_many_items_with_few_answers_are_not_left_at_the_mode(monkeypatch):
    votes, truth = thin_crowd(1.0, seed=11, items=820, votes=40_000, annotators=400)
    ranking = CrowdBT().fit(votes)
    monkeypatch.setattr(StarExplorer, "_smoothed", lambda explorer, mode: mode)
    at_mode = CrowdBT().fit(votes)
    assert scale_of(ranking.scores, truth) > scale_of(at_mode.scores, truth) + 0.03
    held, held_at_mode = (
        np.mean(np.abs(one.scores - truth) < 1.96 * one.uncertainty.std_error) for one in (ranking, at_mode)
    )
    assert held > held_at_mode


@pytest.mark.parametrize("seed", range(3))
def test_coin_tosses_among_many_items_make_no_order(seed):
    """Half the annotators reversed would explain them too, with scores that differ."""
    votes, _ = thin_crowd(0.0, seed)
    ranking = CrowdBT().fit(votes)
    assert np.std(ranking.scores) < 0.2
    assert set(ranking.to_polars()["group"]) == {1}


def test_orders_of_annotators_need_joint_estimation(with_reversed):
    names = [str(name) for name in with_reversed.judgments.annotators]
    known = SideInformation(better=[(names[0], names[1])])
    quality = CrowdBT().fit(with_reversed.judgments, side_information=known).annotators["quality"]
    assert quality[0] >= quality[1]
