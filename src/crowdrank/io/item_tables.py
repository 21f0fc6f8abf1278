"""Columns about items: one row an item, and whatever is known of it.

Known truth about items: one row an item, with a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.io import cells
from crowdrank.io.column_roles import each, plain
from crowdrank.io.role_matching import Match, Search, refuse_repeated, told_roles
from crowdrank.io.rows import Rows
from crowdrank.io.sources import open_table

_ITEM_ROLES = ("item", "query")
_FIRST_FEW = 3
_SIDES = (("left{}", "right{}"), ("{}left", "{}right"), ("{}a", "{}b"), ("{}1", "{}2"), ("{}x", "{}y"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemColumns:
    """What is known of items, as columns of one length."""

    source: str
    """How messages call it."""
    item: ObjectArray
    query: ObjectArray | None
    columns: Mapping[str, AnyArray]
    """By name: numbers (NaN where missing) where every cell is one, else text ("" where missing)."""

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def along(self, items: Items, name: str) -> AnyArray:
        """A column with one value for each of these items, in their order."""
        column = self._find(name)
        if column is None:
            raise UnknownNameError("column", name, self.columns)
        values = self.columns[column]
        place = self._places(items.has_queries and self.query is not None, values)
        queries = items.queries[items.query] if items.has_queries and self.query is not None else [None] * len(items)
        found = [place.get(key, -1) for key in zip(queries, items.labels, strict=True)]
        self._refuse_missing(items, np.flatnonzero(np.array(found) < 0))
        return np.asarray(values[found])

    def _find(self, name: str) -> str | None:
        """A column by its name, or by one that differs in case and punctuation only."""
        alike = [column for column in self.columns if plain(column) == plain(name)]
        return name if name in self.columns else alike[0] if len(alike) == 1 else None

    def _places(self, by_query: bool, values: AnyArray) -> dict[tuple[object, str], int]:
        """The row of each item; without queries, an item of several must be the same in all of them."""
        rows: dict[tuple[object, str], int] = {}
        for row, label in enumerate(self.item):
            key = (self.query[row] if by_query and self.query is not None else None, label)
            if _differ(values[rows.setdefault(key, row)], values[row]):
                raise DataError(f"{self.source}: item {label!r} differs between queries, and the judgments have none.")
        return rows

    def _refuse_missing(self, items: Items, missing: IntArray) -> None:
        if not missing.size:
            return
        few = ", ".join(items.name(int(place)) for place in missing[:_FIRST_FEW])
        hint = "" if self.query is None else " within their queries (--items-column query= if it has none)"
        raise DataError(
            f"{self.source}: says nothing of {missing.size:,} of {len(items):,} items, such as {few}. "
            f"Every item that was judged needs a row{hint}."
        )


def read_items(source: Any, columns: Mapping[str, str | None] | None = None) -> ItemColumns:
    """Columns about items, from a file, a data frame or a dict of columns.

    `columns` names the column of a role, `item` or `query` (None for "there is none"); the others keep their names.

    >>> read_items({"item": ["a", "b"], "length": ["12", "7"], "style": ["bold", "plain"]}).columns["length"]
    array([12.,  7.])
    """
    table = open_table(source)
    search = Search(table, told_roles(table, columns, _ITEM_ROLES))
    roles: dict[str, str] = {}
    search.add(roles, "item")
    search.add(roles, "query")
    if "item" not in roles:
        raise FormatError(f"{table.name}: no column is the item; name it: columns={{'item': 'COLUMN'}}.")
    others = [refuse_repeated(table, column) for column in table.columns if column not in roles.values()]
    rows = Rows(table, Match("items", roles), others, strict=True)
    item, query = rows.labels("item"), rows.maybe_labels("query")
    rows.settle()
    told = [name for name in others if not rows.frame[name].dtype.is_nested()]  # lists say nothing of use here
    found = {name: cells.values_of(rows.usable(rows.frame[name])) for name in told}
    frame = pl.DataFrame({"item": rows.usable(item)} | ({} if query is None else {"query": rows.usable(query)}))
    kept = _one_row_each(frame, found, table.name)
    return ItemColumns(
        source=table.name,
        item=np.array(frame["item"].to_list(), dtype=object)[kept],
        query=None if query is None else np.array(frame["query"].to_list(), dtype=object)[kept],
        columns={name: values[kept] for name, values in found.items()},
    )


def labels_of(values: AnyArray) -> ObjectArray:
    """A column as labels, whole numbers without a point and "" where nothing is."""
    text = cells.labels(pl.Series(values.tolist()), trimmed=True)
    return np.array(text.fill_null("").to_list(), dtype=object)


def columns_of_sides(source: Any, name: str, encoding: str | None = None) -> tuple[str, str]:
    """The two columns of a file of comparisons that tell one thing of its left and its right item.

    For engine: left_engine and right_engine, engine_left and engine_right, or engine_a and engine_b (1 and 2, x and y).

    >>> columns_of_sides({"left": ["p"], "right": ["q"], "Engine A": ["g"], "Engine B": ["y"]}, "engine")
    ('Engine A', 'Engine B')
    """
    table = open_table(source, encoding)
    by_name = {plain(column): column for column in table.columns}
    for first, second in _SIDES:
        pair = plain(first.format(name)), plain(second.format(name))
        if all(side in by_name for side in pair):
            return refuse_repeated(table, by_name[pair[0]]), refuse_repeated(table, by_name[pair[1]])
    raise FormatError(
        f"{table.name}: no columns tell the {name} of the left and of the right item. They would be called "
        f"left_{name} and right_{name}, {name}_left and {name}_right, or {name}_a and {name}_b; "
        f"or give a file about items that has a column {name}: --items FILE."
    )


def _one_row_each(frame: pl.DataFrame, columns: Mapping[str, AnyArray], source: str) -> IntArray:
    """The first row of each item (of a query); the same said again is no harm, anything else is an error."""
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
    """Whether two cells say different things; two that say nothing do not."""
    return bool(a != b) and bool(a == a or b == b)


_GOLD_ROLES = ("item", "value", "rank", "query")
_VALUES = each("value gold label truth truevalue grade rating relevance score staffgrade")
_RANKS = each("rank truerank goldrank position place group")


@dataclass(frozen=True, eq=False)
class GoldColumns:
    """What is known, as columns of one length; larger values are better."""

    item: ObjectArray
    value: FloatArray
    query: ObjectArray | None


def read_gold(source: Any, columns: Mapping[str, str | None] | None = None) -> GoldColumns:
    """Items with their true values, from a file, a data frame or a dict of columns.

    A column called rank, true_rank, position, place or group counts from the top, so its sign is turned; name any
    other column as `rank` for the same. Items without a value are left out.

    >>> read_gold({"item": ["a", "b"], "true_rank": [1, 2]}).value
    array([-1., -2.])
    """
    table = open_table(source)
    search = Search(table, told_roles(table, columns, _GOLD_ROLES))
    roles: dict[str, str] = {}
    search.add(roles, "item")
    search.add(roles, "query")
    if "item" not in roles:
        raise FormatError(f"{table.name}: no column is the item; name it: columns={{'item': 'COLUMN'}}.")
    value = _value_column(search, roles)
    rows = Rows(table, Match("gold", {**roles, "value": value}), strict=True)
    frame = _frame(rows)
    from_the_top = "rank" in search.told or (plain(value),) in _RANKS
    numbers = frame["value"].to_numpy()
    return GoldColumns(
        item=np.array(frame["item"].to_list(), dtype=object),
        value=-numbers if from_the_top else numbers,
        query=np.array(frame["query"].to_list(), dtype=object) if "query" in frame.columns else None,
    )


def _value_column(search: Search, roles: Mapping[str, str]) -> str:
    """The column told, else one with a known name, else the only one left."""
    told = [column for role in ("value", "rank") if (column := search.told.get(role))]
    for tiers in (_VALUES, _RANKS):
        if not told and (found := search.single("value", tiers, roles.values())):
            return found
    left = told or [column for column in search.table.columns if column not in roles.values()]
    if len(left) != 1:
        raise FormatError(
            f"{search.table.name}: cannot tell which of {', '.join(map(repr, left)) or 'no columns'} is the value; "
            "name it: columns={'value': 'COLUMN'} (or 'rank' where 1 is the best)."
        )
    return left[0]


def _frame(rows: Rows) -> pl.DataFrame:
    """One row an item (of a query), in the order of the source."""
    item, query = rows.labels("item"), rows.maybe_labels("query")
    rows.problems.ignore(cells.labels(rows.column("value"), trimmed=True).is_null().to_numpy())
    value = rows.numbers("value")
    rows.settle()
    columns = {"item": rows.usable(item), "value": rows.usable(value)}
    if query is not None:
        columns["query"] = rows.usable(query)
    frame = pl.DataFrame(columns).unique(maintain_order=True)
    names = [name for name in frame.columns if name != "value"]
    if (twice := frame.filter(frame.select(names).is_duplicated())).height:
        raise FormatError(f"{rows.table.name}: item {twice['item'][0]!r} has more than one value.")
    return frame
