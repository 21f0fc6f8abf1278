from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import average_precision, ndcg, precision_at, rbp

Columns = tuple[list[float], list[float]]
ALL: dict[str, Callable[..., float]] = {
    "ndcg": lambda s, t: ndcg(s, t, k=2),
    "ndcg of all": lambda s, t: ndcg(s, t, k=2, normaliser="all"),
    "precision": lambda s, t: precision_at(s, t, k=2),
    "average precision": average_precision,
    "rbp": rbp,
}


def columns(most: int, least: int = 1) -> st.SearchStrategy[Columns]:
    """Scores, often tied, and grades from 0 to 4."""
    rows = st.tuples(st.integers(0, 3).map(float), st.integers(0, 4).map(float))
    lists = st.lists(rows, min_size=least, max_size=most)
    return lists.map(lambda found: ([s for s, _ in found], [t for _, t in found]))


def by_every_way_to_break_ties(metric: Callable[..., float], scores: list[float], truth: list[float]) -> float:
    """Break ties in all ways: whole scores are so far apart that adding 0 to n - 1 orders only tied items."""
    apart = np.array(scores) * len(scores)
    return float(np.mean([metric(apart + extra, truth) for extra in permutations(range(len(scores)))]))


@pytest.mark.parametrize("name", ALL)
@given(data=columns(most=5))
def test_ties_give_the_mean_over_every_way_to_break_them(name: str, data: Columns) -> None:
    metric = ALL[name]
    np.testing.assert_allclose(metric(*data), by_every_way_to_break_ties(metric, *data), atol=1e-12)


@given(columns(most=20, least=2), st.integers(1, 25))
def test_ndcg_is_scikit_learns(data: Columns, k: int) -> None:
    scores, truth = map(np.array, data)
    if truth.any():
        assert ndcg(scores, truth, k, gain="linear") == pytest.approx(ndcg_score([truth], [scores], k=k))
        assert ndcg(scores, truth, k) == pytest.approx(ndcg_score([2**truth - 1], [scores], k=k))
    else:
        assert np.isnan(ndcg(scores, truth, k))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20).filter(lambda grades: max(grades) >= 2))
def test_average_precision_of_untied_scores_is_scikit_learns(truth: list[int]) -> None:
    scores = np.arange(len(truth))
    expected = average_precision_score(np.array(truth) >= 2, scores)
    assert average_precision(scores, truth, threshold=2) == pytest.approx(expected)


def test_ndcg_by_hand() -> None:
    """Items in the order of grades 0, 2, 1 have gains 0, 3, 1."""
    found = 3 / math.log2(3) + 1 / 2
    best = 3 + 1 / math.log2(3)
    assert ndcg([3, 1, 2], [0, 1, 2]) == pytest.approx(found / best)
    assert ndcg([3, 1, 2], [0, 1, 2], k=2) == pytest.approx(3 / math.log2(3) / best)
    assert ndcg([3, 1, 2], [0, 1, 2], gain="linear") == pytest.approx(
        (2 / math.log2(3) + 1 / 2) / (2 + 1 / math.log2(3))
    )


def test_the_printed_normaliser_keeps_the_perfect_order_below_one() -> None:
    truth = [1, 1, 1]
    best = 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg(truth, truth, k=1) == 1
    assert ndcg(truth, truth, k=1, normaliser="all") == pytest.approx(1 / best)
    assert ndcg(truth, truth, normaliser="all") == pytest.approx(1)


@given(columns(most=12))
def test_without_k_both_normalisers_are_the_same(data: Columns) -> None:
    np.testing.assert_allclose(ndcg(*data), ndcg(*data, normaliser="all"))


def test_huge_and_tiny_grades_neither_overflow_nor_vanish() -> None:
    assert ndcg([2, 1], [2000, 1990]) == 1
    assert ndcg([1, 2], [1e6, 1e6 - 1]) == pytest.approx((1 / 2 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3)))
    assert ndcg([1, 2], [1e-30, 0]) == pytest.approx(1 / math.log2(3))


def test_ndcg_refuses_grades_without_a_gain() -> None:
    with pytest.raises(DataError, match=r"Row 2: NDCG needs finite grades that are not negative, got -1"):
        ndcg([1, 2], [1, -1])
    with pytest.raises(DataError, match="Row 1: NDCG needs finite grades"):
        ndcg([1, 2], [np.inf, 1])


def test_precision_by_hand() -> None:
    scores, truth = [5, 4, 3, 2, 1], [0, 1, 2, 0, 3]
    assert [precision_at(scores, truth, k) for k in (1, 2, 3, 5)] == [0, 1 / 2, 2 / 3, 3 / 5]
    assert precision_at(scores, truth, 3, threshold=2) == pytest.approx(1 / 3)


def test_precision_still_divides_by_k_when_there_are_fewer_items() -> None:
    assert precision_at([2, 1], [1, 1], k=10) == 0.2


def test_average_precision_by_hand() -> None:
    """Relevant at places 2, 3 and 5."""
    expected = (1 / 2 + 2 / 3 + 3 / 5) / 3
    assert average_precision([5, 4, 3, 2, 1], [0, 1, 2, 0, 3]) == pytest.approx(expected)


def test_rbp_by_hand() -> None:
    """Equation 4 with p = 0.95 and relevant items at places 1 and 3."""
    assert rbp([3, 2, 1], [1, 0, 2], persistence=0.95) == pytest.approx(0.05 * (1 + 0.95**2))
    assert rbp([3, 2, 1], [1, 0, 2], persistence=0) == 1
    assert rbp([3, 2, 1], [1, 0, 2], persistence=0.95, threshold=2) == pytest.approx(0.05 * 0.95**2)


def test_where_nothing_is_relevant_ratios_are_undefined_and_counts_are_zero() -> None:
    scores, truth = [2, 1], [0, 0]
    assert np.isnan(ndcg(scores, truth))
    assert np.isnan(average_precision(scores, truth))
    assert precision_at(scores, truth, k=1) == rbp(scores, truth) == 0


def test_one_relevant_item_is_found_at_once() -> None:
    assert ndcg([0], [3], k=5) == average_precision([0], [3]) == precision_at([0], [3], k=1) == 1
    assert rbp([0], [3]) == pytest.approx(0.2)


@given(columns(most=12), st.randoms(use_true_random=False))
def test_no_metric_depends_on_the_order_of_the_items(data: Columns, random: object) -> None:
    shuffled = list(zip(*data, strict=True))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for metric in ALL.values():
        np.testing.assert_allclose(metric(*zip(*shuffled, strict=True)), metric(*data), atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_every_metric_refuses_nan(name: str) -> None:
    with pytest.raises(DataError, match="Row 2: scores must be a number, got nan"):
        ALL[name]([1, np.nan], [1, 2])
    with pytest.raises(DataError, match="Row 1: truth must be a number, got nan"):
        ALL[name]([1, 2], [np.nan, 2])


def test_settings_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(SettingError, match="gain must be one of 'exponential', 'linear', got 'square'"):
        ndcg([1], [1], gain="square")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="normaliser must be one of 'k', 'all', got 'n'"):
        ndcg([1], [1], normaliser="n")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="persistence must be at least 0 and below 1, got 1"):
        rbp([1], [1], persistence=1)
    for metric in (ndcg, precision_at):
        with pytest.raises(SettingError, match="k must be a whole number of at least 1, got 0"):
            metric([1], [1], k=0)
