"""A guide for a source that was not understood: its first rows, what each column might be, the call that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from crowdrank.errors import CrowdrankError
from crowdrank.io.guesses import named_sides, sample_columns, suggest_roles
from crowdrank.io.source_table import SourceTable
from crowdrank.io.synonyms import NAMES_BY_ROLE, normalize_name

_ROWS, _WIDTH, _MAX_COLUMNS, _MAX_NAME = 3, 16, 25, 24
_MAX_ROWS_TRIED = 200_000

Row = tuple[str, str, str]
Try = Callable[[Mapping[str, str | None]], object]


@dataclass(frozen=True)
class Guide:
    """What a person needs to read a source.

    Parameters
    ----------
    rows : tuple of (str, str, str)
        The name of each column, its first cells, and what it might be.
    call : str
        The Python call that reads the source, or nearly does.
    works : bool
        Whether the call was tried and reads the source.
    """

    rows: tuple[Row, ...]
    call: str
    works: bool

    def __str__(self) -> str:
        lines = _aligned([("column", "first rows", "might be"), *self.rows])
        said = "This reads it:" if self.works else "Fill in the columns of your file:"
        if self.works and "=left" in self.call:
            said = "This reads it (exchange the words if the codes mean something else):"
        return "\n".join([*lines, said, f"  {self.call}"])


def make_guide(
    table: SourceTable, source: Any, given: Mapping[str, str | None], attempt: Try, options: Mapping[str, str]
) -> Guide:
    """Return a guide; `attempt` raises a CrowdrankError for columns that do not read the source."""
    suggestions = suggest_roles(table) if table.rows <= _MAX_ROWS_TRIED else []
    for roles in suggestions:
        columns = {**roles, **given}
        try:
            attempt(columns)
        except CrowdrankError:
            continue
        return Guide(_rows(table, roles), _call(source, columns, table.has_header, options), works=True)
    columns = {"left": "COLUMN", "right": "COLUMN", "winner": "COLUMN", **named_sides(table)}
    return Guide(_rows(table, {}), _call(source, {**columns, **given}, table.has_header, options), works=False)


def describe_columns(table: SourceTable, roles: Mapping[str, str]) -> str:
    """Return the first rows as text, with the role that each column was read as."""
    return "\n".join(_aligned([("column", "first rows", "read as"), *_rows(table, roles, known_by_name=False)]))


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in (0, 1)]
    return [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]


def _rows(
    table: SourceTable, roles: Mapping[str, str], *, known_by_name: bool = True
) -> tuple[tuple[str, str, str], ...]:
    by_column: dict[str, list[str]] = {}
    for role, expression in roles.items():
        for column in expression.split(":")[0].split("+") if expression not in table.columns else [expression]:
            by_column.setdefault(column, []).append(role)
    described = {sample.name: (sample.cells, sample.describe()) for sample in sample_columns(table)}
    rows = []
    for column in table.columns[:_MAX_COLUMNS]:
        cells, looks = described.get(column, (None, "lists or objects"))
        shown = "" if cells is None else ", ".join(_cut(cell or "", _WIDTH) for cell in cells.head(_ROWS).to_list())
        known = by_column.get(column) or (_roles_by_name(column) if known_by_name else [])
        said = [" or ".join(known)] if known else []
        rows.append((_cut(column, _MAX_NAME), shown, ": ".join([*said, looks] if known_by_name else said)))
    if len(table.columns) > _MAX_COLUMNS:
        rows.append(("…", "", f"{len(table.columns) - _MAX_COLUMNS} more columns"))
    return tuple(rows)


def _roles_by_name(column: str) -> list[str]:
    name = normalize_name(column)
    return [role for role, tiers in NAMES_BY_ROLE.items() if any(name in tier for tier in tiers)][:3]


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _call(source: Any, columns: Mapping[str, str | None], has_header: bool, options: Mapping[str, str]) -> str:
    header = "" if has_header else ", header=False"
    more = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"cr.rank({_source(source)}, columns={dict(columns)!r}{header}{more})"


def _source(source: Any) -> str:
    if isinstance(source, str | PathLike):
        return repr(str(source))
    if isinstance(source, Sequence):
        return repr([str(path) for path in source])
    return "frame"
