"""Tables of items: one row per item, with columns that describe it or with its true value (gold)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.io.column_roles import (
    RoleMatch,
    RoleMatcher,
    refuse_repeated_name,
    require_role,
    resolve_columns,
)
from crowdrank.io.rows import Rows, parse_labels, parse_numbers_or_text
from crowdrank.io.sources import open_table
from crowdrank.io.synonyms import each, normalize_name

_ITEM_ROLES = ("item", "query")
_MAX_SHOWN = 3
_SIDE_PATTERNS = (("left{}", "right{}"), ("{}left", "{}right"), ("{}a", "{}b"), ("{}1", "{}2"), ("{}x", "{}y"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemTable:
    """Columns of items, as `read_items` returns them.

    Parameters
    ----------
    source : str
        The name in messages.
    item : array of str
        The label of each row.
    query : array of str, optional
        The query of each row.
    columns : mapping of str to array
        The other columns: numbers (NaN if missing) if every cell is a number, else text ("" if missing).
    """

    source: str
    item: ObjectArray
    query: ObjectArray | None
    columns: Mapping[str, AnyArray]

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def align(self, items: Items, name: str) -> AnyArray:
        """Return one value per item, in the order of the items.

        Parameters
        ----------
        items : Items
            The items of the judgments.
        name : str
            Name of a column; case and punctuation do not matter.

        Raises
        ------
        UnknownNameError
            If there is no such column.
        DataError
            If the table has no row for some item.
        """
        column = self._find(name)
        if column is None:
            raise UnknownNameError("column", name, self.columns)
        values = self.columns[column]
        row_of = self._row_by_item(items.has_queries and self.query is not None, values)
        queries = items.queries[items.query] if items.has_queries and self.query is not None else [None] * len(items)
        found = [row_of.get(key, -1) for key in zip(queries, items.labels, strict=True)]
        self._refuse_missing(items, np.flatnonzero(np.array(found) < 0))
        return np.asarray(values[found])

    def _find(self, name: str) -> str | None:
        """Find a column by its name, or by a name that differs in case and punctuation only."""
        alike = [column for column in self.columns if normalize_name(column) == normalize_name(name)]
        return name if name in self.columns else alike[0] if len(alike) == 1 else None

    def _row_by_item(self, by_query: bool, values: AnyArray) -> dict[tuple[object, str], int]:
        """Return the row of each item; without queries, the rows of one label must agree."""
        rows: dict[tuple[object, str], int] = {}
        for row, label in enumerate(self.item):
            key = (self.query[row] if by_query and self.query is not None else None, label)
            if _differ(values[rows.setdefault(key, row)], values[row]):
                raise DataError(
                    f"{self.source}: item {label!r} has different values in several queries, and the judgments have no "
                    "queries."
                )
        return rows

    def _refuse_missing(self, items: Items, missing: IntArray) -> None:
        if not missing.size:
            return
        shown = ", ".join(items.name(int(index)) for index in missing[:_MAX_SHOWN])
        problem = (
            f"{self.source}: no row for {missing.size:,} of {len(items):,} items, such as {shown}. Every item that was "
            "judged needs a row."
        )
        if self.query is None:
            raise DataError(problem)
        remedy = "If the table has no queries, read it with columns={'query': None}."
        raise DataError(problem, remedy=remedy, option="item_columns", value={"query": ""})


def read_items(source: Any, columns: Mapping[str, str | None] | None = None) -> ItemTable:
    """Read columns of items from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per item.
    columns : mapping of str to str or None, optional
        The column of the roles `item` and `query`; None for a role without a column. The others keep their names.

    Returns
    -------
    ItemTable

    Raises
    ------
    FormatError
        If there is no column of items, or rows of one item contradict each other.

    Examples
    --------
    >>> read_items({"item": ["a", "b"], "length": ["12", "7"], "style": ["bold", "plain"]}).columns["length"]
    array([12.,  7.])
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, _ITEM_ROLES))
    roles: dict[str, str] = {}
    matcher.add(roles, "item")
    matcher.add(roles, "query")
    require_role(table, roles, "item")
    others = [refuse_repeated_name(table, column) for column in table.columns if column not in roles.values()]
    rows = Rows(table, RoleMatch("items", roles), others, strict=True)
    item, query = rows.labels("item"), rows.optional_labels("query")
    rows.finish_checks()
    flat = [name for name in others if not rows.frame[name].dtype.is_nested()]
    found = {name: parse_numbers_or_text(rows.usable(rows.frame[name])) for name in flat}
    frame = pl.DataFrame({"item": rows.usable(item)} | ({} if query is None else {"query": rows.usable(query)}))
    kept = _one_row_each(frame, found, table.name)
    return ItemTable(
        source=table.name,
        item=np.array(frame["item"].to_list(), dtype=object)[kept],
        query=None if query is None else np.array(frame["query"].to_list(), dtype=object)[kept],
        columns={name: values[kept] for name, values in found.items()},
    )


def as_labels(values: AnyArray) -> ObjectArray:
    """Convert a column to labels: whole numbers without a decimal point, "" for missing values."""
    text = parse_labels(pl.Series(values.tolist()), strip_spaces=True)
    return np.array(text.fill_null("").to_list(), dtype=object)


def column_names(source: Any, encoding: str | None = None) -> list[str]:
    """Return the names of the columns of a file, a data frame or a dict of columns."""
    return list(open_table(source, encoding).columns)


def find_side_columns(source: Any, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Find the two columns that hold a property of the left and of the right item.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        Comparisons.
    name : str
        The property. For "engine" the columns are left_engine and right_engine, engine_left and engine_right, or
        engine_a and engine_b (1 and 2, x and y).
    encoding : str, optional
        The encoding of a text file that is not UTF-8.

    Returns
    -------
    tuple of (str, str)

    Examples
    --------
    >>> find_side_columns({"left": ["p"], "right": ["q"], "Engine A": ["g"], "Engine B": ["y"]}, "engine")
    ('Engine A', 'Engine B')
    """
    table = open_table(source, encoding)
    by_name = {normalize_name(column): column for column in table.columns}
    for first, second in _SIDE_PATTERNS:
        pair = normalize_name(first.format(name)), normalize_name(second.format(name))
        if all(side in by_name for side in pair):
            return refuse_repeated_name(table, by_name[pair[0]]), refuse_repeated_name(table, by_name[pair[1]])
    raise FormatError(
        f"{table.name}: no columns for the {name} of the left and the right item: left_{name} and right_{name}, "
        f"{name}_left and {name}_right, or {name}_a and {name}_b.",
        remedy=f"Or read a table of items that has a column {name!r} with read_items.",
        option="items",
        value="FILE",
    )


def _one_row_each(frame: pl.DataFrame, columns: Mapping[str, AnyArray], source: str) -> IntArray:
    """Return the first row of each item; an exact repeat is allowed, a contradiction is an error."""
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(frame.iter_rows()):
        if (before := first.setdefault(key, row)) == row:
            continue
        for name, values in columns.items():
            if _differ(values[before], values[row]):
                raise FormatError(
                    f"{source}: item {key[0]!r} has more than one {name}: {values[before]} and {values[row]}."
                )
    return np.fromiter(first.values(), np.int64)


def _differ(a: Any, b: Any) -> bool:
    """Return whether two values differ; two NaNs do not."""
    return bool(a != b) and bool(a == a or b == b)


_GOLD_ROLES = ("item", "value", "rank", "query")
_VALUES = each("value gold label truth truevalue grade rating relevance score staffgrade")
_RANKS = each("rank truerank goldrank position place group")


@dataclass(frozen=True, eq=False)
class GoldTable:
    """True values of items; larger is better.

    Parameters
    ----------
    item : array of str
        The label of each item.
    value : array of float
        Its true value.
    query : array of str, optional
        Its query.
    """

    item: ObjectArray
    value: FloatArray
    query: ObjectArray | None


def read_gold(source: Any, columns: Mapping[str, str | None] | None = None) -> GoldTable:
    """Read true values of items from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per item. Items without a value are left out.
    columns : mapping of str to str or None, optional
        The column of the roles `item`, `query` and `value`. For a column in which 1 is the best, name it as `rank`
        instead of `value`: its values are negated. Columns called rank, true_rank, gold_rank, position, place or
        group are read as ranks.

    Returns
    -------
    GoldTable

    Examples
    --------
    >>> read_gold({"item": ["a", "b"], "true_rank": [1, 2]}).value
    array([-1., -2.])
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, _GOLD_ROLES))
    roles: dict[str, str] = {}
    matcher.add(roles, "item")
    matcher.add(roles, "query")
    require_role(table, roles, "item")
    value = _value_column(matcher, roles)
    rows = Rows(table, RoleMatch("gold", {**roles, "value": value}), strict=True)
    frame = _frame(rows)
    is_rank = "rank" in matcher.given or (normalize_name(value),) in _RANKS
    numbers = frame["value"].to_numpy()
    return GoldTable(
        item=np.array(frame["item"].to_list(), dtype=object),
        value=-numbers if is_rank else numbers,
        query=np.array(frame["query"].to_list(), dtype=object) if "query" in frame.columns else None,
    )


def _value_column(matcher: RoleMatcher, roles: Mapping[str, str]) -> str:
    """Return the column that was given, or one with a known name, or the only one left."""
    given = [column for role in ("value", "rank") if (column := matcher.given.get(role))]
    for tiers in (_VALUES, _RANKS):
        if not given and (found := matcher.find("value", tiers, roles.values())):
            return found
    left = given or [column for column in matcher.table.columns if column not in roles.values()]
    if len(left) != 1:
        raise FormatError(
            f"{matcher.table.name}: cannot decide which of {', '.join(map(repr, left)) or 'no columns'} is the value.",
            remedy="Name it: columns={'value': 'COLUMN'}, or {'rank': 'COLUMN'} if 1 is the best.",
            option="gold_columns",
            value={"value": "COLUMN"},
        )
    return left[0]


def _frame(rows: Rows) -> pl.DataFrame:
    """Return one row per item, in the order of the source."""
    item, query = rows.labels("item"), rows.optional_labels("query")
    rows.errors.ignore(parse_labels(rows.column("value"), strip_spaces=True).is_null().to_numpy())
    value = rows.numbers("value")
    rows.finish_checks()
    columns = {"item": rows.usable(item), "value": rows.usable(value)}
    if query is not None:
        columns["query"] = rows.usable(query)
    frame = pl.DataFrame(columns).unique(maintain_order=True)
    names = [name for name in frame.columns if name != "value"]
    if (twice := frame.filter(frame.select(names).is_duplicated())).height:
        raise FormatError(f"{rows.table.name}: item {twice['item'][0]!r} has more than one value.")
    return frame
