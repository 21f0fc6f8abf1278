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
    WeightedSum,
    benjamini_hochberg,
    estimate_quality,
    p_value_below,
    quality_upper_bound,
    response_time_test,
    two_sided_p_value,
)


def answers_of(answer, expected, annotator=None):
    annotator = np.zeros(len(answer), np.int64) if annotator is None else np.asarray(annotator)
    return Answers(annotator, np.asarray(answer, float), np.asarray(expected, float), int(annotator.max()) + 1)


@pytest.mark.parametrize(
    "weights",
    [np.ones(1), np.ones(2), np.ones(5), np.ones(12), np.append(1, np.full(9, 0.01)), np.arange(1, 11) / 10],
    ids=["one", "two", "five", "twelve", "one that matters", "unequal"],
)
def test_p_values_of_random_answers_are_never_too_small(weights):
    """Compared with all patterns of answers."""
    sums = np.array(list(product((-1, 1), repeat=len(weights)))) @ weights
    for total in np.unique(sums[sums > 0]):
        (found,) = WeightedSum(*(np.array([x]) for x in (total, np.sum(weights**2), np.sum(weights**4)))).p_value()
        assert np.mean(sums >= total - 1e-9) < 1.05 * found


def test_with_equal_weights_p_values_are_close_to_the_binomial_ones():
    answers = answers_of([1] * 15 + [-1] * 5, np.full(20, 0.7))
    (found,) = answers.weighted_sum(answers.expected).p_value()
    assert found == pytest.approx(stats.binom.sf(14, 20, 0.5), rel=0.15)


def test_random_answers_are_significant_no_more_often_than_the_level():
    rng = np.random.default_rng(1)
    who, expected = np.repeat(np.arange(4000), 20), np.tanh(rng.standard_normal(80_000))
    random = answers_of(rng.choice([-1, 1], 80_000), expected, who)
    found = random.weighted_sum(expected).p_value()
    for level in (0.1, 0.05, 0.01):
        assert np.mean(found < level) <= level


def test_residual_weights_are_orthogonal_to_the_expected_answers():
    rng = np.random.default_rng(2)
    expected = np.tanh(rng.standard_normal(50))
    answers = answers_of(np.ones(50), expected)
    assert abs(answers.residual_weights(rng.random(50)) @ expected) < 1e-12
    assert not answers.residual_weights(3 * expected).any()
    assert two_sided_p_value(answers.weighted_sum(answers.residual_weights(-expected))) == 1


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


def test_the_p_value_below_a_quality_is_close_to_the_binomial_one():
    answers = answers_of([1] * 60 + [-1] * 40, np.ones(100))
    (found,) = p_value_below(answers.weighted_sum(answers.expected), 0.7)
    assert found == pytest.approx(stats.binom.cdf(60, 100, 0.7), rel=0.2)


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
