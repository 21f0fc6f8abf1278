"""Control of covariates: effects next to the scores of bradley-terry and thurstone."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import crowdrank as cr
from crowdrank import BradleyTerry, Comparisons, Thurstone
from crowdrank.errors import DataError, SettingError
from crowdrank.models.pairwise.covariates import CovariateObjective, encode_pairs
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, PROBIT, THRESHOLD
from crowdrank.pipeline import RankOptions, run
from crowdrank.results import Ranking, covariate_effects, rank_changes
from tests.pipeline.arenas import NAMES, styled_arena

SEEDS = range(200, 220)


@pytest.mark.parametrize(("model", "probit"), [(BradleyTerry, False), (Thurstone, True)])
def test_the_order_that_style_reverses_is_restored(model, probit):
    restored = covered = reversed_without = 0
    for seed in SEEDS:
        votes = styled_arena(seed, probit=probit)
        ranking, plain = model(covariates=("style",)).fit(votes), model().fit(votes)
        (effect,) = covariate_effects(ranking)
        restored += ranking["m3"].rank < ranking["m4"].rank
        reversed_without += plain["m3"].rank > plain["m4"].rank
        covered += effect.low <= 1.0 <= effect.high
    assert restored == reversed_without == len(SEEDS)
    assert covered >= 18


def test_scores_and_coefficients_are_those_of_a_logistic_regression():
    votes = styled_arena(1)
    rows = np.arange(len(votes))
    design = np.zeros((len(votes), 9))
    design[rows, votes.left] += 1
    design[rows, votes.right] -= 1
    design[:, 8] = votes.features["style"]
    # the first item is the reference: its column is left out
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=5000)
    coefficients = other.fit(design[:, 1:], votes.outcome == 1).coef_[0]
    expected = np.append(0.0, coefficients[:7])
    ranking = BradleyTerry(covariates=("style",), prior_scale=None, tolerance=1e-8).fit(votes)
    np.testing.assert_allclose(ranking.scores, expected - expected.mean(), atol=1e-4)
    assert covariate_effects(ranking)[0].effect == pytest.approx(coefficients[7], abs=1e-4)


@pytest.mark.parametrize("formula", [LOGISTIC, PROBIT, DAVIDSON, THRESHOLD])
def test_gradient_and_curvature_are_derivatives(formula):
    votes = styled_arena(3, votes=60)
    votes = Comparisons.of(
        votes.items.labels[votes.left],
        votes.items.labels[votes.right],
        ["tie" if n % 5 == 0 else votes.items.labels[w] for n, w in enumerate(votes.left)],
        features={"style": votes.features["style"]},
    )
    held = cr.engines.LOCAL.load(encode_pairs(votes, ("style", "position"), np.array([2.0, 1.0])))
    objective = CovariateObjective(held, votes.items, formula, 1.5, 0.3, 3.0, 10.0)
    size = 8 + (formula in (DAVIDSON, THRESHOLD)) + 2
    x = np.random.default_rng(0).normal(size=size)
    x[8] = 0.7
    at, steps = objective(x), 1e-5 * np.eye(size)
    slopes = [(objective(x + step).value - objective(x - step).value) / 2e-5 for step in steps]
    np.testing.assert_allclose(at.gradient, slopes, atol=1e-5)
    hessian = [(objective(x - step).gradient - objective(x + step).gradient) / 2e-5 for step in steps]
    np.testing.assert_allclose(at.curvature.matrix(), hessian, atol=1e-5)


def test_without_effect_the_ranking_is_that_without_covariates():
    votes = styled_arena(4, effect=0.0)
    plain, controlled = BradleyTerry().fit(votes), BradleyTerry(covariates=("style", "position")).fit(votes)
    np.testing.assert_allclose(controlled.scores, plain.scores, atol=0.05)
    np.testing.assert_allclose(controlled.uncertainty.std_error, plain.uncertainty.std_error, rtol=0.15)
    for effect in covariate_effects(controlled):
        assert abs(effect.effect) < 4 * effect.std_error


def test_predictions_use_the_covariates():
    train, test = styled_arena(5), styled_arena(6)
    right = test.outcome == -1

    def log_loss(model):
        left, _, lost = model.predict(model.fit(train), test).T
        return -np.mean(np.log(np.where(right, lost, left)))

    assert log_loss(BradleyTerry(covariates=("style",))) < log_loss(BradleyTerry()) - 0.03


def test_weights_count_as_repetition():
    votes = styled_arena(7, votes=300)
    doubled = votes.reweighted(np.full(len(votes), 2.0))
    twice = votes.take(np.tile(np.arange(len(votes)), 2))
    fits = [BradleyTerry(covariates=("style",), prior_scale=1.0).fit(given) for given in (doubled, twice)]
    np.testing.assert_allclose(fits[0].scores, fits[1].scores, atol=1e-6)


def test_a_covariate_of_items_is_refused():
    votes = styled_arena(8, votes=300).with_item_features({"size": np.arange(8.0)})
    with pytest.raises(DataError, match=r"'size' is the same for an item .* cannot be separated from the scores"):
        BradleyTerry(covariates=("size",)).fit(votes)


def test_a_covariate_that_follows_from_others_is_refused():
    votes = styled_arena(8, votes=300)
    style = votes.features["style"]
    votes = Comparisons.of(
        NAMES[votes.left],
        NAMES[votes.right],
        NAMES[votes.left],
        features={"one": style, "two": 2 * style + 1, "no": 0 * style},
    )
    with pytest.raises(DataError, match="'position' follows from 'one', 'two' and the items"):
        BradleyTerry(covariates=("one", "two", "position")).fit(votes)
    with pytest.raises(DataError, match="'no' is 0 in every comparison"):
        BradleyTerry(covariates=("no",)).fit(votes)


def test_rank_shows_what_the_control_changes(tmp_path):
    ranking = cr.rank(styled_arena(9), features="style", control=True)
    assert ranking.model == "bradley-terry"
    assert ranking.settings["covariates"] == ("style",)
    changes = {row["item"]: row["change"] for row in rank_changes(ranking).to_dicts()}
    assert changes["m3"] > 0 > changes["m4"]
    ranking.save(tmp_path / "board.json")
    again = Ranking.load(tmp_path / "board.json")
    assert covariate_effects(again) == covariate_effects(ranking)
    assert rank_changes(again).equals(rank_changes(ranking))


def test_the_choice_of_the_model_says_why_annotators_count_alike():
    votes = styled_arena(1, votes=300)
    names = np.array(["ann", "bob", "cat"], object)
    votes = replace(votes, annotators=names, annotator=(np.arange(len(votes)) % 3).astype(np.int32))
    found = run(votes, RankOptions(features=("style",), control=True, uncertainty="none"))
    assert found.ranking.model == "bradley-terry"
    assert "crowd-bt, otherwise the default here, does not. All annotators count alike." in found.choice.reason
    kinds = {name: cr.AnnotatorDetails(kind=kind) for name, kind in zip(names, ("human", "llm", "llm"), strict=True)}
    found = run(votes, RankOptions(features=("style",), control=True, people=kinds, uncertainty="none"))
    assert "Without control=True, commensurate-bt removes how far the features bias" in found.choice.reason


def test_the_columns_of_two_sides_are_subtracted(crowdrank, tmp_path):
    votes = styled_arena(9, votes=1500)
    frame = votes.to_polars()
    base = np.random.default_rng(0).normal(size=len(votes))
    frame.drop("style").with_columns(style_a=base + frame["style"].to_numpy(), style_b=base).write_csv(
        tmp_path / "votes.csv"
    )
    ended = crowdrank("rank", tmp_path / "votes.csv", "--features", "style", "--control", "--json")
    found = json.loads(ended.out)
    expected = cr.rank(votes, features="style", control=True)
    assert found["covariates"][0]["effect"] == pytest.approx(covariate_effects(expected)[0].effect, abs=1e-6)
    assert [row["item"] for row in found["rank_changes"]] == list(expected)
    shown = crowdrank("rank", tmp_path / "votes.csv", "--features", "style", "--control")
    assert "coefficient" in shown.out
    assert "without control" in shown.out


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"model": "crowd-bt", "features": "style"}, "crowd-bt has no effects of features next to its scores"),
        ({"model": "factor-bt", "features": "style"}, "factor-bt models features as biases of annotators"),
        ({"model": "auto", "features": "style"}, "model='auto' compares others too"),
        ({}, "needs features="),
    ],
)
def test_what_cannot_be_controlled_is_refused(options, reason):
    with pytest.raises(SettingError, match=reason):
        cr.rank(styled_arena(9, votes=200), control=True, **options)
