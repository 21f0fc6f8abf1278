import numpy as np
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.data.tables import number_column, weight_column
from crowdrank.errors import DataError


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([1.0, 2.0], np.float32)])
def test_any_numbers_become_doubles(values):
    column = number_column(values, "grade", 2)
    assert column.dtype == np.float64
    assert column.tolist() == [1.0, 2.0]


def test_numbers_are_the_callers_no_more():
    values = np.array([1.0, 2.0])
    column = number_column(values, "grade", 2)
    values[0] = 7.0
    assert column[0] == 1.0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, float("nan")], "Row 2: grade must be a finite number, got nan"),
        ([float("-inf"), 1.0], "Row 1: grade must be a finite number, got -inf"),
        ([1.0], "grade: 1 values for 2 rows"),
        ([[1.0, 2.0]], "grade: 2 values for 2 rows"),
        (["one", "two"], "grade must be numbers"),
        ([None, 1.0], "Row 1: grade must be a finite number"),
    ],
)
def test_what_is_no_number_is_refused(values, said):
    with pytest.raises(DataError, match=said):
        number_column(values, "grade", 2)


@pytest.mark.parametrize(("weight", "said"), [(0.0, "must be positive"), (-1.0, "must be positive"), (1e12, "between")])
def test_weights_must_be_positive_and_within_reach_of_each_other(weight, said):
    with pytest.raises(DataError, match=f"Row 2: weight {said}|Row 2: weight must be {said}"):
        weight_column([1.0, weight], 2)


def test_weights_that_add_up_to_whole_judgments_are_counted():
    lists = Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"], ["c"]]], weight=[4997.0, 3.0])
    assert len(lists) == 2
    assert lists.n_judgments == 5000
    assert lists.n_judgments_per_item.tolist() == [5000, 5000, 3]
    split = Comparisons.of(["a", "a", "b"], ["b", "b", "c"], ["a", "b", "b"], weight=[0.7, 0.3, 1.0])
    assert split.n_judgments == 2
    assert split.n_judgments_per_item.tolist() == [1, 2, 1]


def test_other_weights_do_not_change_the_count():
    votes = Comparisons.of(["a", "a"], ["b", "c"], ["a", "c"], weight=[0.9, 0.5])
    assert votes.n_judgments == 2
    assert votes.n_judgments_per_item.tolist() == [2, 1, 1]
    assert Comparisons.of(["a"], ["b"], ["a"], weight=[0.01]).n_judgments == 1
    assert Comparisons.of(["a", "c"], ["b", "b"], ["a", "c"], weight=[0.5, 0.5]).n_judgments == 2
    grades = Ratings.of(["a", "a", "b"], [1, 2, 3])
    assert (grades.n_judgments, grades.n_judgments_per_item.tolist()) == (3, [2, 1])
