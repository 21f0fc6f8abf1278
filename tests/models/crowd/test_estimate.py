"""MAP estimates of the Crowd-BT family: the optimum, what is recovered, standard errors."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from crowdrank import BradleyTerry, Comparisons, CrowdBT, FactorBT, VarianceBT
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError
from crowdrank.evaluation import accuracy, cross_validate
from crowdrank.models.base import FitOptions
from crowdrank.models.crowd import Priors, fit_map, fitting
from crowdrank.models.crowd.factor_bt import ScaledFeatures
from crowdrank.models.crowd.likelihood import CROWD_BT, FACTOR_BT, VARIANCE_BT
from crowdrank.simulation import crowd_bt, factor_crowd, mixed_crowd, with_spammers
from tests.strategies import joint_crowd_bt


@pytest.fixture(scope="module")
def crowd():
    return crowd_bt(items=30, annotators=20, pairs=150, votes=8, quality="beta(2,1)", seed=3)


def crowd_bt_objective(x, votes, model):
    """Eq. 8 with the priors, written out plainly."""
    scores, logits = np.split(x, [len(votes.items)])
    won = np.where(votes.outcome > 0, votes.left, votes.right)
    lost = np.where(votes.outcome > 0, votes.right, votes.left)
    eta, p = expit(logits)[votes.annotator], expit(scores[won] - scores[lost])
    alpha, beta = model.quality_prior
    prior = alpha * log_expit(logits) + beta * log_expit(-logits)
    return np.log(eta * p + (1 - eta) * (1 - p)).sum() - 0.5 * scores @ scores / model.prior_scale**2 + prior.sum()


def test_crowd_bt_stands_where_an_independent_solver_ends(crowd):
    votes, model = crowd.judgments, joint_crowd_bt(tolerance=1e-6)
    ranking = model.fit(votes)
    quality = ranking.annotators["quality"]
    x = np.concatenate((ranking.scores, np.log(quality / (1 - quality))))
    ours = crowd_bt_objective(x, votes, model)
    rival = minimize(
        lambda x: -crowd_bt_objective(x, votes, model), x + 0.05, method="L-BFGS-B", options={"maxiter": 40}
    )
    assert -rival.fun <= ours + 1e-6
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert crowd_bt_objective(x + 1e-3 * rng.normal(size=len(x)), votes, model) <= ours + 1e-9


def test_a_step_off_the_optimum_is_noticed(crowd):
    """The negative control of the test above."""
    votes, model = crowd.judgments, joint_crowd_bt(tolerance=1e-6)
    ranking = model.fit(votes)
    quality = ranking.annotators["quality"]
    x = np.concatenate((ranking.scores, np.log(quality / (1 - quality))))
    aside = x.copy()
    aside[0] += 0.2
    assert crowd_bt_objective(aside, votes, model) < crowd_bt_objective(x, votes, model) - 1e-4


def test_crowd_bt_finds_the_quality_of_annotators(crowd):
    ranking = joint_crowd_bt().fit(crowd.judgments)
    assert np.corrcoef(ranking.annotators["quality"], crowd.annotators["quality"])[0, 1] > 0.9
    assert accuracy(ranking.scores, crowd.truth) > accuracy(BradleyTerry().fit(crowd.judgments).scores, crowd.truth)


def test_reversed_annotators_are_turned_round():
    crowd = mixed_crowd(items=20, kinds={"good": 8, "reversed": 4}, votes_each=60, seed=1)
    ranking = joint_crowd_bt().fit(crowd.judgments)
    kinds = crowd.annotators["kind"]
    assert ranking.annotators["quality"][kinds == "reversed"].max() < 0.3
    assert ranking.annotators["quality"][kinds == "good"].min() > 0.7
    assert accuracy(ranking.scores, crowd.truth) > 0.9


def test_intervals_of_quality_hold_the_truth():
    inside = []
    for seed in range(6):
        crowd = crowd_bt(
            items=20, annotators=25, pairs=120, votes=10, quality="beta(4,1.5)", labels="logistic", seed=seed
        )
        _, low, high = joint_crowd_bt(quality_prior=(4.0, 1.5)).fit(crowd.judgments).annotators.estimates["quality"]
        truth = crowd.annotators["quality"]
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.88 < np.mean(inside) <= 1.0


def test_intervals_of_scores_hold_the_truth():
    """On crowds drawn from the model itself, scores from the prior: 90 % intervals, in 85 to 95 % of cases."""
    inside = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        scores, quality = rng.normal(scale=1.5, size=25), rng.beta(4, 1.5, size=20)
        left = rng.integers(25, size=1500)
        right = (left + rng.integers(1, 25, size=1500)) % 25
        who = rng.integers(20, size=1500)
        truly, honest = rng.random(1500) < expit(scores[left] - scores[right]), rng.random(1500) < quality[who]
        winner = np.where(truly == honest, left, right)
        names = np.array([f"i{n:02d}" for n in range(25)], dtype=object)
        votes = Comparisons.of(names[left], names[right], names[winner], annotator=[f"w{k:02d}" for k in who])
        ranking = joint_crowd_bt(prior_scale=1.5, quality_prior=(4.0, 1.5)).fit(votes)
        away = np.abs(ranking.scores - (scores - scores.mean())) / ranking.uncertainty.std_error
        inside.append(np.mean(away < 1.645))
    assert 0.85 <= np.mean(inside) <= 0.95


@pytest.mark.parametrize(
    "model", [joint_crowd_bt(), FactorBT(), FactorBT(features=("position", "extra")), VarianceBT()]
)
def test_errors_are_those_of_the_whole_inverse(crowd, model):
    votes = replace(crowd.judgments, features={"extra": np.linspace(-1, 1, len(crowd.judgments))})
    formula = {CrowdBT: CROWD_BT, FactorBT: FACTOR_BT, VarianceBT: VARIANCE_BT}[type(model)]
    priors = {"quality": (4.0, 1.5)} if formula == CROWD_BT else {"logit": (1.0, 1.0), "feature_weight": 1.0}
    features = None
    if formula == FACTOR_BT:
        features = ScaledFeatures(model.features, dict.fromkeys(model.features, 1.0))
    estimate = fit_map(model, votes, formula, Priors(scale=3.0, **priors), FitOptions(), features)
    whole = np.linalg.inv(estimate.curvature.matrix())
    items, people = len(votes.items), len(votes.annotators)
    covariance, errors = estimate.curvature.marginal()
    np.testing.assert_allclose(covariance, whole[:items, :items], rtol=1e-8, atol=1e-10)
    expected = np.sqrt(np.diag(whole))[items:]
    np.testing.assert_allclose(errors[:, 0], expected[:people], rtol=1e-8)
    np.testing.assert_allclose(errors[:, 1:].ravel(), expected[people:], rtol=1e-8)


def test_many_items_are_measured_given_the_annotators(crowd, monkeypatch):
    exact = joint_crowd_bt().fit(crowd.judgments).uncertainty
    monkeypatch.setattr(fitting, "MAX_INVERTED_ITEMS", 1)
    ranking = joint_crowd_bt().fit(crowd.judgments)
    assert "given the annotators" in ranking.uncertainty.method
    ratio = ranking.uncertainty.std_error / exact.std_error
    assert 0.5 < np.median(ratio) < 1.2
    assert np.isfinite(ranking.annotators.frame()["quality_low"].to_numpy()).all()


def test_always_left_annotators_do_not_move_factor_bt():
    crowd = crowd_bt(items=30, annotators=20, pairs=200, votes=6, quality="beta(10,1)", seed=5)
    model = FactorBT()
    before = accuracy(model.fit(crowd.judgments).scores, crowd.truth)
    spoilt = with_spammers(crowd.judgments, 20, side="left", seed=1)
    assert accuracy(model.fit(spoilt).scores, crowd.truth) > before - 0.02
    assert accuracy(BradleyTerry().fit(spoilt).scores, crowd.truth) < before - 0.02
    people = model.fit(spoilt).annotators
    assert np.median(people["attention"][-20:]) < 0.5
    assert np.median(people["weight_of_position"][-20:]) > 1


def test_factor_bt_recovers_attention_and_feature_weights():
    crowd = factor_crowd(items=40, annotators=40, pairs=300, votes=12, seed=2)
    ranking = FactorBT(features=("factor1", "factor2"), attention_prior=(0.0, 1.0), prior_scale=10.0).fit(
        crowd.judgments
    )
    people = ranking.annotators
    assert np.corrcoef(people["attention"], expit(crowd.annotators["attention_logit"]))[0, 1] > 0.8
    assert np.corrcoef(people["weight_of_factor1"], crowd.annotators["feature_weight"][:, 0])[0, 1] > 0.6
    assert np.corrcoef(ranking.scores, crowd.truth)[0, 1] > 0.9


def test_variance_bt_finds_who_is_precise():
    crowd = mixed_crowd(items=20, kinds={"good": 8, "random": 4}, votes_each=60, seed=1)
    precision = VarianceBT().fit(crowd.judgments).annotators["precision"]
    kinds = crowd.annotators["kind"]
    assert precision[kinds == "good"].min() > precision[kinds == "random"].max()


@pytest.mark.parametrize("model", [joint_crowd_bt(), joint_crowd_bt(link="probit"), VarianceBT(), FactorBT()])
def test_modelling_annotators_predicts_better(crowd, model):
    assert cross_validate(model, crowd.judgments).mean > cross_validate(BradleyTerry(), crowd.judgments).mean + 0.02


def test_perfect_annotators_make_crowd_bt_bradley_terry():
    crowd = mixed_crowd(items=8, kinds={"good": 6}, votes_each=25, seed=4)
    sure = joint_crowd_bt(quality_prior=(1e7, 1.01)).fit(crowd.judgments)
    np.testing.assert_allclose(sure.scores, BradleyTerry(prior_scale=3.0).fit(crowd.judgments).scores, atol=2e-3)


def test_features_that_are_not_there_are_named():
    votes = Comparisons.of(["a", "b"], ["b", "a"], ["a", "a"], annotator=["x", "y"], features={"length": [1.0, 2.0]})
    with pytest.raises(UnknownNameError, match="length"):
        FactorBT(features=("lenght",)).fit(votes)
    with pytest.raises(DataError, match="which item was on the left"):
        FactorBT().fit(Comparisons.of(["a"], ["b"], ["a"], annotator=["x"], positions_known=False))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CrowdBT(prior_scale=None),
        lambda: CrowdBT(prior_scale=-1),
        lambda: CrowdBT(quality_prior=(1.0, 0.0)),
        lambda: CrowdBT(link="cauchy"),
        lambda: VarianceBT(precision_scale=0),
        lambda: FactorBT(features=()),
        lambda: FactorBT(feature_weight_scale=-1),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingError):
        wrong()


def test_models_without_annotators_say_so(crowd):
    with pytest.raises(DataError, match="has no estimates of annotators"):
        _ = BradleyTerry().fit(crowd.judgments).annotators


def test_dropped_ties_are_reported():
    votes = Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "tie", "c"], annotator=["x", "y", "x"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert any("ties were dropped" in note for note in joint_crowd_bt().fit(votes).notes)
        assert not any("left out" in note for note in joint_crowd_bt(ties="half").fit(votes).notes)
