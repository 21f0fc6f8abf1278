"""Known truth about items: one row an item, with a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files import cells
from crowdrank.files.matching import Match, Search, told_roles
from crowdrank.files.roles import each, plain
from crowdrank.files.rows import Rows
from crowdrank.files.sources import open_table

_ROLES = ("item", "value", "rank", "query")
_VALUES = each("value gold label truth truevalue grade rating relevance score staffgrade")
_RANKS = each("rank truerank goldrank position place group")


@dataclass(frozen=True, eq=False)
class GoldColumns:
    """What is known, as columns of one length; larger values are better."""

    item: npt.NDArray[np.object_]
    value: npt.NDArray[np.float64]
    query: npt.NDArray[np.object_] | None


def read_gold(source: Any, columns: Mapping[str, str | None] | None = None) -> GoldColumns:
    """Items with their true values, from a file, a data frame or a dict of columns.

    A column called rank, true_rank, position, place or group counts from the top, so its sign is turned; name any
    other column as `rank` for the same. Items without a value are left out.

    >>> read_gold({"item": ["a", "b"], "true_rank": [1, 2]}).value
    array([-1., -2.])
    """
    table = open_table(source)
    search = Search(table, told_roles(table, columns, _ROLES))
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
