"""Who can be asked: one row an annotator, with quota, price and whether they are available."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io import cells
from crowdrank.io.column_roles import each
from crowdrank.io.role_matching import Match, Search, told_roles
from crowdrank.io.rows import Rows
from crowdrank.io.sources import open_table

_ROLES = {
    "quota": each("quota limit max most maxquestions maxvotes"),
    "price": each("price cost pay fee rate"),
    "available": each("available active present"),
}
_NO = ("", "0", "no", "false", "n", "f")


@dataclass(frozen=True, eq=False, kw_only=True)
class People:
    """Annotators by name, and what limits what they are asked."""

    annotators: tuple[str, ...]
    available: tuple[str, ...]
    quota: Mapping[str, int]
    """How many questions at most, for those who have a limit."""
    price: Mapping[str, float]
    """What an answer costs, for those whose price is told."""


def read_annotators(source: Any, columns: Mapping[str, str | None] | None = None) -> People:
    """Annotators, from a file, a data frame or a dict of columns: `annotator`, and where there are such columns
    `quota`, `price` and `available` (no, false, 0 or nothing for those who are not).

    >>> read_annotators({"annotator": ["ann", "bob"], "price": ["2", ""], "available": ["yes", "no"]})
    People(annotators=('ann', 'bob'), available=('ann',), quota={}, price={'ann': 2.0})
    """
    table = open_table(source)
    search = Search(table, told_roles(table, columns, ("annotator", *_ROLES)))
    roles: dict[str, str] = {}
    search.add(roles, "annotator")
    if "annotator" not in roles and len(table.columns) == 1:
        roles["annotator"] = table.columns[0]
    if "annotator" not in roles:
        raise FormatError(f"{table.name}: no column is the annotator; name it: columns={{'annotator': 'COLUMN'}}.")
    for role, tiers in _ROLES.items():
        search.add(roles, role, tiers)
    rows = Rows(table, Match("annotators", roles), strict=True)
    names = rows.labels("annotator")
    rows.settle()
    if (twice := names.filter(names.is_duplicated())).len():
        raise FormatError(f"{table.name}: annotator {twice[0]!r} has more than one row.")
    labels = tuple(names.to_list())
    available = labels
    if rows.has("available"):
        said = cells.labels(rows.column("available"), trimmed=True).fill_null("").str.to_lowercase()
        available = tuple(n for n, word in zip(labels, said, strict=True) if word not in _NO)
    quota = {name: int(value) for name, value in _numbers(rows, labels, "quota", 0.0).items()}
    return People(annotators=labels, available=available, quota=quota, price=_numbers(rows, labels, "price", 1e-9))


def _numbers(rows: Rows, labels: tuple[str, ...], role: str, least: float) -> dict[str, float]:
    """The cells that say something, by annotator."""
    if not rows.has(role):
        return {}
    column = rows.column(role)
    told = cells.labels(column, trimmed=True).is_not_null().to_numpy()
    found = cells.numbers(column)
    if (bad := np.flatnonzero(told & ~(found >= least))).size:
        raise FormatError(
            f"{rows.table.name}: the {role} of {labels[bad[0]]!r} must be a number from {least:g} on, "
            f"got {pl.Series(column)[int(bad[0])]!r}."
        )
    return {labels[n]: float(found[n]) for n in np.flatnonzero(told)}
