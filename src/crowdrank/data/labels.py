"""Labels as dense integer codes, in sorted order, so that the order of the judgments does not affect the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.errors import DataError, UnknownNameError

# Up to this many (query, label) cells a lookup table is cheaper than sorting.
_MAX_TABLE_CELLS = 1 << 26


def as_series(values: Any, name: str) -> pl.Series:
    """Convert a column of labels to a polars series of text; missing values become null."""
    try:
        series = values if isinstance(values, pl.Series) else _series(values, name)
        if not series.dtype.is_nested() and series.dtype != pl.Object:
            return (series if series.dtype == pl.String else series.cast(pl.String)).alias(name)
        found = f"{series.dtype} values"
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        found = str(error).split("\n", 1)[0] or type(error).__name__
    raise DataError(f"{name} must be a column of labels, got {found}.", remedy="Pass a list, an array or a series.")


def _series(values: Any, name: str) -> pl.Series:
    if hasattr(values, "to_numpy") and not hasattr(values, "to_pylist"):  # polars reads Arrow arrays directly
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = [None if _is_missing(v) else str(v) for v in values.tolist()]
    return pl.Series(name, values, strict=False)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def encode_labels(columns: Sequence[Any], names: Sequence[str]) -> tuple[ObjectArray, list[Int32Array]]:
    """Encode several columns that share one set of labels; returns the sorted labels and the codes."""
    series = [as_series(c, n) for c, n in zip(columns, names, strict=True)]
    for s in series:
        if s.null_count():
            row = int(s.is_null().arg_max() or 0)
            raise DataError(f"Row {row + 1}: {s.name} is missing.", remedy="Fill it in, or leave the row out.")
    joined = pl.concat([s.rename("label") for s in series]) if len(series) > 1 else series[0]
    labels = joined.unique().sort()
    codes = joined.cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.int32)
    ends = np.cumsum([len(s) for s in series])[:-1]
    return np.array(labels.to_list(), dtype=object), np.split(codes, ends)


def encode_annotators(annotator: Any) -> tuple[ObjectArray, Int32Array | None]:
    """Encode a column of annotators; no labels and None if there is no column."""
    if annotator is None:
        return np.array([], dtype=object), None
    labels, (codes,) = encode_labels([annotator], ["annotator"])
    return labels, codes


@dataclass(frozen=True, eq=False)
class Items:
    """The items that were judged. An item is a label within a query; the items of a query are contiguous.

    Parameters
    ----------
    labels : array of str
        The label of each item, sorted within its query.
    query : array of int32
        The query of each item, as a position in `queries`; non-decreasing.
    queries : array of str
        The names of the queries; one empty name if the judgments have no queries.

    Examples
    --------
    >>> items = Items.of(["Delhi", "Tokyo"])
    >>> items.index("Tokyo")
    1
    """

    labels: ObjectArray
    query: Int32Array
    queries: ObjectArray

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.query):
            raise DataError(
                f"Items: {len(self.labels):,} labels and {len(self.query):,} queries.",
                remedy="Give one query per item.",
            )
        if len(self.query) and not 0 <= self.query[0] <= self.query[-1] < len(self.queries):
            raise DataError(
                f"Items: query codes must be sorted and below {len(self.queries):,}, the number of queries; "
                f"got {self.query[0]} to {self.query[-1]}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Items({len(self)} in {len(self.queries)} queries)"

    @classmethod
    def of(cls, labels: Sequence[object]) -> Items:
        """Items without queries, in the given order."""
        names = np.array([str(label) for label in labels], dtype=object)
        return cls(names, np.zeros(len(names), np.int32), np.array([""], dtype=object))

    @cached_property
    def starts(self) -> IntArray:
        """The first item of each query, and the number of items at the end."""
        return np.searchsorted(self.query, np.arange(len(self.queries) + 1)).astype(np.int64)

    @property
    def has_queries(self) -> bool:
        """Whether the queries have names."""
        return not (len(self.queries) == 1 and self.queries[0] == "")

    def of_query(self, code: int) -> slice:
        """Return the slice of the items of a query."""
        return slice(int(self.starts[code]), int(self.starts[code + 1]))

    def query_range(self, first: int, stop: int) -> Items:
        """Return the items of the queries `first` to `stop` (exclusive)."""
        own = slice(self.starts[first], self.starts[stop])
        return Items(self.labels[own], self.query[own] - np.int32(first), self.queries[first:stop])

    @cached_property
    def _index_by_label(self) -> dict[tuple[int, str], int]:
        return {(q, label): n for n, (q, label) in enumerate(zip(self.query.tolist(), self.labels, strict=True))}

    def query_code(self, query: object | None = None) -> int:
        """Return the position of a query, which need not be named if there is only one."""
        if query is None and len(self.queries) == 1:
            return 0
        names = self.queries.tolist()
        if query is None:
            raise DataError(f"There are {len(names)} queries: name one.", remedy=f"For example query={names[0]!r}.")
        if str(query) not in names:
            raise UnknownNameError("query", query, names)
        return int(names.index(str(query)))

    def index(self, label: object, query: object | None = None) -> int:
        """Return the position of an item.

        Parameters
        ----------
        label : object
            The label of the item.
        query : object, optional
            The query of the item; needed only if there are several.

        Raises
        ------
        UnknownNameError
            If there is no such item or query; suggests the nearest name.
        """
        code = self.query_code(query)
        found = self._index_by_label.get((code, str(label)))
        if found is None:
            raise UnknownNameError("item", label, self.labels[self.of_query(code)])
        return found

    def name(self, index: int) -> str:
        """Return the label of an item for messages, with its query if queries have names."""
        label = str(self.labels[index])
        return f"{label} ({self.queries[self.query[index]]})" if self.has_queries else label

    def centre(self, scores: AnyArray) -> FloatArray:
        """Shift scores (one row or many) to mean zero in each query."""
        if len(self.queries) == 1:
            return np.asarray(scores - scores.mean(axis=-1, keepdims=True))
        sums = np.add.reduceat(scores, self.starts[:-1], axis=-1)
        return np.asarray(scores - (sums / np.diff(self.starts))[..., self.query])


def encode_items(columns: Sequence[Any], names: Sequence[str], query: Any = None) -> tuple[Items, list[Int32Array]]:
    """Encode columns of labels as items, within queries if there is a column of queries."""
    for column, name in zip(columns, names, strict=True):
        if column is None:
            raise DataError(
                f"{name} must be a column of values, got None.", remedy="Pass a list, an array or a series."
            )
    labels, codes = encode_labels(columns, names)
    if query is None:
        return Items(labels, np.zeros(len(labels), np.int32), np.array([""], dtype=object)), codes
    queries, (query_codes,) = encode_labels([query], ["query"])
    keys = [query_codes.astype(np.int64) * len(labels) + c for c in codes]
    if len(queries) * len(labels) <= _MAX_TABLE_CELLS:
        seen = np.zeros(len(queries) * len(labels), bool)
        for key in keys:
            seen[key] = True
        present = np.flatnonzero(seen)
        index = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        found = [index[key] for key in keys]
    else:
        present, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        found = np.split(inverse.astype(np.int32), np.cumsum([len(k) for k in keys])[:-1])
    items = Items(labels[present % len(labels)], (present // len(labels)).astype(np.int32), queries)
    return items, found
