"""The formulas of the Crowd-BT family: derivatives against finite differences, compiled loops against arrays."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank.models.crowd import likelihood, objective
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, FACTOR_BT, FORMULAS, Answers, evaluate
from crowdrank.models.crowd.objective import hessian_matrix, hessian_product, margin_curvature

ITEMS, PEOPLE, ROWS = 6, 4, 150
every_formula = pytest.mark.parametrize("formula", range(len(FORMULAS)), ids=[f.__name__ for f in FORMULAS])


def drawn(formula: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    winner = rng.integers(ITEMS, size=ROWS).astype(np.int32)
    loser = ((winner + rng.integers(1, ITEMS, size=ROWS)) % ITEMS).astype(np.int32)
    features = rng.normal(size=(ROWS, 2 if formula == FACTOR_BT else 0))
    shard = Answers(
        winner, loser, rng.integers(PEOPLE, size=ROWS).astype(np.int32), rng.uniform(0.5, 2, ROWS), features
    )
    at = rng.normal(size=ITEMS), rng.normal(size=PEOPLE), rng.normal(size=(PEOPLE, features.shape[1]))
    return shard, at, rng


def joined(parts):
    return np.concatenate([np.ravel(p) for p in parts])


def moved(at, way, step):
    return [a + step * w for a, w in zip(at, way, strict=True)]


def gradient(shard, at, formula):
    found = evaluate(shard, *at, formula)[1]
    return joined((found.scores, found.logits, found.feature_weights))


@every_formula
def test_gradients_agree_with_finite_differences(formula):
    shard, at, rng = drawn(formula)
    slope = gradient(shard, at, formula)
    for _ in range(5):
        way = [rng.normal(size=a.shape) for a in at]
        ends = [evaluate(shard, *moved(at, way, step), formula)[1].value for step in (1e-5, -1e-5)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope @ joined(way), rel=1e-6, abs=1e-7)


@every_formula
def test_curvature_agrees_with_differences_of_gradients(formula):
    shard, at, rng = drawn(formula)
    rows, found = evaluate(shard, *at, formula)
    way = [rng.normal(size=a.shape) for a in at]
    product = joined(hessian_product(rows, *way))
    ends = [gradient(shard, moved(at, way, step), formula) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(product, -(ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-6)
    (whole,) = hessian_matrix(rows, ITEMS, PEOPLE, at[2].shape[1])
    np.testing.assert_allclose(whole @ joined(way), product, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    own = joined((found.scores_curvature, found.logits_curvature))
    np.testing.assert_allclose(np.diag(whole)[: ITEMS + PEOPLE], own, rtol=1e-10, atol=1e-10)


@every_formula
def test_the_compiled_loop_gives_the_same_numbers(formula, monkeypatch):
    shard, at, rng = drawn(formula)
    rows, plain = evaluate(shard, *at, formula)
    way = [rng.normal(size=a.shape) for a in at]
    product = hessian_product(rows, *way)
    monkeypatch.setattr(likelihood, "COMPILE_MIN_ROWS", 1)
    monkeypatch.setattr(objective, "COMPILE_MIN_ROWS", 1)
    fast_rows, fast = evaluate(shard, *at, formula)
    for one, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    for one, other in zip(product, hessian_product(fast_rows, *way), strict=True):
        np.testing.assert_allclose(
            one, other, rtol=1e-4, atol=1e-5
        )  # second derivatives are stored in single precision


@every_formula
def test_probabilities_add_up_to_one(formula):
    rng = np.random.default_rng(1)
    d, logit, bias = rng.normal(scale=4, size=(3, 200))
    p, other, *_ = FORMULAS[formula](d, logit, bias)
    np.testing.assert_allclose(p + other, 1)
    assert np.all((p >= 0) & (p <= 1))
    flipped = FORMULAS[formula](-d, logit, -bias)
    np.testing.assert_allclose(flipped[0], other)


@every_formula
@pytest.mark.parametrize("margin", [800.0, -800.0])
def test_extreme_margins_stay_finite(formula, margin):
    shard = Answers(
        np.array([0], np.int32), np.array([1], np.int32), np.array([0], np.int32), np.ones(1), np.ones((1, 1))
    )
    _, found = evaluate(shard, np.array([margin, 0.0]), np.zeros(1), np.zeros((1, 1)), formula)
    assert all(np.all(np.isfinite(part)) for part in found)


def test_a_perfect_annotator_is_bradley_and_terry():
    shard, (scores, _, feature_weights), _ = drawn(CROWD_BT)
    value = evaluate(shard, scores, np.full(PEOPLE, 40.0), feature_weights, CROWD_BT)[1].value
    margin = scores[shard.winner] - scores[shard.loser]
    assert value == pytest.approx(-float(shard.weight @ np.log1p(np.exp(-margin))))


def test_a_reversed_annotator_is_the_mirror_of_a_truthful_one():
    shard, (scores, logits, feature_weights), _ = drawn(CROWD_BT)
    one = evaluate(shard, scores, logits, feature_weights, CROWD_BT)[1].value
    assert evaluate(shard, -scores, -logits, feature_weights, CROWD_BT)[1].value == pytest.approx(one)


def test_shards_keep_every_row():
    shard, at, _ = drawn(FACTOR_BT)
    parts = [evaluate(part, *at, FACTOR_BT)[1].value for part in shard.split(4)]
    assert sum(parts) == pytest.approx(evaluate(shard, *at, FACTOR_BT)[1].value)


@pytest.mark.parametrize("formula", [CROWD_BT, CROWD_BT_PROBIT], ids=["logistic", "probit"])
def test_derivatives_by_quality_agree_with_finite_differences(formula):
    shard, (scores, logits, feature_weights), _ = drawn(formula)
    quality = likelihood.sigmoid(logits)

    def value_at(k, step):
        eta = quality + step * (np.arange(PEOPLE) == k)
        return evaluate(shard, scores, np.log(eta / (1 - eta)), feature_weights, formula)[1].value

    gradient_, curvature = likelihood.quality_derivatives(shard, scores, quality, formula)
    for k in range(PEOPLE):
        low, here, high = (value_at(k, step) for step in (-1e-4, 0.0, 1e-4))
        assert gradient_[k] == pytest.approx((high - low) / 2e-4, rel=1e-5, abs=1e-5)
        assert curvature[k] == pytest.approx(-(high - 2 * here + low) / 1e-8, rel=1e-4)


@pytest.mark.parametrize("formula", [CROWD_BT, CROWD_BT_PROBIT], ids=["logistic", "probit"])
def test_derivatives_by_quality_are_finite_near_0_and_1(formula):
    shard, (scores, *_), _ = drawn(formula)
    for end in (1e-13, 1 - 1e-13):
        for part in likelihood.quality_derivatives(shard, 1000 * scores, np.full(PEOPLE, end), formula):
            assert np.isfinite(part).all()


@every_formula
def test_margin_curvature_is_the_same_compiled(formula, monkeypatch):
    shard, at, _ = drawn(formula)
    plain, _ = margin_curvature(shard, *at, formula)
    monkeypatch.setattr(objective, "COMPILE_MIN_ROWS", 0)
    np.testing.assert_allclose(margin_curvature(shard, *at, formula)[0].curvature, plain.curvature, rtol=1e-6)


@every_formula
def test_the_order_of_answers_changes_no_sum(formula):
    shard, at, _ = drawn(formula)
    ordered = shard.sorted_by_annotator()
    assert np.all(np.diff(ordered.annotator) >= 0)
    np.testing.assert_allclose(gradient(ordered, at, formula), gradient(shard, at, formula), rtol=1e-9, atol=1e-9)
