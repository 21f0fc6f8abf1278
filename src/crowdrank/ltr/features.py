"""What is known of items as numbers: the columns that a ranking function looks at."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.data.labels import encode_items
from crowdrank.data.tables import freeze
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError
from crowdrank.io.feature_tables import FeatureTable, read_features

Missing = Literal["refuse", "zero"]

_FIRST_FEW = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Features:
    """One row an item of a query, one column a feature. Build one with `Features.of`."""

    items: Items
    values: FloatArray
    names: tuple[str, ...]
    grades: FloatArray | None = None
    """How relevant each item truly is, where the source says so; NaN where it does not."""
    native: str = "polars"

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        queries, width = len(self.items.queries), len(self.names)
        graded = ", graded" if self.grades is not None else ""
        return f"Features({len(self):,} items in {queries:,} queries, {width:,} features{graded})"

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        item: Any = None,
        query: Any = None,
        grade: Any = None,
        names: Sequence[str] | None = None,
        missing: Missing = "refuse",
    ) -> Features:
        """From a file, a data frame or a dict of columns; or from a matrix with labels beside it.

        Of a table, `item`, `query` and `grade` name columns ("" for none) that are not called so, and `names` the
        features, where not all other columns that hold numbers are. Of a matrix, they are the labels of its rows, their
        grades, and what to call its columns. A cell without a number is an error, or with `missing="zero"` a zero.

        >>> Features.of([[0.5, 1.0], [0.25, 2.0]], item=["a", "b"])
        Features(2 items in 1 queries, 2 features)
        """
        if missing not in ("refuse", "zero"):
            raise SettingError(f'missing must be "refuse" or "zero", got {missing!r}.')
        if isinstance(source, str | PathLike | Mapping) or hasattr(source, "columns"):
            told = {"item": item, "query": query, "grade": grade}
            columns = {role: str(name) or None for role, name in told.items() if name is not None}
            found = read_features(source, columns=columns, features=names)
        else:
            found = _of_matrix(source, item, query, grade, names)
        if found.left_out:
            few, more = ", ".join(found.left_out[:_FIRST_FEW]), ", …" if len(found.left_out) > _FIRST_FEW else ""
            warnings.warn(f"Columns without numbers are no features: {few}{more}.", DataWarning, stacklevel=2)
        return features_of(found, missing)

    def aligned(self, items: Items) -> FloatArray:
        """The rows of these items, in their order; an item without a row is an error that names it."""
        return self.values[self.rows_of(items)]

    def rows_of(self, items: Items) -> IntArray:
        """Where these items stand here, by query and label; by label alone where features name no queries."""
        if self.items.has_queries and not items.has_queries:
            raise DataError("The features name queries and the lists do not: name the query column of both.")
        by_query = self.items.has_queries
        ours = _names(self.items, by_query).with_row_index("row")
        wanted = _names(items, by_query)
        found = wanted.join(ours, on=wanted.columns, how="left", maintain_order="left")["row"]
        if found.null_count():
            self._refuse_unknown(items, found.is_null().to_numpy().nonzero()[0])
        return found.to_numpy().astype(np.int64)

    def _refuse_unknown(self, items: Items, lost: IntArray) -> None:
        few = ", ".join(items.name(int(place)) for place in lost[:_FIRST_FEW])
        more = ", …" if len(lost) > _FIRST_FEW else ""
        raise DataError(
            f"No features for {len(lost):,} of {len(items):,} items: {few}{more}. "
            "Every item that a list names needs a row of features, under the same query and label."
        )

    def of_queries(self, queries: ObjectArray) -> Features:
        """Only the rows of these queries, those that no list names among them; all where there are no queries."""
        if not self.items.has_queries:
            return self
        wanted = np.isin(self.items.queries.astype(str), queries.astype(str))
        return self.take(np.flatnonzero(wanted[self.items.query]))

    def take(self, rows: IntArray) -> Features:
        """Some of the rows, in their own order."""
        rows = np.sort(rows)
        asked, query = np.unique(self.items.query[rows], return_inverse=True)
        items = Items(self.items.labels[rows], query.astype(np.int32), self.items.queries[asked])
        grades = None if self.grades is None else self.grades[rows]
        return replace(self, items=items, values=self.values[rows], grades=grades)

    def columns(self, names: Sequence[str]) -> FloatArray:
        """The columns a function was trained on, in its order, whatever else there is."""
        place = {name: n for n, name in enumerate(self.names)}
        if lost := [name for name in names if name not in place]:
            raise UnknownNameError("feature", lost[0], self.names)
        if tuple(names) == self.names:
            return self.values
        return self.values[:, [place[name] for name in names]]


def features_of(found: FeatureTable, missing: Missing = "refuse") -> Features:
    """What a source says, checked, one row an item."""
    values = _without_gaps(found, missing)
    items, (codes,) = encode_items([found.item], ["item"], found.query)
    first = _first_rows(found, items, codes, values)
    grades = None if found.grade is None or np.isnan(found.grade).all() else found.grade[first]
    return Features(items=items, values=values[first], names=found.names, grades=grades, native=found.frame_backend)


def _of_matrix(source: Any, item: Any, query: Any, grade: Any, names: Sequence[str] | None) -> FeatureTable:
    try:
        values = np.array(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"Features must be numbers, one row an item, got {error}.") from error
    if values.ndim != 2 or not values.size:
        raise DataError(f"Features are a matrix, one row an item and one column a feature, got shape {values.shape}.")
    rows, width = values.shape
    if item is None:
        raise SettingError("Name the items of the rows: item=[…].")
    called = tuple(f"f{n}" for n in range(1, width + 1)) if names is None else tuple(map(str, names))
    if len(called) != width or len(set(called)) != width:
        raise SettingError(f"names must tell {width} features apart, got {len(set(called))} different ones.")
    found = FeatureTable(
        source="the matrix",
        item=_labels(item, "item", rows),
        names=called,
        values=values,
        query=None if query is None else _labels(query, "query", rows),
        grade=None if grade is None else np.array(grade, dtype=np.float64),
    )
    if found.grade is not None and found.grade.shape != (rows,):
        raise DataError(f"grade: {found.grade.size} values for {rows} rows.")
    return found


def _labels(values: Any, what: str, rows: int) -> ObjectArray:
    found = np.array([str(value) for value in values], dtype=object)
    if len(found) != rows:
        raise DataError(f"{what}: {len(found)} labels for {rows} rows.")
    return found


def _without_gaps(found: FeatureTable, missing: Missing) -> FloatArray:
    wrong = ~np.isfinite(found.values)
    if not wrong.any():
        return found.values
    if missing == "zero":
        return np.where(wrong, 0.0, found.values)
    row, column = (int(at[0]) for at in np.nonzero(wrong))
    got = found.values[row, column]
    raise DataError(
        f"{found.source}: {found.where(row)}: feature {found.names[column]!r} of item {found.item[row]} must be a "
        f"finite number, got {'none' if np.isnan(got) else got}; {int(wrong.sum()):,} cells in all. Fill them "
        'in, leave the feature out, or say missing="zero" (--missing-features zero).'
    )


def _first_rows(found: FeatureTable, items: Items, codes: Int32Array, values: FloatArray) -> IntArray:
    """The row of each item; the same said again is no harm, anything else is an error."""
    first = np.full(len(items), len(codes), np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    again = np.flatnonzero(first[codes] != np.arange(len(codes)))
    differs = again[(values[again] != values[first[codes[again]]]).any(axis=1)]
    if differs.size:
        row = int(differs[0])
        raise DataError(
            f"{found.source}: {found.where(row)}: item {items.name(int(codes[row]))} already has other features, in "
            f"{found.where(int(first[codes[row]]))}."
        )
    return first


def _names(items: Items, by_query: bool) -> pl.DataFrame:
    names = {"item": items.labels.tolist()} | ({"query": items.queries[items.query].tolist()} if by_query else {})
    return pl.DataFrame(names, schema=dict.fromkeys(names, pl.String))
