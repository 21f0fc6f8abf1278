from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import accuracy, kendall_correlation, kendall_distance, spearman_correlation, top_k_overlap

Columns = tuple[list[float], list[float]]
ALL = [accuracy, kendall_distance, kendall_correlation, spearman_correlation, lambda s, t: top_k_overlap(s, t, k=3)]

FEW = st.integers(-3, 3).map(float)
"""Few values, so that ties are common."""
ANY = st.floats(allow_nan=False)


def columns(values: st.SearchStrategy[float] = FEW, least: int = 1) -> st.SearchStrategy[Columns]:
    pairs = st.lists(st.tuples(values, values), min_size=least, max_size=30)
    return pairs.map(lambda rows: ([a for a, _ in rows], [b for _, b in rows]))


def without_warnings(oracle: Callable[..., tuple[float, float]], *data: list[float]) -> float:
    """SciPy warns about constant input; the value is still nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(oracle(*data)[0])


@given(columns(FEW | ANY))
def test_accuracy_is_equation_20_summed_over_every_pair(data: Columns) -> None:
    s, y = map(np.array, data)
    ordered = y[:, None] > y[None, :]
    kept = ordered & (s[:, None] > s[None, :])
    expected = kept.sum() / ordered.sum() if ordered.any() else np.nan
    np.testing.assert_equal(accuracy(s, y), expected)


def test_accuracy_counts_an_estimated_tie_as_wrong_and_a_true_tie_not_at_all() -> None:
    assert accuracy([1, 1, 1], [3, 2, 1]) == 0
    assert accuracy([3, 2, 1], [2, 2, 1]) == 1
    assert accuracy([3, 3, 1], [3, 2, 1]) == pytest.approx(2 / 3)


def test_the_example_of_the_tpp_paper_has_distance_four() -> None:
    d1_to_d5 = [5, 4, 3, 2, 1]
    d3_d4_d1_d2_d5 = [3, 2, 5, 4, 1]
    assert kendall_distance(d3_d4_d1_d2_d5, d1_to_d5) == 4
    assert kendall_distance(d3_d4_d1_d2_d5, d1_to_d5, normalised=True) == 0.4


@given(columns(FEW | ANY))
def test_kendall_distance_counts_every_pair_by_hand(data: Columns) -> None:
    rows = list(zip(*data, strict=True))
    reversed_ = sum((s - r) * (t - u) < 0 for (s, t), (r, u) in combinations(_ranked(rows), 2))
    half = sum(s == r and t != u for (s, t), (r, u) in combinations(rows, 2)) / 2
    assert kendall_distance(*data) == reversed_ + half


def _ranked(rows: list[tuple[float, float]]) -> list[tuple[int, int]]:
    """Small whole numbers in the same order: differences of huge or infinite ones are not safe."""
    first, second = (sorted({r[n] for r in rows}) for n in (0, 1))
    return [(first.index(a), second.index(b)) for a, b in rows]


@given(columns(least=2))
def test_normalised_distance_runs_from_the_true_order_to_its_reverse(data: Columns) -> None:
    truth = np.array(data[1])
    if len(set(data[1])) > 1:
        assert kendall_distance(truth, truth, normalised=True) == 0
        assert kendall_distance(-truth, truth, normalised=True) == 1
        assert kendall_distance(np.zeros(len(truth)), truth, normalised=True) == 0.5
    else:
        assert np.isnan(kendall_distance(data[0], truth, normalised=True))


@given(columns(FEW | ANY, least=2))
def test_kendall_correlation_is_scipys(data: Columns) -> None:
    expected = without_warnings(stats.kendalltau, *data)
    np.testing.assert_allclose(kendall_correlation(*data), expected, atol=1e-12)


@given(columns(FEW | ANY, least=2))
def test_spearman_correlation_is_scipys(data: Columns) -> None:
    ranks = [stats.rankdata(column) for column in data]
    expected = without_warnings(stats.spearmanr, *ranks)
    np.testing.assert_allclose(spearman_correlation(*data), expected, atol=1e-12)


def test_a_large_order_agrees_with_scipy() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=100_000)
    scores = np.round(truth + rng.normal(size=len(truth)), 2)
    assert kendall_correlation(scores, truth) == pytest.approx(stats.kendalltau(scores, truth)[0], abs=1e-12)
    assert spearman_correlation(scores, truth) == pytest.approx(stats.spearmanr(scores, truth)[0], abs=1e-9)


def test_perfect_agreement_is_exactly_one_and_perfect_disagreement_exactly_minus_one() -> None:
    for n in range(2, 60):
        order = np.arange(n)
        assert kendall_correlation(order, order) == spearman_correlation(order, order) == 1
        assert kendall_correlation(-order, order) == spearman_correlation(-order, order) == -1


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n)))))
def test_the_overlap_of_untied_orders_is_that_of_two_sets(data: tuple[list[int], list[int]]) -> None:
    tops = [{item for item, score in enumerate(column) if score >= len(column) - 3} for column in data]
    assert top_k_overlap(*data, k=3) == pytest.approx(len(tops[0] & tops[1]) / min(3, len(data[0])))


def test_items_truly_tied_for_the_last_place_are_equally_welcome() -> None:
    truth = [1, 1, 1, 0, 0]
    assert top_k_overlap([5, 4, 3, 2, 1], truth, k=2) == 1
    assert top_k_overlap([3, 4, 5, 2, 1], truth, k=2) == 1
    assert top_k_overlap([1, 2, 3, 4, 5], truth, k=2) == 0


def test_items_truly_tied_for_the_last_place_do_not_stand_in_for_better_ones() -> None:
    assert top_k_overlap([0, 3, 2, 1], [9, 0, 0, 0], k=2) == 0.5


def test_tied_scores_give_their_expected_overlap() -> None:
    assert top_k_overlap([1, 1, 1, 1], [4, 3, 2, 1], k=2) == 0.5
    assert top_k_overlap([2, 1, 1, 0], [4, 3, 2, 1], k=2) == 0.75


def test_k_beyond_the_number_of_items_means_all_of_them() -> None:
    assert top_k_overlap([1, 2], [2, 1], k=10) == 1


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_the_overlap_refuses_a_k_that_is_no_count(k: int) -> None:
    with pytest.raises(SettingError, match="k must be a whole number of at least 1"):
        top_k_overlap([1, 2], [1, 2], k=k)


def test_one_item_orders_nothing() -> None:
    assert np.isnan(accuracy([1], [1]))
    assert kendall_distance([1], [1]) == 0
    assert np.isnan(kendall_distance([1], [1], normalised=True))
    assert np.isnan(kendall_correlation([1], [1]))
    assert np.isnan(spearman_correlation([1], [1]))
    assert top_k_overlap([1], [1], k=1) == 1


def test_correlations_are_undefined_when_either_side_is_all_tied() -> None:
    for metric in (kendall_correlation, spearman_correlation):
        assert np.isnan(metric([1, 1, 1], [1, 2, 3]))
        assert np.isnan(metric([1, 2, 3], [1, 1, 1]))


def test_infinite_scores_have_their_place_in_the_order() -> None:
    assert accuracy([np.inf, 0, -np.inf], [3, 2, 1]) == kendall_correlation([np.inf, 0, -np.inf], [3, 2, 1]) == 1


@given(columns(), st.randoms(use_true_random=False))
def test_no_metric_depends_on_the_order_of_the_items(data: Columns, random: object) -> None:
    shuffled = list(zip(*data, strict=True))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for metric in ALL:
        np.testing.assert_allclose(metric(*zip(*shuffled, strict=True)), metric(*data), atol=1e-12)


@pytest.mark.parametrize("metric", ALL)
def test_every_metric_refuses_what_is_not_two_columns_of_numbers(metric: Callable[..., float]) -> None:
    with pytest.raises(DataError, match="Row 2: scores must be a number, got nan"):
        metric([1, np.nan], [1, 2])
    with pytest.raises(DataError, match="Row 1: truth must be a number, got nan"):
        metric([1, 2], [np.nan, 2])
    with pytest.raises(DataError, match="same length, got 3 and 2"):
        metric([1, 2, 3], [1, 2])
    with pytest.raises(DataError, match="are empty"):
        metric([], [])
    with pytest.raises(DataError, match="one dimension, got 2"):
        metric([[1, 2]], [[1, 2]])
    with pytest.raises(DataError, match="scores must be numbers"):
        metric(["a"], [1])
