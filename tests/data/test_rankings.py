import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Rankings
from crowdrank.errors import DataError
from tests.strategies import rankings

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def as_lists(judgments):
    """Each list as (query, annotator, places), places as sorted labels."""
    found = []
    for n in range(len(judgments)):
        rows = slice(judgments.offsets[n], judgments.offsets[n + 1])
        item, place = judgments.item[rows], judgments.place[rows]
        places = tuple(tuple(sorted(judgments.items.labels[item[place == p]])) for p in range(place[-1] + 1))
        query = judgments.items.queries[judgments.items.query[item[0]]]
        who = None if judgments.annotator is None else judgments.annotators[judgments.annotator[n]]
        found.append((query, who, places))
    return found


def test_ranks_become_places_and_ties_share_one():
    lists = Rankings.of(item=["c", "a", "b", "d"], rank=[3, 1, 3, 10], annotator=["x"] * 4)
    assert as_lists(lists) == [("", "x", (("a",), ("b", "c"), ("d",)))]
    assert lists.place.tolist() == [0, 1, 1, 2]


def test_a_list_is_one_of_query_annotator_and_number():
    lists = Rankings.of(
        item=["a", "b"] * 4,
        rank=[1, 2, 2, 1, 1, 2, 1, 2],
        annotator=["x", "x", "y", "y"] * 2,
        query=["q"] * 4 + ["p"] * 4,
        list=[1] * 8,
    )
    assert sorted(as_lists(lists)) == sorted(
        [
            ("q", "x", (("a",), ("b",))),
            ("q", "y", (("b",), ("a",))),
            ("p", "x", (("a",), ("b",))),
            ("p", "y", (("a",), ("b",))),
        ]
    )


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(0)
    item, rank, who = ["a", "b", "c", "a", "b"], [1, 2, 3, 2, 1], ["x", "x", "x", "y", "y"]
    straight = Rankings.of(item, rank, annotator=who)
    for _ in range(5):
        rows = rng.permutation(5)
        other = Rankings.of([item[r] for r in rows], [rank[r] for r in rows], annotator=[who[r] for r in rows])
        np.testing.assert_array_equal(other.item, straight.item)
        np.testing.assert_array_equal(other.offsets, straight.offsets)


def test_choices_are_one_above_the_rest():
    lists = Rankings.of_choices(["x", "z"], [["x", "y", "z"], ["y", "z"]], annotator=["a", "b"])
    assert as_lists(lists) == [("", "a", (("x",), ("y", "z"))), ("", "b", (("z",), ("y",)))]


@pytest.mark.parametrize("offered", [["y", "z"], ["x"], []])
def test_a_choice_must_be_one_of_several(offered):
    with pytest.raises(DataError, match="Row 1: the chosen item must be one of several offered, got 'x'"):
        Rankings.of_choices(["x"], [offered])


def test_an_item_twice_in_a_list_is_refused():
    with pytest.raises(DataError, match="Item a is in one list twice"):
        Rankings.of(["a", "b", "a"], [1, 2, 3])


def test_no_lists_are_refused():
    with pytest.raises(DataError, match="The lists contain no items"):
        Rankings.of_lists([])


def test_weights_stay_with_their_lists():
    lists = Rankings.of_lists([[["b"], ["a"]], [], [["a"], ["b"]]], weight=[1.0, 5.0, 2.0])
    assert len(lists) == 2
    assert lists.weights.tolist() == [1.0, 2.0]
    assert as_lists(lists)[0][2] == (("b",), ("a",))
    with pytest.raises(DataError, match="Row 2: weight must be positive"):
        Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"]]], weight=[1.0, 0.0])
    with pytest.raises(DataError, match="only for lists without query and annotator"):
        Rankings.of_lists([[["a"], ["b"]]], weight=[1.0], annotator=["x"])


def test_many_lists_keep_their_order():
    made = [[[f"i{n % 7}"], [f"i{(n + 1) % 7}"]] for n in range(120)]
    lists = Rankings.of_lists(made)
    assert [places for _, _, places in as_lists(lists)] == [tuple(tuple(p) for p in one) for one in made]


@quick
@given(lists=rankings(), data=st.data())
def test_taking_lists_takes_them_whole(lists, data):
    chosen = np.array(data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=8)))
    before = as_lists(lists)
    assert as_lists(lists.take(chosen)) == [before[n] for n in chosen]


@quick
@given(lists=rankings(), data=st.data())
def test_reweighting_leaves_out_what_weighs_nothing(lists, data):
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(lists), max_size=len(lists))))
    if not weight.any():
        return
    changed = lists.reweighted(weight)
    before = as_lists(lists)
    assert as_lists(changed) == [before[n] for n in np.flatnonzero(weight)]
    assert changed.weights.tolist() == weight[weight > 0].tolist()


@quick
@given(lists=rankings())
def test_swapping_turns_every_list_upside_down_and_back(lists):
    turned = lists.with_outcomes_reversed()
    assert as_lists(turned) == [(q, who, places[::-1]) for q, who, places in as_lists(lists)]
    assert as_lists(turned.with_outcomes_reversed()) == as_lists(lists)


@quick
@given(lists=rankings())
def test_missing_items_come_last_and_tied(lists):
    made = lists.with_missing_last()
    everyone = {q: set() for q in lists.items.queries}
    for q, label in zip(lists.items.queries[lists.items.query], lists.items.labels, strict=True):
        everyone[q].add(label)
    expected = []
    for query, who, places in as_lists(lists):
        left_out = everyone[query] - {label for place in places for label in place}
        expected.append((query, who, (*places, tuple(sorted(left_out))) if left_out else places))
    assert as_lists(made) == expected


@quick
@given(lists=rankings())
def test_a_frame_holds_all_there_is_to_know(lists):
    frame = lists.to_frame()
    again = Rankings.of(
        frame["item"], frame["rank"], annotator=frame["annotator"], query=frame["query"], list=frame["list"]
    )
    assert sorted(as_lists(again), key=repr) == sorted(as_lists(lists), key=repr)


@quick
@given(lists=rankings())
def test_items_are_counted_in_every_list_they_stand_in(lists):
    expected = [
        sum(label in sum(places, ()) and q == query for q, _, places in as_lists(lists))
        for query, label in zip(lists.items.queries[lists.items.query], lists.items.labels, strict=True)
    ]
    assert lists.n_judgments_per_item.tolist() == expected


def test_columns_cannot_be_written_to():
    lists = Rankings.of_lists([[["a"], ["b"]]], weight=[1.0])
    for name in ("item", "place", "offsets", "weight"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(lists, name)[0] = 1
