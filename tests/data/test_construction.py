"""No invalid table can be built: every constructor rejects invalid columns and says which and why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Items, JudgmentTable, Rankings, Ratings
from crowdrank.errors import DataError

quick = settings(max_examples=100, deadline=None)
labels = st.one_of(st.sampled_from(["a", "b", "c", "tie", "", "1"]), st.none(), st.integers(0, 3), st.floats())
column = st.lists(labels, max_size=4)
anything = st.one_of(column, st.none(), st.just("a"), st.just(3), st.just(np.zeros((2, 2))), st.just([["a"], ["b"]]))
numbers = st.one_of(st.lists(st.floats(width=32), max_size=4), st.none(), st.just("3"), st.just([None, 1]), column)


def codes(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def check(table: JudgmentTable) -> None:
    """Check the invariants of a table."""
    rows = len(table)
    assert table.to_polars().height >= rows
    assert len(table.weights) == rows
    assert np.isfinite(table.weights).all()
    assert table.annotator is None or (
        len(table.annotator) == rows and table.annotator.max(initial=-1) < len(table.annotators)
    )
    assert table.n_judgments_per_item.sum() >= rows
    if isinstance(table, Comparisons):
        assert len(table.left) == len(table.right) == len(table.outcome) == rows
        assert set(table.outcome.tolist()) <= {-1, 0, 1}
        assert not (table.left == table.right).any()
    if isinstance(table, Ratings):
        assert np.isfinite(table.grade).all()


@quick
@given(anything, anything, anything, anything, anything, numbers, numbers)
def test_comparisons_are_valid_or_refused(left, right, winner, annotator, query, weight, time):
    try:
        found = Comparisons.of(left, right, winner, annotator=annotator, query=query, weight=weight, time=time)
    except DataError as refused:
        assert str(refused)
    else:
        check(found)


@quick
@given(anything, numbers, anything, anything, numbers)
@example(None, [], [], ["a", "b"], None)
def test_ratings_are_valid_or_refused(item, grade, annotator, query, weight):
    try:
        found = Ratings.of(item, grade, annotator=annotator, query=query, weight=weight)
    except DataError as refused:
        assert str(refused)
    else:
        check(found)


@quick
@given(anything, numbers, anything, anything, anything)
def test_rankings_are_valid_or_refused(item, rank, annotator, query, names):
    try:
        found = Rankings.of(item, rank, annotator=annotator, query=query, list=names)
    except DataError as refused:
        assert str(refused)
    else:
        check(found)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"winner": ["a", "b"]}, r"differ in length \(left: 1, right: 1, winner: 2\). Give one value per judgment."),
        ({"annotator": ["k", "l", "m"]}, r"left: 1, right: 1, winner: 1, annotator: 3"),
        ({"winner": []}, "winner: 0"),
        ({"query": ["q", "q"]}, "query: 2"),
        ({"left": "a"}, "left must be a column of values, got 'a'. Pass a list"),
        ({"winner": ["c"]}, "Row 1: winner must be 'a', 'b', 'tie' or 'both_bad', got 'c'"),
        ({"winner": [None]}, "Row 1: winner must be 'a', 'b', 'tie' or 'both_bad', got None"),
        ({"right": ["a"]}, "Row 1: 'a' is compared with itself"),
        ({"weight": [float("inf")]}, "Row 1: weight must be a finite number, got inf"),
        ({"weight": [1, 2]}, "weight: 2 values for 1 rows"),
        ({"features": {"font": ["x", "y"]}}, "judgments: 1, feature 'font': 2"),
        ({"features": {"font": 3}}, "feature 'font' must be a column of values"),
        ({"frame_backend": "excel"}, "frame_backend must be one of polars, pandas, pyarrow, got 'excel'"),
    ],
)
def test_a_message_names_the_column_the_lengths_and_the_remedy(columns, message):
    with pytest.raises(DataError, match=message):
        Comparisons.of(**{"left": ["a"], "right": ["b"], "winner": ["a"], **columns})


ITEMS = Items.of(["a", "b"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Comparisons(items=ITEMS, left=codes(0), right=codes(1), outcome=np.int8([1, 1])), "differ in length"),
        (
            lambda: Comparisons(items=ITEMS, left=codes(0), right=codes(2), outcome=np.int8([1])),
            "Row 1: right must be a code",
        ),
        (lambda: Comparisons(items=ITEMS, left=codes(1), right=codes(1), outcome=np.int8([1])), "compared with itself"),
        (
            lambda: Comparisons(items=ITEMS, left=codes(0), right=codes(1), outcome=np.int8([5])),
            "outcome must be 1, 0 or -1",
        ),
        (
            lambda: Comparisons(items=ITEMS, left=[0], right=codes(1), outcome=np.int8([1])),
            "left must be a one-dimensional",
        ),
        (lambda: Ratings(items=ITEMS, item=codes(0), grade=np.array([1.0, 2.0])), "differ in length"),
        (lambda: Ratings(items=ITEMS, item=codes(0), grade=np.array([np.nan])), "Row 1: grade"),
        (
            lambda: Ratings(items=ITEMS, item=codes(0), grade=np.ones(1), weight=-np.ones(1)),
            "weight must be a finite number ≥ 0",
        ),
        (lambda: Ratings(items=ITEMS, item=codes(0), grade=np.ones(1), annotator=codes(0)), "annotator must be a code"),
        (lambda: Rankings(items=ITEMS, item=codes(0, 1), place=codes(0), offsets=np.array([0, 2])), "differ in length"),
        (
            lambda: Rankings(items=ITEMS, item=codes(0, 1), place=codes(0, 1), offsets=np.array([0, 1])),
            "offsets must increase",
        ),
        (
            lambda: Rankings(items=ITEMS, item=codes(0), place=codes(0), offsets=np.array([0, 1]), weight=np.ones(2)),
            "weight: 2",
        ),
        (lambda: Items(np.array(["a"], object), codes(0, 0), np.array([""], object)), "Give one query per item"),
        (lambda: Items(np.array(["a"], object), codes(3), np.array([""], object)), "query codes must be sorted"),
        (lambda: Rankings.of_choices(["a"], [["a", "b"], ["b", "c"]]), "chosen: 1, offered: 2"),
        (lambda: Rankings.of_lists([[["a"], ["b"]]], annotator=["x", "y"]), "lists: 1, annotator: 2"),
    ],
)
def test_the_classes_themselves_refuse_what_does_not_fit(build, message):
    with pytest.raises(DataError, match=message):
        build()


@pytest.mark.parametrize(("backend", "kind"), [("polars", pl.DataFrame), ("pandas", pd.DataFrame)])
def test_judgments_go_out_as_the_kind_of_frame_that_they_came_in(backend, kind):
    tables = (
        Comparisons.of(["a"], ["b"], ["a"], annotator=["k"], frame_backend=backend),
        Ratings.of(["a", "b"], [1, 2], annotator=["k", "k"], frame_backend=backend),
        Rankings.of(["a", "b"], [1, 2], annotator=["k", "k"], frame_backend=backend),
    )
    for table in tables:
        assert isinstance(table.to_frame(), kind)
        assert isinstance(table.to_polars(), pl.DataFrame)
        assert list(table.to_frame().columns) == table.to_polars().columns
