"""Grades as classes: as they are where they are few, else by quantiles of their query."""

import numpy as np
import pytest
from scipy.stats import rankdata

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.grade_classes import FEW, Classes, check_bins


def graded(grades, query=None, weight=None):
    return Ratings.of([f"i{n % 7}" for n in range(len(grades))], grades, query=query, weight=weight)


def test_few_grades_are_classes_as_they_are_for_all_queries():
    classes = Classes.of(graded([1, 5, 3, 3], query=["p", "p", "q", "q"]), 2)
    assert classes.code.tolist() == [0, 2, 1, 1]
    assert classes.value.tolist() == [[1, 3, 5]] * 2
    assert not classes.own


def test_many_grades_are_cut_at_quantiles():
    classes = Classes.of(graded(np.arange(100)), 5)
    assert np.bincount(classes.code).tolist() == [20] * 5
    np.testing.assert_allclose(classes.value, [[9.5, 29.5, 49.5, 69.5, 89.5]])
    assert classes.own


def test_equal_grades_share_a_class_where_the_middle_of_them_lies():
    grades = np.array([0] * 60 + list(range(1, 41)))
    classes = Classes.of(graded(grades), 10)
    np.testing.assert_array_equal(classes.code, ((rankdata(grades) - 0.5) / 100 * 10).astype(int))
    assert set(classes.code[:60]) == {3}
    assert (np.diff(classes.value[0]) >= 0).all()


def test_each_query_is_cut_by_itself():
    near, far = np.linspace(0, 1, 50), np.linspace(-900, 900, 50)
    classes = Classes.of(graded([*near, *far], query=["p"] * 50 + ["q"] * 50), 5)
    np.testing.assert_array_equal(classes.code[:50], classes.code[50:])
    assert classes.value[1].max() > 100 > 1 > classes.value[0].max()


def test_a_weight_is_a_repetition():
    grades, times = np.arange(15.0), np.array([1, 4, 2] * 5)
    whole = Classes.of(graded(np.repeat(grades, times)), 4)
    weighted = Classes.of(graded(grades, weight=times), 4)
    np.testing.assert_array_equal(np.repeat(weighted.code, times), whole.code)
    np.testing.assert_allclose(weighted.value, whole.value)


def test_as_many_grades_as_bins_are_left_as_they_are():
    grades = np.arange(FEW + 5.0)
    assert Classes.of(graded(grades), FEW + 5).size == FEW + 5
    assert Classes.of(graded(grades), FEW + 4).own


@pytest.mark.parametrize("bins", [1, 0, 1001])
def test_bins_are_at_least_two(bins):
    with pytest.raises(SettingError, match=f"bins must lie between 2 and 1000, got {bins}"):
        check_bins(bins)
