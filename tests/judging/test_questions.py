"""Which pairs are asked: all, a balanced design, or those of a file."""

from __future__ import annotations

from collections import Counter

import pytest

from crowdrank.errors import DataError, FormatError, SettingError, UnknownNameError
from crowdrank.judging.prompts import choose_pairs, read_texts


def items(n, queries=1):
    labels = [f"i{k}" for k in range(n)] * queries
    return read_texts({"item": labels, "query": [f"q{k // n}" for k in range(n * queries)], "text": labels})


def as_sets(pairs):
    return Counter((pair.query, frozenset(pair[1:])) for pair in pairs)


@pytest.mark.parametrize("both", [True, False])
def test_all_pairs_of_each_query_are_asked_once_per_order(both):
    pairs = choose_pairs(items(5, queries=3), "all", seed=0, both_orders=both)
    assert set(as_sets(pairs).values()) == {2 if both else 1}
    assert len(as_sets(pairs)) == 3 * 10
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("n", [4, 5, 9, 12, 31])
@pytest.mark.parametrize("per_item", [2, 3, 4, 5, 40])
def test_a_design_gives_each_item_the_same_number_of_pairs(n, per_item):
    pairs = choose_pairs(items(n), per_item, seed=1, both_orders=False)
    assert set(as_sets(pairs).values()) == {1}
    degree = Counter(label for pair in pairs for label in pair[1:])
    wanted = min(per_item, n - 1)
    assert len(degree) == n
    # With an odd number of items an odd number of pairs per item is impossible: one item has one pair less.
    assert sorted(degree.values())[1:] == [wanted] * (n - 1)
    assert min(degree.values()) >= wanted - 1


def test_a_design_connects_all_items():
    neighbours = {f"i{k}": set() for k in range(30)}
    for _, a, b in choose_pairs(items(30), 2, seed=3, both_orders=False):
        neighbours[a].add(b)
        neighbours[b].add(a)
    reached, waiting = set(), ["i0"]
    while waiting:
        reached.add(label := waiting.pop())
        waiting += neighbours[label] - reached
    assert len(reached) == 30


def test_sides_are_random_and_stay_when_items_are_added():
    few = set(choose_pairs(items(12), "all", seed=0, both_orders=False))
    more = set(choose_pairs(items(15), "all", seed=0, both_orders=False))
    assert few <= more
    left = sum(pair.left < pair.right for pair in more)
    assert 30 < left < 75


def test_pairs_of_a_file_keep_their_sides(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("annotator,left,right\nm,i2,i1\nm,i0,i1\nm,i2,i1\n\n")
    asked = choose_pairs(items(3), file, seed=0, both_orders=False)
    assert {pair[1:] for pair in asked} == {("i2", "i1"), ("i0", "i1")}
    assert len(choose_pairs(items(3), file, seed=0, both_orders=True)) == 4


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("i0,i9", UnknownNameError, "No item named 'i9'"),
        ("i0,i0", DataError, "paired with itself"),
        ("i0,", FormatError, "right is missing"),
    ],
)
def test_pairs_that_cannot_be_asked_are_refused(rows, error, message, tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text(f"left,right\n{rows}\n")
    with pytest.raises(error, match=message):
        choose_pairs(items(3), file, seed=0, both_orders=False)


def test_a_pair_of_several_queries_needs_a_query(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("left,right\ni0,i1\n")
    with pytest.raises(DataError, match="in 2 queries"):
        choose_pairs(items(3, queries=2), file, seed=0, both_orders=False)
    file.write_text("query,left,right\nq1,i0,i1\n")
    assert choose_pairs(items(3, queries=2), file, seed=0, both_orders=False)[0] == ("q1", "i0", "i1")


def test_too_few_and_too_many_pairs_are_refused():
    with pytest.raises(SettingError, match="at least 2 per item"):
        choose_pairs(items(4), 1, seed=0, both_orders=False)
    with pytest.raises(SettingError, match=r"1,999,000,? pairs|1,999,000 pairs"):
        choose_pairs(items(2000), "all", seed=0, both_orders=False)
    with pytest.raises(DataError, match="nothing to compare"):
        choose_pairs(items(1, queries=3), "all", seed=0, both_orders=False)


def test_texts_are_found_by_name_and_labels_stand_in_for_them():
    assert read_texts({"item": ["a"], "Answer": ["long"]})["", "a"].text == "long"
    assert read_texts({"item": ["a"], "year": [1999]})["", "a"].text == "a"
    assert read_texts({"item": ["a"], "year": [1999]}, {"text": "year"})["", "a"].text == "1999"
    with pytest.raises(FormatError, match="no text, such as 'b'"):
        read_texts({"item": ["a", "b"], "text": ["x", ""]})
    with pytest.raises(UnknownNameError, match="column"):
        read_texts({"item": ["a"], "text": ["x"]}, {"text": "nowhere"})
