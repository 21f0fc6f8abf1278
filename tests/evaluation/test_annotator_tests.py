"""The tests behind verdicts, compared with enumeration and with SciPy."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from crowdrank import Comparisons
from crowdrank.evaluation.annotator_tests import (
    Answers,
    camp_test,
    estimate_quality,
    quality_upper_bound,
    response_time_test,
    typical_slope,
)
from crowdrank.results.ranks import benjamini_hochberg


def answers_of(answer, expected, annotator=None):
    annotator = np.zeros(len(answer), np.int64) if annotator is None else np.asarray(annotator)
    return Answers(annotator, np.asarray(answer, float), np.asarray(expected, float), int(annotator.max()) + 1)


@pytest.mark.parametrize("slope", [0, 0.5, 0.9])
@pytest.mark.parametrize(
    "weights",
    [
        np.full(1, 0.8),
        np.full(2, 0.8),
        np.full(5, 0.9),
        np.full(12, 0.7),
        np.append(1, np.full(9, 0.01)),
        np.arange(1, 11) / 10,
    ],
    ids=["one", "two", "five", "twelve", "one that matters", "unequal"],
)
def test_p_values_are_never_too_small_for_any_number_of_answers(weights, slope):
    """Compared with all patterns of answers, of annotators who are random, mediocre or good."""
    patterns = np.array(list(product((-1, 1), repeat=len(weights))))
    sums, probability = patterns @ weights, np.prod((1 + patterns * slope * weights) / 2, axis=1)
    exact = np.array([probability[sums <= total + 1e-9].sum() for total in sums])
    who = np.repeat(np.arange(len(patterns)), len(weights))
    answers = answers_of(patterns.ravel(), np.tile(weights, len(patterns)), who)
    found = answers.lower_tail(answers.expected, np.full(len(patterns), float(slope)))
    assert np.all(found > 0.92 * np.minimum(exact, 0.5))
    if np.ptp(weights) == 0:
        np.testing.assert_allclose(found[exact < 0.5], exact[exact < 0.5], rtol=0.08)


def test_with_equal_weights_p_values_are_the_binomial_ones():
    answers = answers_of([1] * 15 + [-1] * 5, np.full(20, 0.7))
    assert answers.upper_tail(answers.expected)[0] == pytest.approx(stats.binom.sf(14, 20, 0.5), rel=0.05)
    good = answers.lower_tail(answers.expected, np.array([1.0]))
    assert good[0] == pytest.approx(stats.binom.cdf(15, 20, 0.85), rel=0.05)


def test_random_answers_are_significant_no_more_often_than_the_level():
    rng = np.random.default_rng(1)
    who, expected = np.repeat(np.arange(4000), 20), np.tanh(rng.standard_normal(80_000))
    random = answers_of(rng.choice([-1, 1], 80_000), expected, who)
    for found in (random.upper_tail(expected), random.lower_tail(expected), random.two_sided(expected)):
        for level in (0.1, 0.05, 0.01):
            assert np.mean(found < level) <= level


def test_a_sum_without_weights_says_nothing():
    answers = answers_of([1, -1, 1], np.zeros(3), [0, 0, 1])
    assert answers.lower_tail(answers.expected).tolist() == [1, 1]


def test_residual_weights_are_orthogonal_to_the_expected_answers():
    rng = np.random.default_rng(2)
    expected = np.tanh(rng.standard_normal(50))
    answers = answers_of(np.ones(50), expected)
    assert abs(answers.residual_weights(rng.random(50)) @ expected) < 1e-12
    assert not answers.residual_weights(3 * expected).any()
    assert answers.two_sided(answers.residual_weights(-expected)) == 1


def test_the_residual_sum_has_mean_zero_whatever_the_quality():
    rng = np.random.default_rng(3)
    expected, weight = np.tanh(2 * rng.standard_normal(30)), rng.random(30)
    answers = answers_of(np.ones(30), expected)
    for quality in (0, 0.3, 0.5, 0.9, 1):
        mean = (2 * quality - 1) * expected
        assert abs(mean @ answers.residual_weights(weight)) < 1e-12


def test_quality_and_its_bound_are_those_of_a_proportion_if_scores_are_certain():
    answers = answers_of([1] * 30 + [-1] * 10, np.ones(40))
    found = answers.weighted_sum(answers.expected)
    assert estimate_quality(found)[0] == 0.75
    wilson = stats.binomtest(30, 40).proportion_ci(0.9, "wilson")
    np.testing.assert_allclose(quality_upper_bound(found, 0.05), wilson.high)


def test_the_typical_annotator_is_not_the_one_with_most_answers_nor_dragged_by_random_ones():
    rng = np.random.default_rng(6)
    who = np.concatenate((np.repeat(np.arange(40), 30), np.full(20_000, 40)))
    slope = np.where(who < 8, 0.0, np.where(who == 40, 1.0, 0.8))
    answers = answers_of(np.where(rng.random(len(who)) < (1 + 0.9 * slope) / 2, 1, -1), np.full(len(who), 0.9), who)
    found = typical_slope(answers, 0.05)
    assert found.value == pytest.approx(0.8, abs=0.06)
    assert np.all(found.lower < found.value)


def test_camps_are_told_apart_where_they_disagree():
    larger, smaller = np.tile([0.8, 0.8], 20), np.tile([0.8, -0.8], 20)
    with_larger = answers_of(np.tile([1, 1], 20), larger)
    with_smaller = answers_of(np.tile([1, -1], 20), larger)
    typical = np.array([0.9])
    assert camp_test(with_smaller, larger, smaller, typical).p_value[0] < 1e-4
    assert camp_test(with_larger, larger, smaller, typical).p_value[0] > 0.99
    assert camp_test(with_smaller, larger, smaller, typical).with_smaller.tolist() == [20]
    assert np.isnan(camp_test(with_larger, larger, larger, typical).p_value[0])


def test_the_rank_sum_is_that_of_scipy():
    rng = np.random.default_rng(4)
    taken, who = np.round(rng.exponential(10, 120)), rng.integers(0, 3, 120)
    taken[5] = np.nan
    votes = Comparisons.of(["a"] * 120, ["b"] * 120, ["a"] * 120, annotator=[f"n{n}" for n in who])
    found = response_time_test(replace(votes, duration=taken))
    for n in range(3):
        own, others = taken[(who == n) & ~np.isnan(taken)], taken[(who != n) & ~np.isnan(taken)]
        theirs = stats.mannwhitneyu(own, others, alternative="less", method="asymptotic")
        np.testing.assert_allclose(found.p_value[n], theirs.pvalue)
        assert found.median[n] == np.median(own)
    assert found.typical == np.median(found.median)


def test_there_is_no_response_time_test_without_durations():
    votes = Comparisons.of(["a"], ["b"], ["a"], annotator=["n"])
    assert response_time_test(votes) is None
    assert response_time_test(replace(votes, duration=np.array([np.nan]))) is None


def test_adjusted_p_values_are_those_of_scipy():
    p_values = np.random.default_rng(5).random(50) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p_values), stats.false_discovery_control(p_values))
    assert np.isnan(benjamini_hochberg(np.array([np.nan]))).all()
