"""Tables of annotators: one row per annotator, with quota, price and availability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.column_roles import RoleMatch, RoleMatcher, require_role, resolve_columns
from crowdrank.io.rows import Rows, parse_labels, parse_numbers
from crowdrank.io.sources import open_table
from crowdrank.io.synonyms import each

_ROLES = {
    "quota": each("quota limit max most maxquestions maxvotes"),
    "price": each("price cost pay fee rate"),
    "available": each("available active present"),
}
_NO = ("", "0", "no", "false", "n", "f")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatorTable:
    """Annotators who can be asked, as `read_annotators` returns them.

    Parameters
    ----------
    annotators : tuple of str
        Names of all annotators.
    available : tuple of str
        Names of those who can be asked now.
    quota : mapping of str to int
        The maximum number of questions, for annotators who have one.
    price : mapping of str to float
        The price of an answer, for annotators who have one.
    """

    annotators: tuple[str, ...]
    available: tuple[str, ...]
    quota: Mapping[str, int]
    price: Mapping[str, float]


def read_annotators(source: Any, columns: Mapping[str, str | None] | None = None) -> AnnotatorTable:
    """Read annotators from a file, a data frame or a dict of columns.

    Parameters
    ----------
    source : path, data frame or mapping of str to sequence
        One row per annotator. A column of names is needed; `quota`, `price` and `available` (no, false, 0 or empty for
        those who are not) are optional.
    columns : mapping of str to str or None, optional
        The column of the roles `annotator`, `quota`, `price` and `available`.

    Returns
    -------
    AnnotatorTable

    Raises
    ------
    FormatError
        If there is no column of annotators, an annotator has two rows, or a quota or price is not a number.

    Examples
    --------
    >>> read_annotators({"annotator": ["ann", "bob"], "price": ["2", ""], "available": ["yes", "no"]})
    AnnotatorTable(annotators=('ann', 'bob'), available=('ann',), quota={}, price={'ann': 2.0})
    """
    table = open_table(source)
    matcher = RoleMatcher(table, resolve_columns(table, columns, ("annotator", *_ROLES)))
    roles: dict[str, str] = {}
    matcher.add(roles, "annotator")
    if "annotator" not in roles and len(table.columns) == 1:
        roles["annotator"] = table.columns[0]
    require_role(table, roles, "annotator")
    for role, tiers in _ROLES.items():
        matcher.add(roles, role, tiers)
    rows = Rows(table, RoleMatch("annotators", roles), strict=True)
    names = rows.labels("annotator")
    rows.finish_checks()
    if (twice := names.filter(names.is_duplicated())).len():
        raise FormatError(f"{table.name}: annotator {twice[0]!r} has more than one row.", remedy="Remove one.")
    labels = tuple(names.to_list())
    available = labels
    if rows.has("available"):
        answers = parse_labels(rows.column("available"), strip_spaces=True).fill_null("").str.to_lowercase()
        available = tuple(n for n, answer in zip(labels, answers, strict=True) if answer not in _NO)
    quota = {name: int(value) for name, value in _numbers(rows, labels, "quota", 0.0).items()}
    return AnnotatorTable(
        annotators=labels, available=available, quota=quota, price=_numbers(rows, labels, "price", 1e-9)
    )


def _numbers(rows: Rows, labels: tuple[str, ...], role: str, minimum: float) -> dict[str, float]:
    """Return the numbers of the cells that are not empty, by annotator."""
    if not rows.has(role):
        return {}
    column = rows.column(role)
    given = parse_labels(column, strip_spaces=True).is_not_null().to_numpy()
    found = parse_numbers(column)
    if (bad := np.flatnonzero(given & ~(found >= minimum))).size:
        raise FormatError(
            f"{rows.table.name}: the {role} of {labels[bad[0]]!r} must be a number ≥ {minimum:g}, "
            f"got {pl.Series(column)[int(bad[0])]!r}."
        )
    return {labels[n]: float(found[n]) for n in np.flatnonzero(given)}
