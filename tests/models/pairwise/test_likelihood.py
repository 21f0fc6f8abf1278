"""Every formula against finite differences, against plain probabilities, and compiled against uncompiled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit
from scipy.stats import norm

from crowdrank.inference import curvature
from crowdrank.inference.curvature import PairCurvature
from crowdrank.models.pairwise import likelihood
from crowdrank.models.pairwise.likelihood import (
    DAVIDSON,
    FORMULAS,
    LOGISTIC,
    PROBIT,
    THRESHOLD,
    Pairs,
    outcome_probabilities,
)

every_formula = pytest.mark.parametrize("formula", [LOGISTIC, PROBIT, DAVIDSON, THRESHOLD])
with_ties = pytest.mark.parametrize("formula", [DAVIDSON, THRESHOLD])
OUTCOMES = np.array([1.0, 0.0, -1.0])
SHARES = np.array([1.0, 0.3, 0.0, -0.6, -1.0])
MARGINS = np.array([-9.0, -2.5, -1.0, -0.1, 0.0, 1e-3, 0.4, 1.7, 3.0, 8.0])
THETAS = [0.3, 1.0, 2.5]


def compile_from(monkeypatch, rows):
    """Use the compiled loops for tables of at least this many rows."""
    for module in (likelihood, curvature):
        monkeypatch.setattr(module, "COMPILE_MIN_ROWS", rows)


def grid(formula, theta_values=THETAS):
    shares = SHARES if formula in (LOGISTIC, PROBIT) else OUTCOMES
    d, outcome, theta = np.meshgrid(MARGINS, shares, theta_values, indexing="ij")
    return d.ravel(), outcome.ravel(), theta.ravel()


def by_hand(formula, d, outcome, theta):
    """log P, straight from the definitions; only where nothing underflows."""
    if formula in (LOGISTIC, PROBIT):
        up = expit(d) if formula == LOGISTIC else norm.cdf(d / np.sqrt(2))
        down = expit(-d) if formula == LOGISTIC else norm.cdf(-d / np.sqrt(2))
        return (1 + outcome) / 2 * np.log(up) + (1 - outcome) / 2 * np.log(down)
    if formula == DAVIDSON:
        left, tie, right = np.exp(d / 2), np.exp(theta), np.exp(-d / 2)
        total = left + tie + right
        chance = {1.0: left / total, 0.0: tie / total, -1.0: right / total}
    else:
        left, right = norm.cdf((d - theta) / np.sqrt(2)), norm.cdf((-d - theta) / np.sqrt(2))
        chance = {1.0: left, 0.0: norm.cdf((theta - d) / np.sqrt(2)) - norm.cdf((-theta - d) / np.sqrt(2)), -1.0: right}
    return np.log(np.select([outcome == o for o in chance], list(chance.values())))


def difference(f, x, step=1e-5):
    """Central, with Richardson's correction."""
    coarse, fine = (f(x + step) - f(x - step)) / (2 * step), (f(x + step / 2) - f(x - step / 2)) / step
    return (4 * fine - coarse) / 3


@every_formula
def test_value_is_the_log_chance(formula):
    d, outcome, theta = grid(formula)
    value = FORMULAS[formula](d, outcome, theta)[0]
    np.testing.assert_allclose(value, by_hand(formula, d, outcome, theta), rtol=1e-7, atol=1e-12)


@every_formula
def test_gradients_equal_finite_differences_of_the_value(formula):
    d, outcome, theta = grid(formula)
    f = FORMULAS[formula]
    found = f(d, outcome, theta)
    np.testing.assert_allclose(found[1], difference(lambda x: f(x, outcome, theta)[0], d), rtol=1e-6, atol=1e-8)
    in_theta = difference(lambda x: f(d, outcome, x)[0] + 0 * d, theta)
    np.testing.assert_allclose(found[3] + 0 * d, in_theta, rtol=1e-6, atol=1e-8)


@every_formula
def test_curvatures_equal_finite_differences_of_the_gradients(formula):
    d, outcome, theta = grid(formula)
    f = FORMULAS[formula]
    _, _, curvature, _, cross, theta_curvature = (part + 0 * d for part in f(d, outcome, theta))
    np.testing.assert_allclose(curvature, -difference(lambda x: f(x, outcome, theta)[1], d), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(cross, -difference(lambda x: f(d, outcome, x)[1], theta), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        theta_curvature, -difference(lambda x: f(d, outcome, x)[3] + 0 * d, theta), rtol=1e-6, atol=1e-8
    )


@every_formula
def test_curvatures_are_never_negative(formula):
    d, outcome, theta = grid(formula)
    _, _, curvature, _, cross, theta_curvature = (part + 0 * d for part in FORMULAS[formula](d, outcome, theta))
    assert (curvature >= 0).all()
    assert (theta_curvature >= 0).all()
    # log-concave in margin and θ together
    assert (curvature * theta_curvature - cross**2 >= -1e-12).all()


@every_formula
def test_gradients_are_wrong_if_they_belong_to_another_margin(formula):
    """The negative control of the tests above: they must be able to fail."""
    d, outcome, theta = grid(formula)
    f = FORMULAS[formula]
    true = difference(lambda x: f(x, outcome, theta)[0], d)
    assert not np.allclose(f(d + 1e-3, outcome, theta)[1], true, rtol=1e-6, atol=1e-8)


@every_formula
@pytest.mark.parametrize("theta", [1e-6, 0.5, 30.0])
def test_extreme_margins_stay_finite(formula, theta):
    d = np.array([-800.0, -300.0, -40.0, 0.0, 40.0, 300.0, 800.0])
    for outcome in OUTCOMES:
        with np.errstate(all="raise", under="ignore"):
            parts = FORMULAS[formula](d, outcome, theta)
        assert all(np.isfinite(part).all() for part in parts)
        assert (np.asarray(parts[2]) >= -1e-6).all()


@every_formula
def test_turning_a_pair_round_turns_the_slope_round(formula):
    d, outcome, theta = grid(formula)
    one, other = FORMULAS[formula](d, outcome, theta), FORMULAS[formula](-d, -outcome, theta)
    for sign, a, b in zip((1, -1, 1, 1, -1, 1), one, other, strict=True):
        np.testing.assert_allclose(a, sign * np.asarray(b), rtol=1e-12, atol=1e-12)


@every_formula
@pytest.mark.parametrize("theta", THETAS)
def test_probabilities_sum_to_one(formula, theta):
    margins = np.append(MARGINS, [-800.0, 800.0])
    found = outcome_probabilities(margins, theta, formula)
    assert found.shape == (len(margins), 3)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(found[np.argsort(margins), 0]) >= 0).all()
    assert (found[:, 1] == 0).all() == (formula in (LOGISTIC, PROBIT))


def test_davidson_with_a_vanishing_tie_is_logistic():
    d = MARGINS
    for outcome in (1.0, -1.0):
        np.testing.assert_allclose(
            likelihood.davidson(d, outcome, -60.0)[:3], likelihood.logistic(d, outcome, 0.0)[:3], rtol=1e-12, atol=1e-12
        )


def test_threshold_at_zero_is_probit_for_decided_answers():
    for outcome in (1.0, -1.0):
        found = likelihood.threshold(MARGINS, outcome, 1e-12)
        np.testing.assert_allclose(found[:3], likelihood.probit(MARGINS, outcome, 0.0)[:3], rtol=1e-9, atol=1e-9)


# --- one shard ------------------------------------------------------------------------------------------------------


def table(rows=300, size=8, seed=0, shares=False):
    rng = np.random.default_rng(seed)
    left = rng.integers(size, size=rows)
    right = (left + rng.integers(1, size, size=rows)) % size
    outcome = rng.uniform(-1, 1, rows) if shares else rng.integers(-1, 2, rows).astype(np.int8)
    weight = rng.uniform(0.2, 3, rows)
    scores = rng.normal(size=size) * 1.5
    return Pairs(left.astype(np.int32), right.astype(np.int32), outcome, weight), scores


def value_at(shard, scores, theta, formula):
    return likelihood.evaluate(shard, scores, theta, formula)[1].value


def gradient_at(shard, scores, theta, formula):
    found = likelihood.evaluate(shard, scores, theta, formula)[1]
    return np.append(found.gradient, found.theta_gradient)


def full_curvature(pairs, terms, size):
    (matrix,) = curvature.hessian_matrix(pairs, size)
    return np.block([[matrix, terms.border[:, None]], [terms.border[None, :], np.array([[terms.corner]])]])


@every_formula
def test_a_shards_gradient_is_the_difference_of_its_value(formula):
    shard, scores = table()
    x = np.append(scores, 0.7)
    found = gradient_at(shard, x[:-1], x[-1], formula)
    for n in range(len(x)):
        step = np.zeros(len(x))
        step[n] = 1.0
        slope = difference(lambda t, s=step: value_at(shard, (x + t * s)[:-1], (x + t * s)[-1], formula), 0.0)
        assert found[n] == pytest.approx(slope, rel=1e-6, abs=1e-6)


@every_formula
def test_a_shards_curvature_is_the_difference_of_its_gradient(formula):
    shard, scores = table()
    x = np.append(scores, 0.7)
    pairs, terms = likelihood.evaluate(shard, scores, 0.7, formula)
    curvature = full_curvature(pairs, terms, len(scores))
    for n in range(len(x)):
        step = np.zeros(len(x))
        step[n] = 1.0
        column = difference(lambda t, s=step: gradient_at(shard, (x + t * s)[:-1], (x + t * s)[-1], formula), 0.0)
        np.testing.assert_allclose(curvature[:, n], -column, rtol=1e-6, atol=1e-5)


@every_formula
def test_the_pieces_of_the_curvature_agree(formula):
    shard, scores = table()
    size = len(scores)
    pairs, terms = likelihood.evaluate(shard, scores, 0.7, formula)
    (matrix,) = curvature.hessian_matrix(pairs, size)
    np.testing.assert_allclose(np.diag(matrix), terms.diagonal, rtol=1e-10)
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(matrix.sum(axis=1), 0.0, atol=1e-9)
    vectors = np.random.default_rng(1).normal(size=(size, 3))
    np.testing.assert_allclose(
        curvature.hessian_product(pairs, vectors[:, 0])[0], matrix @ vectors[:, 0], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(curvature.hessian_product(pairs, vectors)[0], matrix @ vectors, rtol=1e-9, atol=1e-9)
    local = np.arange(size)
    (cells,) = curvature.hessian_blocks(pairs, local * size, local, size * size)
    off = cells.reshape(size, size)
    np.testing.assert_allclose(-(off + off.T), matrix - np.diag(np.diag(matrix)), atol=1e-9)


@every_formula
@pytest.mark.parametrize("shares", [False, True], ids=["answers", "shares"])
def test_the_compiled_loop_is_the_arrays(formula, shares, monkeypatch):
    shard, scores = table(rows=2_000, size=30, shares=shares and formula in (LOGISTIC, PROBIT))
    pairs, terms = likelihood.evaluate(shard, scores, 0.7, formula)
    compile_from(monkeypatch, 0)
    fast_pairs, fast = likelihood.evaluate(shard, scores, 0.7, formula)
    np.testing.assert_allclose(fast.value, terms.value, rtol=1e-12)
    np.testing.assert_allclose(fast.gradient, terms.gradient, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(fast.theta_gradient, terms.theta_gradient, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(fast.corner, terms.corner, rtol=1e-11)
    np.testing.assert_allclose(fast.border, terms.border, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(fast.diagonal, terms.diagonal, rtol=1e-11)
    np.testing.assert_allclose(fast_pairs.curvature, pairs.curvature, rtol=1e-6)  # kept in single precision
    vector = np.random.default_rng(2).normal(size=30)
    slow_product = curvature._product_loop.function
    expected = np.zeros(30)
    slow_product(shard.left, shard.right, pairs.curvature, vector, expected)
    np.testing.assert_allclose(curvature.hessian_product(pairs, vector)[0], expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(likelihood.win_loss_counts(shard, 30), counts_by_hand(shard, 30), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("spread", [1.5, 15.0, 60.0])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 2_000])
def test_rows_of_one_weight_are_no_exception(weight, spread, rows, monkeypatch):
    """Where no weights were given a quicker loop runs; far scores send it back to the careful one."""
    shard, scores = table(rows=rows, size=30)
    shard = shard._replace(weight=np.broadcast_to(weight, rows))
    scores = np.clip(scores * spread / 1.5, -spread, spread)
    pairs, terms = likelihood.evaluate(shard, scores, 0.0, LOGISTIC)
    compile_from(monkeypatch, 0)
    fast_pairs, fast = likelihood.evaluate(shard, scores, 0.0, LOGISTIC)
    np.testing.assert_allclose(fast.value, terms.value, rtol=1e-11)
    np.testing.assert_allclose(fast.gradient, terms.gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(fast.diagonal, terms.diagonal, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(fast_pairs.curvature, pairs.curvature, rtol=1e-6, atol=1e-30)
    assert (fast.theta_gradient, fast.corner, np.abs(fast.border).max()) == (0.0, 0.0, 0.0)


def counts_by_hand(shard, size):
    net, total = np.zeros(size), np.zeros(size)
    for i, j, outcome, weight in zip(*shard[:4], strict=True):
        net[i] += outcome * weight
        net[j] -= outcome * weight
        total[[i, j]] += weight
    return net, total


def test_tallies_are_wins_less_losses_and_all_comparisons():
    shard, _ = table()
    np.testing.assert_allclose(likelihood.win_loss_counts(shard, 8), counts_by_hand(shard, 8), rtol=1e-12, atol=1e-12)


def test_a_table_as_large_as_compiling_takes_the_compiled_road():
    rows = likelihood.COMPILE_MIN_ROWS
    shard, scores = table(rows=rows, size=50)
    pairs, terms = likelihood.evaluate(shard, scores, 0.0, LOGISTIC)
    parts = [likelihood.evaluate(part, scores, 0.0, LOGISTIC) for part in shard.split(2)]
    assert pairs.curvature.dtype == np.float32
    assert parts[0][0].curvature.dtype == np.float64
    assert terms.value == pytest.approx(sum(part.value for _, part in parts), rel=1e-12)
    np.testing.assert_allclose(terms.gradient, sum(part.gradient for _, part in parts), rtol=1e-9, atol=1e-9)


def test_noise_has_the_curvature_as_its_covariance():
    shard, scores = table(rows=60, size=5)
    pairs, _ = likelihood.evaluate(shard, scores, 0.0, LOGISTIC)
    (matrix,) = curvature.hessian_matrix(pairs, 5)
    drawn = np.concatenate([curvature.sample_with_curvature(pairs, 5, 256, seed)[0] for seed in range(60)], axis=1)
    covariance = drawn @ drawn.T / drawn.shape[1]
    tolerance = 5 * matrix.max() / np.sqrt(drawn.shape[1])
    np.testing.assert_allclose(covariance, matrix, atol=tolerance)
    assert not np.allclose(covariance, 1.2 * matrix, atol=tolerance)
    np.testing.assert_allclose(drawn.mean(axis=1), 0.0, atol=5 * np.sqrt(matrix.max() / drawn.shape[1]))


def test_noise_repeats_with_its_seed_and_differs_between_shards():
    shard, scores = table(rows=60, size=5)
    pairs, _ = likelihood.evaluate(shard, scores, 0.0, LOGISTIC)
    other = PairCurvature(pairs.left[30:], pairs.right[30:], pairs.curvature[30:])
    np.testing.assert_array_equal(
        curvature.sample_with_curvature(pairs, 5, 8, 1)[0], curvature.sample_with_curvature(pairs, 5, 8, 1)[0]
    )
    assert not np.allclose(
        curvature.sample_with_curvature(pairs, 5, 8, 1)[0], curvature.sample_with_curvature(pairs, 5, 8, 2)[0]
    )
    first = PairCurvature(pairs.left[:30], pairs.right[:30], np.ones(30))
    again = PairCurvature(other.left, other.right, np.ones(30))
    assert not np.allclose(
        curvature.sample_with_curvature(first, 5, 8, 1)[0], curvature.sample_with_curvature(again, 5, 8, 1)[0]
    )


@settings(max_examples=25, deadline=None)
@given(parts=st.integers(1, 12), rows=st.integers(1, 40), data=st.data())
def test_splitting_keeps_every_row_in_order(parts, rows, data):
    column = data.draw(hnp.arrays(np.float64, rows, elements=st.floats(0, 1)))
    codes = np.arange(rows, dtype=np.int32)
    shards = Pairs(codes, codes[::-1], column, column).split(parts)
    assert len(shards) == parts
    assert sum(shard.rows for shard in shards) == rows
    for n in range(4):
        np.testing.assert_array_equal(
            np.concatenate([shard[n] for shard in shards]), (codes, codes[::-1], column, column)[n]
        )
