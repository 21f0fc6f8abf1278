"""Labels become dense integers: sorted, so that the order of the judgments never shows in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.errors import DataError, UnknownNameError

# A table of this many cells is cheaper than sorting; beyond it, sort.
_LARGEST_TABLE = 1 << 26


def as_series(values: Any, name: str) -> pl.Series:
    """Any column as a polars series; anything a person could have typed becomes a string."""
    if not isinstance(values, pl.Series):
        if hasattr(values, "to_numpy") and not hasattr(values, "to_pylist"):  # polars takes Arrow as it is
            values = values.to_numpy()
        if isinstance(values, np.ndarray) and values.dtype == object:
            values = [None if _is_missing(v) else str(v) for v in values.tolist()]
        values = pl.Series(name, values, strict=False)
    series: pl.Series = values
    return (series if series.dtype == pl.String else series.cast(pl.String)).alias(name)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def encode_labels(columns: Sequence[Any], names: Sequence[str]) -> tuple[ObjectArray, list[Int32Array]]:
    """Codes for several columns that share one set of labels, the labels sorted."""
    series = [as_series(c, n) for c, n in zip(columns, names, strict=True)]
    for s in series:
        if s.null_count():
            row = int(s.is_null().arg_max() or 0)
            raise DataError(f"Row {row + 1}: {s.name} is missing.")
    joined = pl.concat([s.rename("label") for s in series]) if len(series) > 1 else series[0]
    labels = joined.unique().sort()
    codes = joined.cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.int32)
    ends = np.cumsum([len(s) for s in series])[:-1]
    return np.array(labels.to_list(), dtype=object), np.split(codes, ends)


def encode_annotators(annotator: Any) -> tuple[ObjectArray, Int32Array | None]:
    """Annotators' labels and codes; no labels and no codes where nobody was named."""
    if annotator is None:
        return np.array([], dtype=object), None
    labels, (codes,) = encode_labels([annotator], ["annotator"])
    return labels, codes


@dataclass(frozen=True, eq=False)
class Items:
    """The things judged. An item is a label within a query; a query's items stand side by side."""

    labels: ObjectArray
    query: Int32Array
    queries: ObjectArray

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Items({len(self)} in {len(self.queries)} queries)"

    @classmethod
    def plain(cls, labels: Sequence[Any]) -> Items:
        """Items of the one unnamed query."""
        names = np.array([str(label) for label in labels], dtype=object)
        return cls(names, np.zeros(len(names), np.int32), np.array([""], dtype=object))

    @cached_property
    def starts(self) -> IntArray:
        """Where each query's items begin; one more entry than there are queries."""
        return np.searchsorted(self.query, np.arange(len(self.queries) + 1)).astype(np.int64)

    @property
    def has_queries(self) -> bool:
        """Whether queries were named at all."""
        return not (len(self.queries) == 1 and self.queries[0] == "")

    def of_query(self, code: int) -> slice:
        return slice(int(self.starts[code]), int(self.starts[code + 1]))

    def some(self, first: int, last: int) -> Items:
        """Those of some queries side by side, from the first up to the last, which is not one of them."""
        own = slice(self.starts[first], self.starts[last])
        return Items(self.labels[own], self.query[own] - np.int32(first), self.queries[first:last])

    @cached_property
    def _places(self) -> dict[tuple[int, str], int]:
        return {(q, label): n for n, (q, label) in enumerate(zip(self.query.tolist(), self.labels, strict=True))}

    def query_code(self, query: object | None = None) -> int:
        """The position of a query; it may be left out when there is only one."""
        if query is None and len(self.queries) == 1:
            return 0
        if query is None:
            raise DataError(f"Name the query: there are {len(self.queries)}.")
        names = self.queries.tolist()
        if str(query) not in names:
            raise UnknownNameError("query", query, names)
        return int(names.index(str(query)))

    def index(self, label: object, query: object | None = None) -> int:
        """The position of an item; its query may be left out when there is only one."""
        code = self.query_code(query)
        place = self._places.get((code, str(label)))
        if place is None:
            raise UnknownNameError("item", label, self.labels[self.of_query(code)])
        return place

    def name(self, place: int) -> str:
        """How an item is called in a message: with its query, where there are several."""
        label = str(self.labels[place])
        return f"{label} ({self.queries[self.query[place]]})" if self.has_queries else label

    def centre(self, scores: AnyArray) -> FloatArray:
        """Scores (one row, or many) with mean zero in each query."""
        if len(self.queries) == 1:
            return np.asarray(scores - scores.mean(axis=-1, keepdims=True))
        sums = np.add.reduceat(scores, self.starts[:-1], axis=-1)
        return np.asarray(scores - (sums / np.diff(self.starts))[..., self.query])


def encode_items(columns: Sequence[Any], names: Sequence[str], query: Any = None) -> tuple[Items, list[Int32Array]]:
    """Items and their codes from columns of labels, within queries where a column of them is given."""
    labels, codes = encode_labels(columns, names)
    if query is None:
        return Items(labels, np.zeros(len(labels), np.int32), np.array([""], dtype=object)), codes
    queries, (asked,) = encode_labels([query], ["query"])
    keys = [asked.astype(np.int64) * len(labels) + c for c in codes]
    if len(queries) * len(labels) <= _LARGEST_TABLE:
        seen = np.zeros(len(queries) * len(labels), bool)
        for key in keys:
            seen[key] = True
        present = np.flatnonzero(seen)
        place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        found = [place[key] for key in keys]
    else:
        present, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        found = np.split(inverse.astype(np.int32), np.cumsum([len(k) for k in keys])[:-1])
    items = Items(labels[present % len(labels)], (present // len(labels)).astype(np.int32), queries)
    return items, found
