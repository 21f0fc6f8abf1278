import numpy as np
import pytest
from hypothesis import given, settings

from crowdrank.data import Ratings
from crowdrank.errors import DataError
from tests.strategies import ratings

quick = settings(max_examples=40, deadline=None)


def test_grades_stand_beside_their_items():
    grades = Ratings.of(["b", "a"], [4, 2.5], annotator=["x", "y"], query=["q", "q"])
    assert grades.items.labels.tolist() == ["a", "b"]
    assert grades.item.tolist() == [1, 0]
    assert grades.grade.tolist() == [4.0, 2.5]
    assert len(grades) == 2


@pytest.mark.parametrize(
    ("grade", "said"),
    [
        ([1.0, float("nan")], "Row 2: grade must be a finite number, got nan"),
        (["good", "bad"], "grade must be numbers"),
        ([1.0], r"differ in length \(item: 2, grade: 1, annotator: 2\)"),
    ],
)
def test_what_is_wrong_is_said(grade, said):
    with pytest.raises(DataError, match=said):
        Ratings.of(["a", "b"], grade, annotator=["x", "x"])


def test_without_annotators_grades_cannot_be_compared():
    grades = Ratings.of(["a", "b"], [1, 2])
    for convert in (grades.to_comparisons, grades.to_rankings):
        with pytest.raises(DataError, match="Grades of unknown annotators cannot be"):
            convert()


def test_grades_cannot_be_written_to():
    given_grades = np.array([1.0, 2.0])
    grades = Ratings.of(["a", "b"], given_grades, annotator=["x", "x"])
    with pytest.raises(ValueError, match="read-only"):
        grades.grade[0] = 5.0
    given_grades[0] = 5.0
    assert grades.grade[0] == 1.0


@quick
@given(grades=ratings())
def test_a_frame_holds_all_there_is_to_know(grades):
    frame = grades.to_frame()
    again = Ratings.of(frame["item"], frame["grade"], annotator=frame["annotator"])
    np.testing.assert_array_equal(again.item, grades.item)
    np.testing.assert_array_equal(again.grade, grades.grade)
    np.testing.assert_array_equal(again.annotator, grades.annotator)


def test_a_frame_names_the_query_where_there_is_one():
    assert Ratings.of(["a"], [1], query=["q"]).to_frame().columns == ["query", "item", "grade"]


def weighted():
    return Ratings.of(["a", "b", "a"], [1, 2, 4], annotator=["x", "x", "y"], query=["q", "q", "q"], weight=[1, 2, 0.5])


def test_weights_are_ones_where_none_were_given():
    assert Ratings.of(["a", "b"], [1, 2]).weights.tolist() == [1.0, 1.0]
    assert weighted().weights.tolist() == [1.0, 2.0, 0.5]
    with pytest.raises(DataError, match="Row 1: weight must be positive, got 0"):
        Ratings.of(["a"], [1], weight=[0])


def test_some_grades_keep_their_codes():
    some = weighted().take(np.array([2, 0]))
    assert (some.item.tolist(), some.grade.tolist(), some.weights.tolist()) == ([0, 0], [4.0, 1.0], [0.5, 1.0])
    assert some.annotators.tolist() == ["x", "y"]
    assert some.annotator.tolist() == [1, 0]
    assert some.n_judgments_per_item.tolist() == [2, 0]


def test_grades_of_no_weight_are_left_out():
    assert weighted().reweighted(np.array([0.0, 1.0, 3.0])).grade.tolist() == [2.0, 4.0]


def test_turned_round_the_best_is_worst():
    assert weighted().with_outcomes_reversed().grade.tolist() == [-1.0, -2.0, -4.0]


def test_a_frame_holds_weights():
    assert weighted().to_frame()["weight"].to_list() == [1.0, 2.0, 0.5]


def test_a_grade_whose_square_is_no_number_is_refused():
    with pytest.raises(DataError, match=r"Row 2: grade must be between ±1e\+100, got -1e\+308"):
        Ratings.of(["a", "b"], [1.0, -1e308])
