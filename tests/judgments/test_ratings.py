import numpy as np
import pytest
from hypothesis import given, settings

from crowdrank.errors import DataError
from crowdrank.judgments import Ratings
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
        ([1.0], "grade: 1 values for 2 rows"),
    ],
)
def test_what_is_wrong_is_said(grade, said):
    with pytest.raises(DataError, match=said):
        Ratings.of(["a", "b"], grade, annotator=["x", "x"])


def test_without_annotators_grades_cannot_be_compared():
    grades = Ratings.of(["a", "b"], [1, 2])
    for convert in (grades.to_comparisons, grades.to_rankings):
        with pytest.raises(DataError, match="who gave which grade"):
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
