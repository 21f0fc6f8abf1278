"""Grades as classes: as they are if there are few, else by quantiles of their query."""

import numpy as np
import pytest
from scipy.stats import rankdata

from crowdrank.data import Ratings
from crowdrank.errors import SettingError
from crowdrank.models.ratings.dawid_skene import MAX_DISTINCT_GRADES, GradeClasses, check_bins


def graded(grades, query=None, weight=None):
    return Ratings.of([f"i{n % 7}" for n in range(len(grades))], grades, query=query, weight=weight)


def test_few_distinct_grades_are_classes_for_all_queries():
    classes = GradeClasses.of(graded([1, 5, 3, 3], query=["p", "p", "q", "q"]), 2)
    assert classes.code.tolist() == [0, 2, 1, 1]
    assert classes.value.tolist() == [[1, 3, 5]] * 2
    assert not classes.per_query


def test_many_grades_are_cut_at_quantiles():
    classes = GradeClasses.of(graded(np.arange(100)), 5)
    assert np.bincount(classes.code).tolist() == [20] * 5
    np.testing.assert_allclose(classes.value, [[9.5, 29.5, 49.5, 69.5, 89.5]])
    assert classes.per_query


def test_equal_grades_share_the_class_of_their_middle_rank():
    grades = np.array([0] * 60 + list(range(1, 41)))
    classes = GradeClasses.of(graded(grades), 10)
    np.testing.assert_array_equal(classes.code, ((rankdata(grades) - 0.5) / 100 * 10).astype(int))
    assert set(classes.code[:60]) == {3}
    assert (np.diff(classes.value[0]) >= 0).all()


def test_each_query_has_its_own_bins():
    near, far = np.linspace(0, 1, 50), np.linspace(-900, 900, 50)
    classes = GradeClasses.of(graded([*near, *far], query=["p"] * 50 + ["q"] * 50), 5)
    np.testing.assert_array_equal(classes.code[:50], classes.code[50:])
    assert classes.value[1].max() > 100 > 1 > classes.value[0].max()


def test_a_weight_counts_as_a_repetition():
    grades, times = np.arange(15.0), np.array([1, 4, 2] * 5)
    whole = GradeClasses.of(graded(np.repeat(grades, times)), 4)
    weighted = GradeClasses.of(graded(grades, weight=times), 4)
    np.testing.assert_array_equal(np.repeat(weighted.code, times), whole.code)
    np.testing.assert_allclose(weighted.value, whole.value)


def test_as_many_distinct_grades_as_bins_stay_unchanged():
    grades = np.arange(MAX_DISTINCT_GRADES + 5.0)
    assert GradeClasses.of(graded(grades), MAX_DISTINCT_GRADES + 5).size == MAX_DISTINCT_GRADES + 5
    assert GradeClasses.of(graded(grades), MAX_DISTINCT_GRADES + 4).per_query


@pytest.mark.parametrize("bins", [1, 0, 1001])
def test_bins_are_at_least_two(bins):
    with pytest.raises(SettingError, match=f"bins must lie between 2 and 1000, got {bins}"):
        check_bins(bins)
