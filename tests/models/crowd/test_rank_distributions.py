"""Rank distributions: all algorithms agree with each other and with enumeration."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.models.crowd import contests
from crowdrank.models.crowd.contests import (
    by_convolution,
    by_divide_and_conquer,
    expected_utilities,
    fair_binomial,
    rank_distribution,
    terminal_utilities,
)

probabilities = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
some = st.lists(probabilities, max_size=6).map(np.array)
quick = settings(max_examples=60, deadline=None)
WAYS = [by_convolution, by_divide_and_conquer, rank_distribution]


def one_by_one(losing, even):
    """Every outcome of every contest."""
    contests = [*losing, *[0.5] * even]
    found = np.zeros(len(contests) + 1)
    for lost in product([0, 1], repeat=len(contests)):
        found[sum(lost)] += np.prod([p if bad else 1 - p for p, bad in zip(contests, lost, strict=True)])
    return found


@pytest.mark.parametrize("way", WAYS)
@quick
@given(losing=some, even=st.integers(0, 4))
def test_rank_distribution_equals_enumeration(way, losing, even):
    np.testing.assert_allclose(way(losing, even), one_by_one(losing, even), rtol=0, atol=1e-14)


@pytest.mark.parametrize("contests", [33, 700, 3_000])
@pytest.mark.parametrize("even", [0, 1_000])
def test_all_algorithms_agree_on_many_contests(contests, even):
    rng = np.random.default_rng(contests)
    losing = np.concatenate((rng.random(contests - 20), np.zeros(10), np.ones(10)))
    plain = np.array([1.0])
    for chance in [*losing, *[0.5] * even]:
        plain = np.convolve(plain, [1 - chance, chance])
    for way in WAYS:
        np.testing.assert_allclose(way(losing, even), plain, rtol=0, atol=1e-12)
        assert (way(losing, even) >= 0).all()


def test_uncompared_items_equal_fair_contests():
    losing = np.random.default_rng(0).random(9)
    whole = by_convolution(np.append(losing, np.full(300, 0.5)))
    np.testing.assert_allclose(by_convolution(losing, even=300), whole, rtol=0, atol=1e-14)


def test_very_many_contests_use_divide_and_conquer(monkeypatch):
    losing = np.random.default_rng(0).random(300)
    expected = by_divide_and_conquer(losing)
    monkeypatch.setattr(contests, "_DIVIDE_FROM", 300)
    monkeypatch.setattr(contests, "by_convolution", lambda *_: pytest.fail("not divided"))
    np.testing.assert_array_equal(rank_distribution(losing), expected)


@pytest.mark.parametrize("coins", [0, 1, 2, 7, 1_999, 100_000])
def test_fair_binomial_equals_scipy(coins):
    from scipy.stats import binom

    np.testing.assert_allclose(
        fair_binomial(coins), binom.pmf(np.arange(coins + 1), coins, 0.5), rtol=1e-10, atol=1e-15
    )
    assert fair_binomial(coins).sum() == pytest.approx(1, abs=1e-12)


def cells(rng, sizes, items):
    """Contests of several views, and what ends are worth to them."""
    utility = 1 / np.log2(2 + np.arange(items))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    losing = rng.random(offsets[-1])
    kinds, end = np.unique(sizes, return_inverse=True)
    ends = np.zeros((len(kinds), max(sizes) + 1))
    for row, compared in enumerate(kinds):
        ends[row, : compared + 1] = terminal_utilities(utility, items - 1 - compared, compared)
    by_distribution = [rank_distribution(losing[a:b], items - 1 - (b - a)) @ utility for a, b in pairwise(offsets)]
    return (losing, offsets, ends, end), by_distribution


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
def test_expected_utilities_equal_those_from_distributions(monkeypatch, plain):
    if not plain:
        monkeypatch.setattr(contests, "_PLAIN_UP_TO", 0)
    arguments, expected = cells(np.random.default_rng(1), [3, 1, 7, 3, 29, 1], 30)
    np.testing.assert_allclose(expected_utilities(*arguments), expected, rtol=1e-13)


def test_no_views_give_no_utilities():
    assert expected_utilities(np.array([]), np.array([0]), np.zeros((0, 1)), np.array([], np.int64)).tolist() == []
