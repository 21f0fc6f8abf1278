"""Features of tasks and items as numbers, positive where they favour the left item."""

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.data import features
from crowdrank.data.features import feature_columns, item_labels_from_sides
from crowdrank.errors import DataError, UnknownNameError


def votes(**more):
    return Comparisons.of(["a", "b", "c"], ["b", "c", "a"], ["a", "b", "tie"], **more)


def columns(comparisons, *names):
    return {name: column.tolist() for name, column in feature_columns(comparisons, names).items()}


def test_position_speaks_for_the_left_everywhere():
    assert columns(votes(), "position") == {"position": [1.0, 1.0, 1.0]}


def test_numbers_stay_as_they_are():
    assert columns(votes(features={"size": [3, -1, 0]}), "size") == {"size": [3.0, -1.0, 0.0]}
    assert columns(votes(features={"size": np.array([3, True, 0.5], dtype=object)}), "size") == {
        "size": [3.0, 1.0, 0.5]
    }


def test_a_text_becomes_one_column_a_category():
    told = votes(features={"layout": ["grid", "list", "grid"]})
    assert columns(told, "layout") == {"layout=grid": [1.0, 0.0, 1.0], "layout=list": [0.0, 1.0, 0.0]}


def test_a_number_about_items_becomes_left_less_right():
    told = votes().with_item_features({"length": [10, 4, 1]})
    assert columns(told, "length") == {"length": [6.0, 3.0, -9.0]}


def test_a_text_about_items_becomes_one_column_a_category():
    told = votes().with_item_features({"style": ["bold", "plain", "neat"]})
    assert columns(told, "style") == {
        "style=bold": [1.0, 0.0, -1.0],
        "style=neat": [0.0, -1.0, 1.0],
        "style=plain": [-1.0, 1.0, 0.0],
    }
    assert columns(told, "style=neat") == {"style=neat": [0.0, -1.0, 1.0]}


def test_of_two_categories_the_first_speaks_for_both():
    told = votes().with_item_features({"style": ["plain", "bold", "plain"]})
    assert columns(told, "style") == {"style=bold": [-1.0, 1.0, 0.0]}


def test_items_of_one_category_say_nothing():
    assert columns(votes().with_item_features({"style": ["x"] * 3}), "style") == {"style=x": [0.0] * 3}


def test_features_go_with_their_rows_and_stay_beside_others():
    told = votes(features={"size": [1, 2, 3]}).with_item_features({"length": [10, 4, 1]})
    some = told.take(np.array([2, 0]))
    assert columns(some, "size", "length") == {"size": [3.0, 1.0], "length": [-9.0, 6.0]}
    assert told.to_frame().columns[-2:] == ["size", "length"]


def test_what_is_missing_is_counted_and_named():
    with pytest.raises(DataError, match="'size' has missing values: 2 of 3 comparisons"):
        columns(votes(features={"size": [1.0, np.nan, np.inf]}), "size")
    for nothing in (None, "", np.nan):
        told = votes(features={"layout": ["grid", nothing, "list"]})
        assert told.features["layout"].tolist() == ["grid", "", "list"]
        assert told.to_frame().height == 3
        with pytest.raises(DataError, match="'layout' has missing values: 1 of 3 comparisons"):
            columns(told, "layout")
    with pytest.raises(DataError, match=r"'style' has missing values: 2 of 3 items \(b, c\)"):
        votes().with_item_features({"style": ["bold", None, ""]})
    with pytest.raises(DataError, match=r"'length' has missing values: 1 of 3 items \(a\)"):
        votes().with_item_features({"length": [np.nan, 1, 2]})


def test_a_feature_that_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'layout'"):
        columns(votes(features={"layout": ["x"] * 3}), "layuot")


def test_names_that_are_taken_are_refused():
    told = votes(features={"length": [1, 2, 3]})
    with pytest.raises(DataError, match="already a feature 'length'"):
        told.with_item_features({"length": [1, 2, 3]})
    with pytest.raises(DataError, match="already a feature 'position'"):
        told.with_item_features({"position": [1, 2, 3]})


def test_a_column_needs_a_value_for_each_item():
    with pytest.raises(DataError, match="2 values for 3 items"):
        votes().with_item_features({"length": [1, 2]})


def test_names_are_not_taken_for_kinds(monkeypatch):
    monkeypatch.setattr(features, "MAX_CATEGORIES", 2)
    with pytest.raises(DataError, match="has 3 categories, such as 'p'"):
        columns(votes(features={"id": ["p", "q", "r"]}), "id")


def test_sides_that_nobody_knows_draw_to_no_side():
    """If only winner and loser are known, left is the winner, and a column of ones would predict every answer."""
    told = votes(features={"layout": ["grid", "list", "grid"]}, positions_known=False)
    for name in ("position", "layout"):
        with pytest.raises(DataError, match=f"needs screen positions.*Leave '{name}' out"):
            columns(told, name)
    assert columns(told.with_item_features({"length": [10, 4, 1]}), "length")["length"] == [6.0, 3.0, -9.0]


def test_rows_tell_one_thing_of_each_item():
    told = votes()
    assert item_labels_from_sides(told, ["g", "y", ""], ["y", "", "g"], "engine").tolist() == ["g", "y", ""]
    with pytest.raises(DataError, match="Item a has more than one engine: 'g' and 'y'"):
        item_labels_from_sides(told, ["g", "y", "z"], ["y", "z", "y"], "engine")
