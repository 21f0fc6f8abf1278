"""Factor-BT's features: numeric and categorical, of tasks and of items; their weights and their effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from crowdrank import BradleyTerry, Comparisons, FactorBT, Ranking
from crowdrank.errors import ConvergenceWarning, DataError, UnknownNameError
from crowdrank.evaluation import accuracy, cross_validate, log_probabilities
from crowdrank.results import bias_effects

ITEMS, PEOPLE, EACH = 16, 12, 120
STYLES = np.array(["bold", "neat", "plain"], dtype=object)[np.arange(ITEMS) % 3]
LENGTH = np.random.default_rng(5).integers(100, 900, ITEMS).astype(float)
ALL = FactorBT(features=("position", "length", "style", "layout"))


def crowd(seed=0, careless=0.5):
    """Half of the annotators mostly go for bold items, and for the left in a grid; the rest look at the items."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(scale=1.5, size=ITEMS)
    size = PEOPLE * EACH
    who = np.repeat(np.arange(PEOPLE), EACH)
    left = rng.integers(ITEMS, size=size)
    right = (left + rng.integers(1, ITEMS, size=size)) % ITEMS
    layout = np.array(["grid", "list"], dtype=object)[rng.integers(2, size=size)]
    drawn = who < careless * PEOPLE
    style = 1.0 * (STYLES[left] == "bold") - (STYLES[right] == "bold")
    bias = 2.5 * style + 2.0 * (layout == "grid")
    chance = np.where(drawn, 0.15, 0.95) * expit(truth[left] - truth[right]) + np.where(drawn, 0.85, 0.05) * expit(bias)
    names = np.array([f"i{n:02d}" for n in range(ITEMS)], dtype=object)
    votes = Comparisons.of(
        names[left],
        names[right],
        names[np.where(rng.random(size) < chance, left, right)],
        annotator=[f"w{k:02d}" for k in who],
        features={"layout": layout},
    )
    return votes.with_item_features({"length": LENGTH, "style": STYLES}), truth, drawn[::EACH]


@pytest.fixture(scope="module")
def fitted():
    votes, truth, drawn = crowd()
    return votes, truth, drawn, ALL.fit(votes)


def test_categories_have_one_weight_each(fitted):
    _, _, _, ranking = fitted
    assert list(ranking.annotators.estimates) == [
        "attention",
        "weight_of_position",
        "weight_of_length",
        "weight_of_style=bold",
        "weight_of_style=neat",
        "weight_of_style=plain",
        "weight_of_layout=grid",
        "weight_of_layout=list",
    ]


def test_weights_of_inattentive_annotators_are_found(fitted):
    _, _, drawn, ranking = fitted
    people = ranking.annotators
    assert people["attention"][drawn].max() < people["attention"][~drawn].min()
    to_bold = people["weight_of_style=bold"] - (people["weight_of_style=neat"] + people["weight_of_style=plain"]) / 2
    assert np.median(to_bold[drawn]) > 1
    assert np.median((people["weight_of_layout=grid"] - people["weight_of_layout=list"])[drawn]) > 1
    low, high = people.estimates["weight_of_length"][1:]
    assert np.mean((low < 0) & (high > 0)) > 0.8


def test_taking_the_features_out_ranks_better(fitted):
    votes, truth, _, ranking = fitted
    assert accuracy(ranking.scores, truth) > accuracy(BradleyTerry().fit(votes).scores, truth)
    assert accuracy(ranking.scores, truth) > accuracy(FactorBT().fit(votes).scores, truth) - 0.01


def test_features_that_matter_predict_better(fitted):
    votes, *_ = fitted
    assert cross_validate(ALL, votes, folds=2).mean > cross_validate(FactorBT(), votes, folds=2).mean + 0.01


def test_a_feature_may_be_measured_in_any_unit(fitted):
    """Metres or millimetres: the same scores and probabilities, weights per unit, and the size of a unit recorded."""
    votes, _, _, ranking = fitted
    finer = replace(votes, features={**votes.features, "length": votes.features["length"] * 1000})
    again = ALL.fit(finer)
    np.testing.assert_allclose(again.scores, ranking.scores, atol=1e-5)
    for part, same in zip(*(r.annotators.estimates["weight_of_length"] for r in (again, ranking)), strict=True):
        np.testing.assert_allclose(1000 * part, same, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ALL.predict(again, finer), ALL.predict(ranking, votes), atol=1e-5)
    rms = np.sqrt(np.mean(votes.features["length"] ** 2))
    assert ranking.parameters["unit_of_length"] == pytest.approx(rms)
    assert again.parameters["unit_of_length"] == pytest.approx(1000 * rms)


def test_a_weight_counts_as_repetition_in_the_unit_too(fitted):
    votes, *_ = fitted
    some = votes.take(np.arange(0, len(votes), 10))
    weight = np.random.default_rng(0).integers(1, 4, len(some))
    model = FactorBT(features=("length",))
    heavy, often = model.fit(some.reweighted(weight)), model.fit(some.take(np.repeat(np.arange(len(some)), weight)))
    np.testing.assert_allclose(heavy.scores, often.scores, atol=1e-6)
    assert heavy.parameters["unit_of_length"] == pytest.approx(often.parameters["unit_of_length"])


def test_columns_of_one_and_nought_are_left_as_they_are():
    votes, *_ = crowd()
    signs = np.sign(votes.features["length"])
    assert "unit_of_sign" not in FactorBT(features=("sign",)).fit(replace(votes, features={"sign": signs})).parameters


@pytest.mark.parametrize("column", [np.zeros(60), np.full(60, 7.0), np.full(60, 1e200), np.full(60, 1e-200)])
def test_a_column_that_never_changes_does_no_harm(column):
    votes, *_ = crowd()
    ranking = FactorBT(features=("position", "flat")).fit(replace(votes.take(np.arange(60)), features={"flat": column}))
    assert np.isfinite(ranking.scores).all()
    assert np.isfinite(ranking.annotators["weight_of_flat"] * column[0]).all()
    assert all(np.isfinite(effect).all() for _, *effect in bias_effects(ranking))


def test_unseen_categories_have_no_weight(fitted):
    votes, _, _, ranking = fitted
    some = votes.take(np.arange(40))
    strange = replace(some, features={**some.features, "layout": np.full(40, "stack", dtype=object)})
    only = replace(some, features={**some.features, "layout": np.full(40, "grid", dtype=object)})
    without = FactorBT(features=("position", "length", "style"))
    np.testing.assert_allclose(ALL.predict(ranking, strange), without.predict(ranking, some))
    assert not np.allclose(ALL.predict(ranking, only), ALL.predict(ranking, strange))


def test_a_saved_ranking_predicts_and_has_effects_as_before(fitted, tmp_path):
    votes, _, _, ranking = fitted
    ranking.save(tmp_path / "ranking.json", uncertainty=False)
    again = Ranking.load(tmp_path / "ranking.json")
    np.testing.assert_allclose(log_probabilities(ALL, again, votes), log_probabilities(ALL, ranking, votes))
    assert bias_effects(again) == bias_effects(ranking)


def test_what_is_missing_or_misspelt_is_named(fitted):
    votes, *_ = fitted
    with pytest.raises(UnknownNameError, match="did you mean 'layout'"):
        FactorBT(features=("layuot",)).fit(votes)
    late = replace(votes, features={"late": np.append(np.nan, np.ones(len(votes) - 1))})
    with pytest.raises(DataError, match="'late' has missing values: 1 of"):
        FactorBT(features=("late",)).fit(late)


def test_the_effects_on_a_crowd_are_found(fitted):
    _, _, _, ranking = fitted
    found = {effect.feature: effect for effect in bias_effects(ranking)}
    assert found["length"].unit == pytest.approx(ranking.parameters["unit_of_length"])
    assert found["length"].low < 0 < found["length"].high
    assert found["layout=list"].unit == 1
    assert found["style=bold"].low > 0
    # half of the crowd answers 85 % of the time by f(2.5 · bold): 0.18 beyond chance, less what the prior holds back
    gained = found["style=bold"].effect - (found["style=neat"].effect + found["style=plain"].effect) / 2
    assert 0.08 < gained < 0.25


def test_the_effect_of_position_is_the_excess_of_left_answers():
    """Of items all alike: 40 % of all answers are always left, so 70 % of answers are left, 0.2 beyond one half."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(20), 200)
    left, right = rng.permuted(np.tile(np.arange(5), (len(who), 1)), axis=1)[:, :2].T
    says_left = np.where(who < 8, rng.random(len(who)) < 0.98, rng.random(len(who)) < 0.5)
    names = np.array(list("abcde"), dtype=object)
    votes = Comparisons.of(
        names[left], names[right], names[np.where(says_left, left, right)], annotator=[f"w{k:02d}" for k in who]
    )
    (effect,) = bias_effects(FactorBT().fit(votes))
    assert effect.feature == "position"
    assert effect.low < 0.4 * 0.48 < effect.high
    assert effect.effect == pytest.approx(0.4 * 0.48, abs=0.04)
    mirror = replace(votes, left=votes.right, right=votes.left, outcome=-votes.outcome)
    (other,) = bias_effects(FactorBT().fit(mirror))
    assert other.effect == pytest.approx(-effect.effect, abs=1e-4)


def test_models_without_features_have_no_effects():
    votes, *_ = crowd()
    assert bias_effects(BradleyTerry().fit(votes)) == []


def determined(spammers):
    """Eight items in their order by 20 honest annotators, and spammers for the left side or for the worse half."""
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(20 + spammers), 16)
    left, right = np.array([rng.choice(8, 2, replace=False) for _ in who]).T
    brand = (left > 3) * 1.0 - (right > 3)
    spam = np.where(who % 2, True, np.where(brand == 0, rng.random(len(who)) < 0.5, brand > 0))
    says_left = np.where(who < 20, rng.random(len(who)) < expit(right - left), spam)
    names = [np.array(list("abcdefgh"))[side] for side in (left, right)]
    return Comparisons.of(*names, np.where(says_left, *names), annotator=who.astype(str), features={"brand": brand})


def test_the_spread_of_feature_weights_makes_room_for_determined_spammers():
    model, votes = FactorBT(features=("position", "brand")), determined(40)
    found, narrow = model.fit(votes), replace(model, feature_weight_scale=1.0).fit(votes)
    right = -np.arange(8.0)
    assert accuracy(found.scores, right) > max(0.9, accuracy(narrow.scores, right) + 0.2)
    assert found.parameters["feature_weight_scale"] > 3
    assert FactorBT().fit(determined(0)).parameters["feature_weight_scale"] < 3


def test_the_published_procedure_has_no_priors():
    model = FactorBT(features=("position", "brand"), inference="published", max_steps=60)
    with pytest.warns(ConvergenceWarning):
        ranking = model.fit(determined(20))
    assert accuracy(ranking.scores, -np.arange(8.0)) > 0.8
    attention = ranking.annotators.estimate("attention")
    honest = np.array([int(label) < 20 for label in ranking.annotators.labels])
    assert attention[honest].mean() > attention[~honest].mean() + 0.2


def test_the_published_gradient_is_that_of_its_target():
    from scipy.optimize import check_grad

    from crowdrank.models.crowd import factor_bt as published

    rng = np.random.default_rng(1)
    answers = published.Answers(
        *rng.integers(3, size=(2, 30)), rng.integers(4, size=30), np.ones(30), rng.normal(size=(30, 2)), np.ones(30)
    )
    known = (answers, 3, 4, 0.5)
    at = rng.normal(size=4 + 4 + 8)
    error = check_grad(
        lambda x: published._negative_target(x, *known)[0], lambda x: published._negative_target(x, *known)[1], at
    )
    assert error < 1e-4
