"""The tests behind verdicts, against what can be enumerated or is known from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from crowdrank import Comparisons
from crowdrank.evaluation.annotator_tests import (
    Answers,
    Sum,
    adjusted,
    below,
    either_way,
    haste,
    quality_of,
    upper_quality,
)


def answers_of(side, expected, who=None):
    who = np.zeros(len(side), np.int64) if who is None else np.asarray(who)
    return Answers(who, np.asarray(side, float), np.asarray(expected, float), int(who.max()) + 1)


@pytest.mark.parametrize(
    "weights",
    [np.ones(1), np.ones(2), np.ones(5), np.ones(12), np.append(1, np.full(9, 0.01)), np.arange(1, 11) / 10],
    ids=["one", "two", "five", "twelve", "one that matters", "unequal"],
)
def test_the_chance_of_a_coin_is_never_understated(weights):
    """Beside all patterns of answers, enumerated."""
    sums = np.array(list(product((-1, 1), repeat=len(weights)))) @ weights
    for total in np.unique(sums[sums > 0]):
        (found,) = Sum(*(np.array([x]) for x in (total, np.sum(weights**2), np.sum(weights**4)))).chance()
        assert np.mean(sums >= total - 1e-9) < 1.05 * found


def test_the_chance_of_a_coin_is_close_to_the_exact_one_where_answers_weigh_the_same():
    answers = answers_of([1] * 15 + [-1] * 5, np.full(20, 0.7))
    (found,) = answers.along(answers.expected).chance()
    assert found == pytest.approx(stats.binom.sf(14, 20, 0.5), rel=0.15)


def test_coins_are_called_better_than_coins_no_more_often_than_promised():
    rng = np.random.default_rng(1)
    who, expected = np.repeat(np.arange(4000), 20), np.tanh(rng.standard_normal(80_000))
    chance = answers_of(rng.choice([-1, 1], 80_000), expected, who)
    found = chance.along(expected).chance()
    for level in (0.1, 0.05, 0.01):
        assert np.mean(found < level) <= level


def test_what_the_scores_account_for_is_not_beyond_them():
    rng = np.random.default_rng(2)
    expected = np.tanh(rng.standard_normal(50))
    answers = answers_of(np.ones(50), expected)
    assert abs(answers.beyond_scores(rng.random(50)) @ expected) < 1e-12
    assert not answers.beyond_scores(3 * expected).any()
    assert either_way(answers.along(answers.beyond_scores(-expected))) == 1


def test_anyone_of_any_quality_stays_at_zero_beyond_the_scores():
    rng = np.random.default_rng(3)
    expected, weight = np.tanh(2 * rng.standard_normal(30)), rng.random(30)
    answers = answers_of(np.ones(30), expected)
    for quality in (0, 0.3, 0.5, 0.9, 1):
        mean = (2 * quality - 1) * expected
        assert abs(mean @ answers.beyond_scores(weight)) < 1e-12


def test_quality_and_its_limit_are_those_of_a_share_where_the_scores_are_sure():
    answers = answers_of([1] * 30 + [-1] * 10, np.ones(40))
    found = answers.along(answers.expected)
    assert quality_of(found)[0] == 0.75
    wilson = stats.binomtest(30, 40).proportion_ci(0.9, "wilson")
    np.testing.assert_allclose(upper_quality(found, 0.05), wilson.high)


def test_being_below_a_quality_is_close_to_the_binomial_chance():
    answers = answers_of([1] * 60 + [-1] * 40, np.ones(100))
    (found,) = below(answers.along(answers.expected), 0.7)
    assert found == pytest.approx(stats.binom.cdf(60, 100, 0.7), rel=0.2)


def test_the_rank_sum_is_that_of_scipy():
    rng = np.random.default_rng(4)
    taken, who = np.round(rng.exponential(10, 120)), rng.integers(0, 3, 120)
    taken[5] = np.nan
    votes = Comparisons.of(["a"] * 120, ["b"] * 120, ["a"] * 120, annotator=[f"n{n}" for n in who])
    found = haste(replace(votes, duration=taken))
    for n in range(3):
        own, others = taken[(who == n) & ~np.isnan(taken)], taken[(who != n) & ~np.isnan(taken)]
        theirs = stats.mannwhitneyu(own, others, alternative="less", method="asymptotic")
        np.testing.assert_allclose(found.chance[n], theirs.pvalue)
        assert found.median[n] == np.median(own)
    assert found.usual == np.median(found.median)


def test_haste_is_unknown_without_durations():
    votes = Comparisons.of(["a"], ["b"], ["a"], annotator=["n"])
    assert haste(votes) is None
    assert haste(replace(votes, duration=np.array([np.nan]))) is None


def test_adjusted_chances_are_those_of_scipy():
    chances = np.random.default_rng(5).random(50) ** 3
    np.testing.assert_allclose(adjusted(chances), stats.false_discovery_control(chances))
    assert np.isnan(adjusted(np.array([np.nan]))).all()
