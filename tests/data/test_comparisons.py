from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import LEFT, RIGHT, TIE, Comparisons
from crowdrank.errors import DataError
from tests.strategies import comparisons

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
COLUMNS = ("left", "right", "outcome", "annotator", "weight", "time", "duration", "both_bad")


def whole():
    return Comparisons.of(
        left=["b", "a", "c"],
        right=["a", "c", "b"],
        winner=["a", "both_bad", "c"],
        annotator=["y", "x", "y"],
        weight=[1.0, 2.0, 0.5],
        time=[30, 10, 20],
        duration=[1.5, 2.5, 3.5],
        features={"font": [10, 12, 14]},
    )


def same(one, other):
    assert one.items.labels.tolist() == other.items.labels.tolist()
    assert one.items.queries.tolist() == other.items.queries.tolist()
    assert one.annotators.tolist() == other.annotators.tolist()
    for name in COLUMNS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b)


def test_the_winner_is_told_apart_from_the_side():
    votes = whole()
    assert votes.items.labels.tolist() == ["a", "b", "c"]
    assert votes.left.tolist() == [1, 0, 2]
    assert votes.right.tolist() == [0, 2, 1]
    assert votes.outcome.tolist() == [RIGHT, TIE, LEFT]
    assert votes.annotator.tolist() == [1, 0, 1]
    assert votes.ties == 1
    assert len(votes) == 3


def test_an_item_called_tie_can_win():
    votes = Comparisons.of(["tie", "tie"], ["a", "a"], ["tie", "a"])
    assert votes.outcome.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"winner": ["a", "tie", "d"]}, "Row 3: winner must be 'c', 'b', 'tie' or 'both_bad', got 'd'"),
        ({"winner": ["a", None, "c"]}, "Row 2: winner must be 'a', 'c', 'tie' or 'both_bad', got None"),
        ({"right": ["a", "a", "b"], "winner": ["a", "a", "c"]}, "Row 2: 'a' is compared with itself"),
        ({"left": ["b", "a", None]}, "Row 3: left is missing"),
        ({"annotator": ["y", None, "y"]}, "Row 2: annotator is missing"),
        ({"query": ["q", "q", None]}, "Row 3: query is missing"),
        ({"weight": [1.0, 0.0, 1.0]}, "Row 2: weight must be positive, got 0.0"),
        ({"weight": [1.0, 1.0, -2.0]}, "Row 3: weight must be positive, got -2.0"),
        ({"weight": [1.0, float("nan"), 1.0]}, "Row 2: weight must be a finite number, got nan"),
        ({"weight": [1.0, 2.0]}, "weight: 2 values for 3 rows"),
        ({"weight": ["heavy", 1, 2]}, "weight must be numbers"),
        ({"time": [1.0, 2.0, float("inf")]}, "Row 3: time must be a finite number, got inf"),
        ({"features": {"font": [1, 2]}}, "judgments: 3, feature 'font': 2"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(change, said):
    columns = {"left": ["b", "a", "c"], "right": ["a", "c", "b"], "winner": ["a", "tie", "c"]}
    with pytest.raises(DataError, match=said):
        Comparisons.of(**(columns | change))


def test_columns_cannot_be_written_to():
    votes = whole()
    for name in COLUMNS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(votes, name)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        votes.features["font"][0] = 1
    with pytest.raises(TypeError):
        votes.features["other"] = np.zeros(3)
    with pytest.raises(AttributeError):
        votes.left = votes.right


def test_what_the_caller_does_to_his_own_arrays_stays_with_him():
    weight, time, font = np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([10, 12])
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"], weight=weight, time=time, features={"font": font})
    weight[0], time[0], font[0] = 99.0, 99.0, 99
    assert (votes.weight[0], votes.time[0], votes.features["font"][0]) == (1.0, 1.0, 10)
    weight[0] = 1.0  # and stay writable


def test_weights_are_ones_where_none_were_given():
    votes = Comparisons.of(["a"], ["b"], ["a"])
    assert votes.weight is None
    assert votes.weights.tolist() == [1.0]


@quick
@given(votes=comparisons(), data=st.data())
def test_taking_rows_keeps_codes(votes, data):
    rows = np.array(data.draw(st.lists(st.integers(0, len(votes) - 1), min_size=1, max_size=10)))
    taken = votes.take(rows)
    assert taken.items is votes.items
    for name in COLUMNS:
        column = getattr(votes, name)
        if column is not None:
            np.testing.assert_array_equal(getattr(taken, name), column[rows])
    same(votes.take(slice(0, len(votes))), votes)


def test_taking_rows_takes_features_along():
    taken = whole().take(np.array([2, 0]))
    assert taken.features["font"].tolist() == [14, 10]
    assert taken.duration.tolist() == [3.5, 1.5]


@quick
@given(votes=comparisons(), data=st.data())
def test_reweighting_leaves_out_what_weighs_nothing(votes, data):
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(votes), max_size=len(votes))))
    changed = votes.reweighted(weight)
    np.testing.assert_array_equal(changed.weight, weight[weight > 0])
    np.testing.assert_array_equal(changed.left, votes.left[weight > 0])
    assert len(changed.items) == len(votes.items)


@quick
@given(votes=comparisons())
def test_swapping_turns_every_answer_round_and_back(votes):
    turned = votes.with_outcomes_reversed()
    np.testing.assert_array_equal(turned.outcome, -votes.outcome)
    np.testing.assert_array_equal(turned.left, votes.left)
    same(turned.with_outcomes_reversed(), votes)


def test_order_of_time_is_that_of_the_clock_and_keeps_equal_times_as_they_stand():
    assert whole().sorted_by_time().time.tolist() == [10, 20, 30]
    plain = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    assert plain.sorted_by_time() is plain
    level = Comparisons.of(["a", "b", "c"], ["b", "c", "a"], ["a", "b", "c"], time=[1, 0, 1])
    assert level.sorted_by_time().left.tolist() == [1, 0, 2]


@quick
@given(votes=comparisons())
def test_items_are_counted_in_every_row_they_appear_in(votes):
    votes = replace(votes, weight=None)
    expected = [np.count_nonzero((votes.left == n) | (votes.right == n)) for n in range(len(votes.items))]
    assert votes.n_judgments_per_item.tolist() == expected


@quick
@given(votes=comparisons())
def test_a_frame_holds_all_there_is_to_know(votes):
    frame = votes.to_frame()
    again = Comparisons.of(**{name: frame[name] for name in frame.columns})
    same(votes, again)


def test_a_frame_carries_everything_that_came_with_the_rows():
    frame = whole().to_frame()
    assert frame.columns == ["annotator", "left", "right", "winner", "weight", "time", "duration", "font"]
    assert frame["winner"].to_list() == ["a", "both_bad", "c"]
    extra = frame["font"].to_list()
    again = Comparisons.of(**{n: frame[n] for n in frame.columns if n != "font"}, features={"font": extra})
    same(whole(), again)


def test_labels_of_numbers_survive_a_frame():
    votes = Comparisons.of([1, 2], [2, 10], [1, 10], query=[7, 7])
    frame = votes.to_frame()
    assert frame.schema["left"] == pl.String
    assert frame["winner"].to_list() == ["1", "10"]


def test_repr_counts_what_there_is():
    assert repr(whole()) == "Comparisons(3 judgments, 3 items, 2 annotators)"
    assert repr(Comparisons.of(["a"], ["b"], ["a"], query=["q"])) == "Comparisons(1 judgments, 2 items, 1 queries)"
