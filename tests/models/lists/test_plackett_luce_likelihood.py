"""Lists, top-k lists, ties and choices: against the definition, finite differences, and compiled against uncompiled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from crowdrank.data import Rankings
from crowdrank.models.lists import plackett_luce_likelihood
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists
from tests.strategies import rankings

quick = settings(max_examples=25, deadline=None)

MIXED = Rankings.of_lists(
    [
        [["a"], ["b"], ["c"], ["d"]],  # full
        [["c"], ["a", "b", "d"]],  # top of one: a choice
        [["d"], ["b"], ["a", "c"]],  # top of two
        [["a", "b"], ["c"], ["d"]],  # a tie above the end
        [["b", "c"], ["a", "d"]],  # ties above and at the end
        [["e"], ["a"]],  # partial
        [["a", "e"]],  # nothing ordered
        [["d"]],
    ],
    weight=[1.0, 2.0, 0.5, 1.5, 1.0, 3.0, 1.0, 1.0],
)


def shard_of(judgments):
    return RankedLists(judgments.item, judgments.place, judgments.offsets, judgments.weights)


def by_hand(judgments, scores):
    """Straight from the definition: every place but the last draws its items from all that are left."""
    total = 0.0
    for n in range(len(judgments)):
        rows = slice(judgments.offsets[n], judgments.offsets[n + 1])
        item, place = judgments.item[rows], judgments.place[rows]
        for p in range(place[-1]):
            left = scores[item[place >= p]]
            total += judgments.weights[n] * sum(scores[k] - logsumexp(left) for k in item[place == p])
    return total


def differences(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def drawn_scores(size, seed=0, spread=1.5):
    return np.random.default_rng(seed).normal(size=size) * spread


@quick
@given(judgments=rankings(), seed=st.integers(0, 100))
def test_value_is_the_log_probability_of_the_lists(judgments, seed):
    scores = drawn_scores(len(judgments.items), seed)
    found = plackett_luce_likelihood.log_likelihood(shard_of(judgments), scores)
    assert found.value == pytest.approx(by_hand(judgments, scores), rel=1e-10, abs=1e-10)


def test_value_of_lists_of_every_kind():
    scores = drawn_scores(5)
    assert plackett_luce_likelihood.log_likelihood(shard_of(MIXED), scores).value == pytest.approx(
        by_hand(MIXED, scores), rel=1e-12
    )


@quick
@given(judgments=rankings(), seed=st.integers(0, 100))
def test_gradient_matches_finite_differences(judgments, seed):
    scores, shard = drawn_scores(len(judgments.items), seed), shard_of(judgments)
    slope = differences(lambda s: plackett_luce_likelihood.log_likelihood(shard, s).value, scores)
    np.testing.assert_allclose(
        plackett_luce_likelihood.log_likelihood(shard, scores).gradient, slope, rtol=1e-6, atol=1e-7
    )


@quick
@given(judgments=rankings(), seed=st.integers(0, 100))
def test_hessian_matches_finite_differences(judgments, seed):
    scores, shard = drawn_scores(len(judgments.items), seed), shard_of(judgments)
    expected = -differences(lambda s: plackett_luce_likelihood.log_likelihood(shard, s).gradient, scores)
    (matrix,) = plackett_luce_likelihood.hessian(shard, scores)
    np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        plackett_luce_likelihood.log_likelihood(shard, scores).hessian_diag, np.diag(matrix), rtol=1e-9, atol=1e-12
    )
    vector = drawn_scores(len(scores), seed + 1)
    (pushed,) = plackett_luce_likelihood.hessian_product(shard, scores, vector)
    np.testing.assert_allclose(pushed, matrix @ vector, rtol=1e-9, atol=1e-10)


def test_weights_enter_value_gradient_and_hessian():
    scores, shard = drawn_scores(5), shard_of(MIXED)
    expected = -differences(lambda s: plackett_luce_likelihood.log_likelihood(shard, s).gradient, scores)
    np.testing.assert_allclose(plackett_luce_likelihood.hessian(shard, scores)[0], expected, rtol=1e-6, atol=1e-7)
    slope = differences(lambda s: plackett_luce_likelihood.log_likelihood(shard, s).value, scores)
    np.testing.assert_allclose(
        plackett_luce_likelihood.log_likelihood(shard, scores).gradient, slope, rtol=1e-6, atol=1e-7
    )


def test_a_gradient_at_other_scores_differs():
    """The negative control: a small error must show."""
    scores, shard = drawn_scores(5), shard_of(MIXED)
    slope = differences(lambda s: plackett_luce_likelihood.log_likelihood(shard, s).value, scores)
    wrong = plackett_luce_likelihood.log_likelihood(shard, scores + np.array([1e-3, 0, 0, 0, 0])).gradient
    assert not np.allclose(wrong, slope, rtol=1e-6, atol=1e-7)


def test_probabilities_of_all_orders_sum_to_one():
    from itertools import permutations

    scores = drawn_scores(4)
    logs = [
        plackett_luce_likelihood.log_likelihood(
            shard_of(Rankings.of_lists([[[label] for label in order]])), scores
        ).value
        for order in permutations("abcd")
    ]
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("spread", [299.0, 450.0, 800.0, -800.0, 3_000.0])
def test_extreme_scores_stay_finite(spread):
    scores = np.linspace(0, spread, 5)
    shard = shard_of(MIXED)
    with np.errstate(all="raise", under="ignore"):
        found = plackett_luce_likelihood.log_likelihood(shard, scores)
        (matrix,) = plackett_luce_likelihood.hessian(shard, scores)
        (pushed,) = plackett_luce_likelihood.hessian_product(shard, scores, drawn_scores(5))
    assert found.value == pytest.approx(by_hand(MIXED, scores), rel=1e-12)
    for part in (found.gradient, found.hessian_diag, matrix, pushed):
        assert np.isfinite(part).all()
    np.testing.assert_allclose(pushed, matrix @ drawn_scores(5), atol=1e-9)


@quick
@given(judgments=rankings(), seed=st.integers(0, 100), spread=st.sampled_from([1.5, 40.0]))
def test_a_table_of_lists_gives_what_the_loops_give(judgments, seed, spread):
    scores, shard = drawn_scores(len(judgments.items), seed, spread), shard_of(judgments)
    table = plackett_luce_likelihood.ListTable.of(shard, scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plackett_luce_likelihood, "_MOST_CELLS", 0)
        assert not plackett_luce_likelihood.ListTable.fits(shard, scores)
        loops = plackett_luce_likelihood.log_likelihood(shard, scores)
        (matrix,) = plackett_luce_likelihood.hessian(shard, scores)
    for one, other in zip(table.log_likelihood(scores), loops, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table.hessian(scores), matrix, rtol=1e-9, atol=1e-12)


def test_compiled_and_plain_loops_agree(monkeypatch):
    monkeypatch.setattr(plackett_luce_likelihood, "_MOST_CELLS", 0)
    scores, shard = drawn_scores(5), shard_of(MIXED)
    vector = drawn_scores(5, seed=1)
    plain = (plackett_luce_likelihood.log_likelihood(shard, scores), plackett_luce_likelihood.hessian(shard, scores)[0])
    pushed = plackett_luce_likelihood.hessian_product(shard, scores, vector)[0]
    monkeypatch.setattr(plackett_luce_likelihood, "_PLAIN_UP_TO", 0)
    for slow, fast in zip(plain[0], plackett_luce_likelihood.log_likelihood(shard, scores), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plackett_luce_likelihood.hessian(shard, scores)[0], plain[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        plackett_luce_likelihood.hessian_product(shard, scores, vector)[0], pushed, rtol=1e-12, atol=1e-12
    )


@quick
@given(judgments=rankings(), parts=st.integers(1, 9), seed=st.integers(0, 100))
def test_splitting_keeps_every_list(judgments, parts, seed):
    shard, scores = shard_of(judgments), drawn_scores(len(judgments.items), seed)
    shards = shard.split(parts)
    assert sum(s.rows for s in shards) == shard.rows
    assert sum(len(s.weight) for s in shards) == len(judgments)
    total = sum(plackett_luce_likelihood.log_likelihood(s, scores).value for s in shards)
    assert total == pytest.approx(plackett_luce_likelihood.log_likelihood(shard, scores).value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("plain_up_to", [2_000, 0], ids=["plain", "compiled"])
def test_gradient_noise_has_the_hessian_as_its_covariance(plain_up_to, monkeypatch):
    """Ties and weights included."""
    monkeypatch.setattr(plackett_luce_likelihood, "_PLAIN_UP_TO", plain_up_to)
    scores, shard = drawn_scores(5), shard_of(MIXED)
    count = 3_000 if plain_up_to else 20_000
    drawn = np.array([plackett_luce_likelihood.gradient_noise(shard, scores, seed)[0] for seed in range(count)])
    (matrix,) = plackett_luce_likelihood.hessian(shard, scores)
    tolerance = 5 * matrix.max() / np.sqrt(count)
    np.testing.assert_allclose(drawn.T @ drawn / count, matrix, atol=tolerance)
    assert not np.allclose(drawn.T @ drawn / count, 1.3 * matrix, atol=tolerance)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5 * np.sqrt(matrix.max() / count))


def test_gradient_noise_depends_on_seed_and_shard():
    scores, shard = drawn_scores(5), shard_of(MIXED)
    one, two = (plackett_luce_likelihood.gradient_noise(shard, scores, 1)[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, plackett_luce_likelihood.gradient_noise(shard, scores, 2)[0])
    parts = shard.split(2)
    assert not np.allclose(*(plackett_luce_likelihood.gradient_noise(part, scores, 1)[0] for part in parts))
