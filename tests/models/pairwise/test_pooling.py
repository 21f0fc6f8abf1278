"""Random effects of bradley-terry and thurstone: partial pooling of queries, tie tendencies of items."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, Thurstone
from crowdrank.data import Items
from crowdrank.engines import LOCAL
from crowdrank.errors import DataError, SettingError
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, THRESHOLD
from crowdrank.models.pairwise.paired import pairs_of_rows
from crowdrank.models.pairwise.pooling import EffectObjective, Layout
from crowdrank.results import category_differences
from tests.pipeline.arenas import NAMES, QUALITY, arena_by_category

DATA = Path(os.environ.get("CROWDRANK_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
ARENA = DATA / "leaderbot_arena_20240814" / "chatbotarena_20240814.json"


def by_topic(seed, **settings):
    columns, strength = arena_by_category(seed, **settings)
    votes = Comparisons.of(columns["left"], columns["right"], columns["winner"], query=columns["topic"])
    return votes, strength


def together(votes):
    """The votes without categories."""
    labels, code = np.unique(votes.items.labels.astype(str), return_inverse=True)
    code = code.astype(np.int32)
    return replace(votes, items=Items.of(labels.tolist()), left=code[votes.left], right=code[votes.right])


def log_likelihood(model, fitted, held_out):
    probability = model.predict(model.fit(fitted), held_out)
    return float(np.log(probability[np.arange(len(held_out)), 1 - held_out.outcome]).mean())


@pytest.mark.parametrize(
    ("formula", "pooled"), [(LOGISTIC, True), (DAVIDSON, True), (DAVIDSON, False), (THRESHOLD, True)]
)
def test_gradient_and_curvature_are_those_of_the_value(formula, pooled):
    votes, _ = by_topic(1, votes=60, ties=formula != LOGISTIC)
    layout = Layout(votes.items, pooled, formula != LOGISTIC, formula != LOGISTIC)
    scales = {block.name: 0.7 for block in layout.blocks}
    objective = EffectObjective(LOCAL.load(pairs_of_rows(votes)), layout, formula, scales)
    x = np.random.default_rng(2).normal(0, 0.1, layout.size)
    here, step = objective(x), 1e-5
    for n in range(layout.size):
        there = [objective(x + sign * step * np.eye(layout.size)[n]) for sign in (1, -1)]
        slope = (there[0].value - there[1].value) / (2 * step)
        assert here.gradient[n] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        if formula != THRESHOLD:  # whose curvature is that of Gauss and Newton
            change = (there[1].gradient - there[0].gradient) / (2 * step)
            np.testing.assert_allclose(here.curvature.matrix()[n], change, rtol=1e-4, atol=1e-4)


def test_categories_that_are_alike_have_one_ranking():
    votes, _ = by_topic(3, spread=0.0, votes=3000)
    pooled, plain = BradleyTerry(pooling="partial").fit(votes), BradleyTerry().fit(together(votes))
    assert pooled.parameters["deviation_scale"] < 0.2
    np.testing.assert_allclose(pooled.overall.scores, plain.scores, atol=0.08)
    np.testing.assert_allclose(pooled.overall.uncertainty.std_error, plain.uncertainty.std_error, rtol=0.3)
    assert not category_differences(pooled)["sure"].any()


def test_categories_that_differ_keep_rankings_of_their_own():
    votes, strength = by_topic(4, spread=1.0, votes=6000)
    ranking = BradleyTerry(pooling="partial").fit(votes)
    assert 0.7 < ranking.parameters["deviation_scale"] < 1.4
    truth = ranking.items.centre(strength.ravel())
    error = ranking.uncertainty.std_error
    assert np.mean(np.abs(ranking.scores - truth) < 1.96 * error) > 0.85
    found = category_differences(ranking)
    assert found["sure"].sum() > 8
    overall = strength.mean(axis=0) - strength.mean()
    assert np.corrcoef(ranking.overall.scores, overall)[0, 1] > 0.97


def test_a_small_category_borrows():
    """The smallest of four categories has a tenth of the votes: pooled scores are nearer the truth."""
    own, pooled = [], []
    for seed in range(5):
        votes, strength = by_topic(seed, spread=0.3, votes=800)
        truth = strength[0] - strength[0].mean()
        for model, errors in ((BradleyTerry(), own), (BradleyTerry(pooling="partial"), pooled)):
            errors.append(np.sqrt(np.mean((model.fit(votes).scores[:8] - truth) ** 2)))
    assert np.mean(pooled) < 0.9 * np.mean(own)


def test_held_out_votes_are_predicted_better_than_by_one_board_or_a_board_each():
    gains = []
    for seed in range(6):
        votes, _ = by_topic(20 + seed, spread=0.5, votes=1600)
        chosen = np.random.default_rng(seed).random(len(votes)) < 0.5
        fitted, rest = votes.take(np.flatnonzero(chosen)), votes.take(np.flatnonzero(~chosen))
        pooled = log_likelihood(BradleyTerry(pooling="partial"), fitted, rest)
        one = log_likelihood(BradleyTerry(), together(fitted), together(rest))
        each = log_likelihood(BradleyTerry(), fitted, rest)
        gains.append((pooled - one, pooled - each))
    assert np.all(np.mean(gains, axis=0) > 0)


@pytest.mark.parametrize("model", [BradleyTerry, Thurstone])
def test_an_item_that_is_often_tied_has_a_tie_tendency(model):
    rng = np.random.default_rng(5)
    left = rng.integers(8, size=4000)
    right = (left + rng.integers(1, 8, size=4000)) % 8
    effect = np.where(np.arange(8) == 2, 1.5, 0.0)
    margin, tie = QUALITY[left] - QUALITY[right], -1.0 + effect[left] + effect[right]
    weight = np.exp(np.stack((margin / 2, tie, -margin / 2)))
    outcome = (rng.random(4000) > np.cumsum(weight / weight.sum(axis=0), axis=0)[:2]).sum(axis=0)
    winner = np.choose(outcome, (NAMES[left], np.full(4000, "tie"), NAMES[right]))
    votes = Comparisons.of(NAMES[left], NAMES[right], winner)
    plain, own = model(), model(ties="per-item")
    ranking = own.fit(votes)
    tendency = ranking.item_parameters["tie_effect"]
    assert int(np.argmax(tendency)) == 2
    assert tendency[2] - np.median(tendency) > (1.0 if model is BradleyTerry else 0.3)
    np.testing.assert_allclose(own.predict(ranking, votes).sum(axis=1), 1.0)
    assert ranking.log_likelihood > plain.fit(votes).log_likelihood + 20
    if model is BradleyTerry:
        np.testing.assert_allclose(ranking.scores, QUALITY - QUALITY.mean(), atol=0.25)


def test_without_differences_in_ties_the_fit_is_the_plain_one():
    votes, _ = by_topic(6, spread=0.0, votes=3000)
    votes = together(votes)
    own = BradleyTerry(ties="per-item", prior_scale=1.0).fit(votes)
    np.testing.assert_allclose(own.scores, BradleyTerry(prior_scale=1.0).fit(votes).scores, atol=0.03)
    assert own.parameters["prior_scale"] == 1.0


def test_answers_that_both_are_bad_are_kept_apart():
    left, right = ["a", "b", "a", "c"] * 10, ["b", "c", "c", "a"] * 10
    winner = ["a", "b", "both_bad", "tie", "b", "b", "a", "a"] * 5
    votes = Comparisons.of(left, right, winner)
    apart = BradleyTerry(both_bad="apart").fit(votes)
    kept = votes.take(np.flatnonzero(~votes.both_bad))
    np.testing.assert_allclose(apart.scores, BradleyTerry().fit(kept).scores)
    np.testing.assert_allclose(apart.item_parameters["both_bad"], [5 / 30, 0.0, 5 / 30])
    assert any("5 answers say that both are bad" in note and "apart" in note for note in apart.notes)
    assert any("counts them as ties" in note for note in BradleyTerry().fit(votes).notes)
    with pytest.raises(DataError, match="nothing is left"):
        BradleyTerry(both_bad="apart").fit(Comparisons.of(["a"], ["b"], ["both_bad"]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"pooling": "full"}, "none or partial"),
        ({"both_bad": "no"}, "tie or apart"),
        ({"pooling": "partial", "prior_scale": None}, "needs a prior"),
        ({"ties": "per-item", "covariates": ("position",)}, "covariates"),
        ({"ties": "per-item", "virtual_weight": 1.0}, "virtual_weight"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, problem):
    with pytest.raises(SettingError, match=problem):
        BradleyTerry(**settings)


@pytest.mark.skipif(not ARENA.exists(), reason="the arena's votes are not here: set CROWDRANK_DATA")
def test_ties_of_an_arena_are_predicted_as_well_as_published():
    """leaderbot publishes 1.0100 for Davidson's ties and 1.0075 for its best model."""
    content = json.loads(ARENA.read_text(encoding="utf-8"))
    pairs, weight = np.array(content["X"], np.int32), np.array(content["Y"], np.float64).ravel()
    votes = Comparisons(
        items=Items.of(content["models"]),
        left=np.repeat(pairs[:, 0], 4)[weight > 0],
        right=np.repeat(pairs[:, 1], 4)[weight > 0],
        outcome=np.tile(np.array([1, -1, 0, 0], np.int8), len(pairs))[weight > 0],
        both_bad=np.tile([False, False, False, True], len(pairs))[weight > 0],
        weight=weight[weight > 0],
        annotators=np.array([], object),
    )
    kept, losses = votes.take(~votes.both_bad), []
    for model in (BradleyTerry(both_bad="apart"), BradleyTerry(both_bad="apart", ties="per-item")):
        probability = model.predict(model.fit(votes), kept)
        chosen = np.log(probability[np.arange(len(kept)), 1 - kept.outcome])
        losses.append(-float(kept.weights @ chosen / kept.weights.sum()))
    assert round(losses[0], 4) <= 1.0100
    assert losses[1] <= 1.0080


def test_many_votes_on_few_items_without_ties_are_pooled():
    """Bradley-Terry counts such votes in a table of wins, which partial pooling cannot use."""
    rng = np.random.default_rng(3)
    left, right = np.array(["a", "b", "c"] * 60), np.array(["b", "c", "a"] * 60)
    votes = Comparisons.of(left, right, np.where(rng.random(180) < 0.7, left, right), query=["x", "y"] * 90)
    ranking = BradleyTerry(pooling="partial").fit(votes)
    assert sorted(ranking.overall.items.labels) == ["a", "b", "c"]
    assert np.isfinite(ranking.scores).all()
