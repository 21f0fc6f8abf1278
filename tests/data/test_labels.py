import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.data import Items
from crowdrank.data import labels as file
from crowdrank.data.labels import as_series, encode_annotators, encode_items, encode_labels
from crowdrank.errors import DataError, UnknownNameError

quick = settings(max_examples=50, deadline=None)
words = st.text(min_size=1, max_size=4)


@quick
@given(left=st.lists(words, min_size=1, max_size=12), data=st.data())
def test_codes_lead_back_to_labels_and_labels_are_sorted(left, data):
    right = data.draw(st.lists(words, min_size=len(left), max_size=len(left)))
    labels, (a, b) = encode_labels([left, right], ["left", "right"])
    assert labels[a].tolist() == left
    assert labels[b].tolist() == right
    # by code point, as polars does, which is the same on every machine
    assert labels.tolist() == sorted(set(left + right), key=lambda s: s.encode())
    assert a.dtype == b.dtype == np.int32


@quick
@given(
    rows=st.lists(st.tuples(words, st.sampled_from("pqr")), min_size=1, max_size=15),
    largest=st.sampled_from([0, 1 << 26]),
)
def test_items_are_labels_within_queries(rows, largest):
    """By a lookup table, or by sorting if the table would be too large."""
    item, query = (list(column) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_MAX_TABLE_CELLS", largest)
        items, (codes,) = encode_items([item], ["item"], query)
    assert items.labels[codes].tolist() == item
    assert items.queries[items.query[codes]].tolist() == query
    seen = list(zip(items.queries[items.query], items.labels, strict=True))
    assert seen == sorted(set(zip(query, item, strict=True)), key=lambda pair: (pair[0], pair[1].encode()))
    assert items.starts[-1] == len(items)
    for n in range(len(items.queries)):
        assert (items.query[items.of_query(n)] == n).all()


def test_both_roads_to_codes_give_the_same_codes(monkeypatch):
    rng = np.random.default_rng(0)
    left, right, query = (rng.integers(20, size=200).astype(str) for _ in range(3))
    items, codes = encode_items([left, right], ["left", "right"], query)
    monkeypatch.setattr(file, "_MAX_TABLE_CELLS", 0)
    again, same = encode_items([left, right], ["left", "right"], query)
    assert items.labels.tolist() == again.labels.tolist()
    np.testing.assert_array_equal(items.query, again.query)
    for a, b in zip(codes, same, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype == np.int32


@pytest.mark.parametrize(
    "column",
    [
        ["b", "a"],
        ("b", "a"),
        np.array(["b", "a"]),
        np.array(["b", "a"], dtype=object),
        pl.Series(["b", "a"]),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])),
        pd.Series(["b", "a"]),
        pd.Series(["b", "a"], dtype="category"),
        pd.Series(["b", "a"], dtype="string"),
        pd.Index(["b", "a"]),
        pa.array(["b", "a"]),
    ],
    ids=lambda c: f"{type(c).__module__.split('.')[0]} {type(c).__name__} {getattr(c, 'dtype', '')}",
)
def test_any_column_of_words_will_do(column):
    assert as_series(column, "item").to_list() == ["b", "a"]


@pytest.mark.parametrize(
    "column", [[1, 2], np.array([1, 2]), pd.Series([1, 2]), pl.Series([1, 2]), np.array([1, 2], object)]
)
def test_numbers_become_words(column):
    assert as_series(column, "item").to_list() == ["1", "2"]


def test_a_mixed_column_keeps_every_label():
    assert as_series([1, "a", 2.5], "item").to_list() == ["1", "a", "2.5"]
    assert as_series(np.array([1, "a"], dtype=object), "item").to_list() == ["1", "a"]


@pytest.mark.parametrize(
    "column",
    [
        ["a", None],
        np.array(["a", None], dtype=object),
        pd.Series(["a", None]),
        pd.Series(["a", float("nan")]),
        pl.Series(["a", None]),
    ],
)
def test_a_missing_label_is_named_by_its_row(column):
    with pytest.raises(DataError, match="Row 2: item is missing"):
        encode_labels([column], ["item"])


def test_the_column_that_lacks_a_label_is_named():
    with pytest.raises(DataError, match="Row 1: right is missing"):
        encode_labels([["a", "b"], [None, "b"]], ["left", "right"])


def test_nobody_named_is_nobody():
    labels, codes = encode_annotators(None)
    assert len(labels) == 0
    assert codes is None


def plain():
    return Items.of(["a", "b", "c"])


def queried():
    return encode_items([["b", "a", "a", "c"]], ["item"], ["q", "q", "p", "p"])[0]


def test_items_are_found_by_name():
    assert plain().index("b") == 1
    assert queried().index("a", "q") == 2
    assert queried().index("a", "p") == 0
    with pytest.raises(UnknownNameError, match="No item named 'bb'; did you mean 'b'?"):
        plain().index("bb")
    with pytest.raises(UnknownNameError, match="No item named 'c'"):
        queried().index("c", "q")
    with pytest.raises(UnknownNameError, match="No query named 'r'"):
        queried().index("a", "r")
    with pytest.raises(DataError, match="There are 2 queries: name one"):
        queried().index("a")


def test_a_name_in_a_message_tells_its_query_where_there_are_several():
    assert plain().name(1) == "b"
    assert queried().name(2) == "a (q)"


def test_a_query_column_of_one_value_is_still_a_query():
    items, _ = encode_items([["a", "b"]], ["item"], ["only", "only"])
    assert items.has_queries
    assert not plain().has_queries
    assert items.index("a") == 0


@quick
@given(data=st.data())
def test_centring_takes_the_mean_of_each_query(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    query = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    items = Items(
        np.array([f"i{n}" for n in range(len(query))], dtype=object),
        query,
        np.array([f"q{n}" for n in range(len(sizes))], dtype=object),
    )
    scores = np.random.default_rng(0).normal(size=(3, len(query)))
    found = items.centre(scores)
    for n in range(len(sizes)):
        np.testing.assert_allclose(
            found[:, query == n], scores[:, query == n] - scores[:, query == n].mean(axis=1, keepdims=True)
        )
    np.testing.assert_allclose(items.centre(scores[0]), found[0])
