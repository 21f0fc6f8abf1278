"""Comparison of models: candidates, scores, and the recommendation."""

from __future__ import annotations

import json

import numpy as np
import pytest

from crowdrank import Comparisons, Gold, Rankings, Ratings
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation import compare_models, cross_validate
from crowdrank.evaluation.cross_validation import clustered_mean
from crowdrank.evaluation.model_comparison import ModelScore
from crowdrank.evaluation.recommendation import SLOW_MAX_JUDGMENTS, Candidates, recommend, select_candidates
from crowdrank.models import BradleyTerry, CrowdBT
from crowdrank.models.selection import default_model
from crowdrank.simulation import crowd_bt, factor_crowd, list_crowd, mixed_crowd

MODELS = ["bradley-terry", "crowd-bt", "factor-bt"]
SIZES = {"items": 20, "annotators": 20, "pairs": 120, "votes": 10}
PLAIN = crowd_bt(**SIZES, quality="1", labels="logistic", seed=1).judgments
UNEQUAL_CROWD = crowd_bt(**SIZES, quality="beta(2,1)", labels="logistic", seed=1)
UNEQUAL = UNEQUAL_CROWD.judgments


@pytest.fixture(scope="module")
def unequal():
    gold = Gold.of(UNEQUAL.items.labels, UNEQUAL_CROWD.truth)
    return compare_models(UNEQUAL, [*MODELS, "borda"], gold=gold)


def lead_of(best, default):
    """A recommendation made of the held-out values of two models, one answer per annotator."""
    candidates = Candidates({}, {}, "bradley-terry", default_model(PLAIN))
    values = {"crowd-bt": default, "thurstone": best, "bradley-terry": default - 1}
    scores = [ModelScore(name, {}, {}, {}, None, None, 0.0, 0) for name in values]
    return recommend(PLAIN, candidates, scores, values, np.ones(100), np.arange(100), "log_likelihood")


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (-0.1, "No other model predicts held-out answers better."),
        (0.05, "thurstone leads by 0.050 ± 0.100 nats per answer, which is within one standard error."),
        (0.15, "thurstone leads by 0.150 ± 0.100 nats per answer, which may be chance."),
    ],
)
def test_the_default_is_recommended_unless_another_is_clearly_better(lead, said):
    noise = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    found = lead_of(-0.6 + lead + noise, np.full(100, -0.6))
    assert (found.model, found.default) == ("crowd-bt", "crowd-bt")
    assert found.why.startswith(f"Use crowd-bt, the default. {default_model(PLAIN).reason} {said}")


def test_another_model_that_is_clearly_better_is_recommended_with_its_lead():
    noise = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    found = lead_of(-0.3 + noise, np.full(100, -0.6))
    assert (found.model, found.default) == ("thurstone", "crowd-bt")
    assert "clearly better than crowd-bt, the default, by 0.300 ± 0.100 nats per answer" in found.why


def test_crowd_bt_is_recommended_for_unequal_annotators_with_its_gain(unequal):
    gain = unequal["crowd-bt"].log_likelihood["judgment"].gain
    assert unequal.recommendation.model == "crowd-bt"
    assert unequal.recommendation.why.startswith("Use crowd-bt, the default. The judgments name several annotators")
    assert gain.value > 0


def test_factor_bt_is_recommended_for_answers_that_follow_features():
    votes = factor_crowd(items=30, annotators=15, pairs=200, votes=12, seed=1).judgments
    found = compare_models(votes, MODELS, folds=3, quick=True).recommendation
    assert found.model == "factor-bt"
    assert "some annotators answer by factor1 and factor2" in found.why


def test_the_means_are_those_of_cross_validate(unequal):
    alone = cross_validate(CrowdBT(), UNEQUAL, folds=5, seed=0)
    assert unequal["crowd-bt"].log_likelihood["judgment"].mean.value == pytest.approx(alone.mean)
    strangers = cross_validate(BradleyTerry(), UNEQUAL, folds=5, seed=0, by="annotator")
    assert unequal["bradley-terry"].log_likelihood["annotator"].mean.value == pytest.approx(strangers.mean)


def test_gains_are_differences_of_means(unequal):
    plain, other = (unequal[name].log_likelihood["judgment"] for name in ("bradley-terry", "crowd-bt"))
    assert other.gain.value == pytest.approx(other.mean.value - plain.mean.value)
    assert plain.gain.value == 0
    assert unequal[unequal.best].log_likelihood["judgment"].deficit.value == 0
    assert unequal.models[0].model == unequal.best


def test_similar_answers_of_an_annotator_widen_the_error():
    values, weight = np.repeat([0.0, 1.0], 50), np.ones(100)
    apart = clustered_mean(values, weight, np.arange(100))
    together = clustered_mean(values, weight, np.repeat(np.arange(4), 25))
    assert apart.std_error == pytest.approx(0.05)
    assert together.std_error == pytest.approx(0.25)


def test_weights_count_as_repetition():
    values = np.array([0.0, 1.0, 3.0])
    once = clustered_mean(values, np.array([1.0, 1.0, 2.0]), np.arange(3))
    assert once.value == pytest.approx(clustered_mean(values[[0, 1, 2, 2]], np.ones(4), np.arange(4)).value)


def test_all_models_of_comparisons_are_candidates_except_slow_ones():
    entered = select_candidates(UNEQUAL)
    assert {"bradley-terry", "crowd-bt", "factor-bt", "borda", "elo"} <= set(entered.models)
    assert len(UNEQUAL) > SLOW_MAX_JUDGMENTS
    assert entered.left_out["bayesian-crowd-bt"].startswith("slow")
    assert "mean-rating" not in entered.models
    assert "bayesian-crowd-bt" in select_candidates(UNEQUAL, ["bayesian-crowd-bt"]).models
    assert "bayesian-crowd-bt" in select_candidates(UNEQUAL.take(np.arange(SLOW_MAX_JUDGMENTS))).models


def test_the_baseline_and_the_default_are_always_candidates():
    assert set(select_candidates(UNEQUAL, ["thurstone"]).models) == {"bradley-terry", "crowd-bt", "thurstone"}


def test_models_of_annotators_need_annotators():
    nameless = Comparisons(items=PLAIN.items, left=PLAIN.left, right=PLAIN.right, outcome=PLAIN.outcome)
    entered = select_candidates(nameless)
    assert "crowd-bt" not in entered.models
    found = compare_models(nameless, quick=False, models=["bradley-terry", "thurstone"])
    assert list(found.answers) == ["judgment"]
    assert "do not name several annotators" in found.recommendation.why


def test_sides_that_were_not_randomised_are_not_a_feature():
    first, second = np.minimum(PLAIN.left, PLAIN.right), np.maximum(PLAIN.left, PLAIN.right)
    labels = PLAIN.items.labels
    won = np.where((PLAIN.outcome > 0) == (PLAIN.left < PLAIN.right), labels[first], labels[second])
    who = PLAIN.annotators[PLAIN.annotator]
    sorted_pairs = Comparisons.of(labels[first], labels[second], won, annotator=who)
    assert "sides are unknown or not randomised" in select_candidates(sorted_pairs).left_out["factor-bt"]
    assert select_candidates(PLAIN).models["factor-bt"].features == ("position",)


def test_models_without_probabilities_are_scored_by_agreement(unequal):
    assert unequal["borda"].log_likelihood == {}
    assert 0.5 < unequal["borda"].agreement["judgment"].mean.value < 1
    assert unequal.recommendation.model == "crowd-bt"


def test_agreement_counts_equal_scores_half():
    votes = mixed_crowd(items=8, kinds={"good": 5}, votes_each=20, seed=3).judgments
    share = compare_models(votes, ["copeland"], folds=2, quick=True)["copeland"].agreement["judgment"].mean.value
    assert (share * len(votes) * 2) % 1 == pytest.approx(0, abs=1e-6)


def test_a_model_that_fails_is_left_out_with_the_reason(monkeypatch):
    def refuse(self, judgments, **options):
        raise DataError("not today")

    monkeypatch.setattr(CrowdBT, "fit", refuse)
    found = compare_models(PLAIN, ["crowd-bt", "thurstone"], folds=2)
    assert found.left_out["crowd-bt"] == "not today"
    assert {e.model for e in found.models} == {"bradley-terry", "thurstone"}


def test_every_model_is_evaluated_against_gold(unequal):
    assert all(score.evaluation.accuracy > 0.8 for score in unequal.models)
    assert unequal["borda"].accuracy_gain.std_error > 0
    assert unequal["bradley-terry"].accuracy_gain.value == 0
    assert "Against gold" in " ".join(unequal.recommendation.notes)


def test_models_of_ratings_are_compared_by_agreement():
    rng = np.random.default_rng(0)
    item, who = (part.ravel() for part in np.meshgrid(np.arange(12), np.arange(10)))
    ratings = Ratings.of(item, np.round(item / 3 + rng.normal(size=len(item)), 1), annotator=who)
    found = compare_models(ratings, ["mean-rating", "z-rating", "graded-response"])
    assert found.criterion == "agreement"
    assert found.recommendation.default == default_model(ratings).name


def test_lists_without_annotators_are_held_out_whole():
    lists = list_crowd(queries=1, items=6, annotators=40, seed=1).judgments
    nameless = Rankings(items=lists.items, item=lists.item, place=lists.place, offsets=lists.offsets)
    found = compare_models(nameless, quick=True)
    assert list(found.answers) == ["judgment"]
    assert {e.model for e in found.models} == {"plackett-luce", "borda"}


def test_ties_are_noted():
    rows = np.arange(len(PLAIN))
    outcome = np.where(rows % 4 == 0, 0, PLAIN.outcome).astype(np.int8)
    votes = Comparisons(
        items=PLAIN.items,
        left=PLAIN.left,
        right=PLAIN.right,
        outcome=outcome,
        annotators=PLAIN.annotators,
        annotator=PLAIN.annotator,
    )
    found = compare_models(votes, ["crowd-bt"], folds=2, quick=True)
    assert found.answers["judgment"] == len(PLAIN) - votes.ties
    assert "25% of the judgments are ties" in " ".join(found.recommendation.notes)


def test_progress_counts_every_fit_and_ends():
    heard = []
    compare_models(PLAIN, ["thurstone"], folds=2, on_progress=lambda name, done, of: heard.append((done, of)))
    assert heard == [(n + 1, 12) for n in range(12)]


def test_a_quick_look_at_many_judgments_holds_out_one_fold(monkeypatch):
    whole = compare_models(PLAIN, quick=True)
    monkeypatch.setattr("crowdrank.evaluation.model_comparison._MANY_JUDGMENTS", 100)
    part = compare_models(PLAIN, quick=True)
    assert whole.answers == {"judgment": len(PLAIN)}
    assert part.answers == {"judgment": len(PLAIN) // 5}


def test_a_comparison_can_be_written_as_json(unequal):
    content = json.loads(json.dumps(unequal.as_dict(), allow_nan=False))
    assert content["recommended"] == "crowd-bt"
    assert [row["model"] for row in content["models"]] == unequal.frame()["model"].to_list()


def test_the_seed_decides():
    first, again, other = (
        compare_models(PLAIN, ["thurstone"], seed=seed, folds=2, quick=True).frame() for seed in (1, 1, 2)
    )
    same = [name for name in first.columns if name != "seconds"]
    assert first.select(same).equals(again.select(same))
    assert not first.select(same).equals(other.select(same))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"folds": 1}, SettingError),
        ({"models": ["bradley-terry"]}, SettingError),
        ({"models": ["bradly-terry"]}, UnknownNameError),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong, error):
    with pytest.raises(error):
        compare_models(PLAIN, **wrong)


def test_too_few_judgments_are_refused():
    with pytest.raises(DataError, match="needs at least 20 judgments; got 19"):
        compare_models(PLAIN.take(np.arange(19)))
