"""Features of items: the inputs of a ranking function."""

from __future__ import annotations

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
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError, issue_warning
from crowdrank.io.feature_tables import FeatureTable, read_features

Missing = Literal["refuse", "zero"]

# Names that an error message lists.
_MAX_NAMES = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Features:
    """Feature values of items: one row per item of a query, one column per feature. Build with `Features.of`.

    Parameters
    ----------
    items : Items
        The items and their queries.
    values : array of shape (items, features)
        Feature values.
    names : tuple of str
        Names of the features.
    grades : array or None, default None
        True relevance of each item, if the source has it; NaN if unknown.
    native : str, default "polars"
        Kind of data frame that the features came in.

    Examples
    --------
    >>> Features.of({"item": ["a", "b"], "price": [0.5, 0.25], "size": [1.0, 2.0]}).names
    ('price', 'size')
    """

    items: Items
    values: FloatArray
    names: tuple[str, ...]
    grades: FloatArray | None = None
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
        """Features from a file, a data frame or a dict of columns, or from a matrix.

        Parameters
        ----------
        source : path, data frame, dict of columns or matrix
            The feature values.
        item, query, grade : str or sequence, optional
            For a table: the names of these columns, if they differ ("" for no such column). For a matrix: the labels of
            its rows and their grades.
        names : sequence of str, optional
            For a table: the feature columns; default: all other numeric columns. For a matrix: the names of its
            columns.
        missing : {"refuse", "zero"}, default "refuse"
            Whether a missing value is an error or counts as zero.

        Returns
        -------
        Features

        Examples
        --------
        >>> Features.of([[0.5, 1.0], [0.25, 2.0]], item=["a", "b"])
        Features(2 items in 1 queries, 2 features)
        """
        if missing not in ("refuse", "zero"):
            raise SettingError(f'missing must be "refuse" or "zero", got {missing!r}.')
        if isinstance(source, str | PathLike | Mapping) or hasattr(source, "columns"):
            roles = {"item": item, "query": query, "grade": grade}
            columns = {role: str(name) or None for role, name in roles.items() if name is not None}
            table = read_features(source, columns=columns, features=names)
        else:
            table = _matrix_columns(source, item, query, grade, names)
        if table.left_out:
            ignored = _shortened(table.left_out)
            issue_warning(f"Ignored columns that are not numeric: {ignored}.", DataWarning, stacklevel=2)
        return build_features(table, missing)

    def rows_of(self, items: Items) -> IntArray:
        """The row of each item, by query and label; by label alone if the features have no queries."""
        if self.items.has_queries and not items.has_queries:
            raise DataError("The features have queries, but the lists do not: name the query column of both.")
        by_query = self.items.has_queries
        own_keys = _join_keys(self.items, by_query).with_row_index("row")
        keys = _join_keys(items, by_query)
        found = keys.join(own_keys, on=keys.columns, how="left", maintain_order="left")["row"]
        if found.null_count():
            self._refuse_unknown(items, found.is_null().to_numpy().nonzero()[0])
        return found.to_numpy().astype(np.int64)

    def _refuse_unknown(self, items: Items, unknown: IntArray) -> None:
        names = _shortened([items.name(int(code)) for code in unknown[: _MAX_NAMES + 1]])
        raise DataError(
            f"No features for {len(unknown):,} of {len(items):,} items: {names}. "
            "Every listed item needs a row of features with the same query and label."
        )

    def of_queries(self, queries: ObjectArray) -> Features:
        """The rows of these queries, including unlisted items; all rows if there are no queries."""
        if not self.items.has_queries:
            return self
        wanted = np.isin(self.items.queries.astype(str), queries.astype(str))
        return self.take(np.flatnonzero(wanted[self.items.query]))

    def take(self, rows: IntArray) -> Features:
        """A subset of the rows, in their present order."""
        rows = np.sort(rows)
        kept, query = np.unique(self.items.query[rows], return_inverse=True)
        items = Items(self.items.labels[rows], query.astype(np.int32), self.items.queries[kept])
        grades = None if self.grades is None else self.grades[rows]
        return replace(self, items=items, values=self.values[rows], grades=grades)

    def columns(self, names: Sequence[str]) -> FloatArray:
        """The values of these features, in this order; other features are ignored."""
        position = {name: n for n, name in enumerate(self.names)}
        if unknown := [name for name in names if name not in position]:
            raise UnknownNameError("feature", unknown[0], self.names)
        if tuple(names) == self.names:
            return self.values
        return self.values[:, [position[name] for name in names]]


def build_features(table: FeatureTable, missing: Missing = "refuse") -> Features:
    """Check the columns of a source and build features, one row per item."""
    values = _without_missing(table, missing)
    items, (codes,) = encode_items([table.item], ["item"], table.query)
    first = _first_rows(table, items, codes, values)
    grades = None if table.grade is None or np.isnan(table.grade).all() else table.grade[first]
    return Features(items=items, values=values[first], names=table.names, grades=grades, native=table.frame_backend)


def _matrix_columns(source: Any, item: Any, query: Any, grade: Any, names: Sequence[str] | None) -> FeatureTable:
    try:
        values = np.array(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"Features must be numbers, one row per item: {error}.") from error
    if values.ndim != 2 or not values.size:
        raise DataError(
            f"Features must be a matrix with one row per item and one column per feature, got shape {values.shape}."
        )
    rows, width = values.shape
    if item is None:
        raise SettingError("A matrix needs the labels of its rows: pass item=[…].")
    column_names = tuple(f"f{n}" for n in range(1, width + 1)) if names is None else tuple(map(str, names))
    if len(column_names) != width or len(set(column_names)) != width:
        raise SettingError(f"names must be {width} different names, one per feature, got {len(set(column_names))}.")
    table = FeatureTable(
        source="the matrix",
        item=_labels(item, "item", rows),
        names=column_names,
        values=values,
        query=None if query is None else _labels(query, "query", rows),
        grade=None if grade is None else np.array(grade, dtype=np.float64),
    )
    if table.grade is not None and table.grade.shape != (rows,):
        raise DataError(f"grade: got {table.grade.size} values for {rows} rows.")
    return table


def _labels(values: Any, role: str, rows: int) -> ObjectArray:
    labels = np.array([str(value) for value in values], dtype=object)
    if len(labels) != rows:
        raise DataError(f"{role}: got {len(labels)} labels for {rows} rows.")
    return labels


def _without_missing(table: FeatureTable, missing: Missing) -> FloatArray:
    is_missing = ~np.isfinite(table.values)
    if not is_missing.any():
        return table.values
    if missing == "zero":
        return np.where(is_missing, 0.0, table.values)
    row, column = (int(at[0]) for at in np.nonzero(is_missing))
    got = table.values[row, column]
    raise DataError(
        f"{table.source}: {table.where(row)}: feature {table.names[column]!r} of item {table.item[row]} must be a "
        f"finite number, got {'none' if np.isnan(got) else got} ({int(is_missing.sum()):,} such cells in total). Fill "
        'them in, drop the feature, or pass missing="zero".'
    )


def _first_rows(table: FeatureTable, items: Items, codes: Int32Array, values: FloatArray) -> IntArray:
    """The first row of each item; a repeated row must have the same values."""
    first = np.full(len(items), len(codes), np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    repeated = np.flatnonzero(first[codes] != np.arange(len(codes)))
    differs = repeated[(values[repeated] != values[first[codes[repeated]]]).any(axis=1)]
    if differs.size:
        row = int(differs[0])
        raise DataError(
            f"{table.source}: {table.where(row)}: item {items.name(int(codes[row]))} already has other features, in "
            f"{table.where(int(first[codes[row]]))}. Keep one of the two rows."
        )
    return first


def _join_keys(items: Items, by_query: bool) -> pl.DataFrame:
    names = {"item": items.labels.tolist()} | ({"query": items.queries[items.query].tolist()} if by_query else {})
    return pl.DataFrame(names, schema=dict.fromkeys(names, pl.String))


def _shortened(names: Sequence[str]) -> str:
    """The first few names, and an ellipsis if there are more."""
    return ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
