"""What formats say of their columns: which there must be, and what each one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files import cells
from crowdrank.files.roles import ROLES, plain
from crowdrank.files.sources import Source
from crowdrank.files.tables import Mask, Table, with_computed

_TRUE = ("true", "1", "yes", "t", "y")


def has(columns: str, without: str = "") -> Callable[[Source], bool]:
    """Whether a source has all of some columns and none of others, without regard to case and punctuation."""
    wanted, unwanted = _plain(columns), _plain(without)
    return lambda source: wanted <= source.names and not unwanted & source.names


def _plain(columns: str) -> set[str]:
    return {plain(name) for name in columns.split(",") if name.strip()}


def find(table: Table, names: str) -> str | None:
    """The column by the first of some names (a|b) that is there."""
    by_name = {plain(column): column for column in reversed(table.columns)}
    return next((by_name[plain(name)] for name in names.split("|") if plain(name) in by_name), None)


def need(table: Table, names: str, format_name: str) -> str:
    """Like `find`, for a column the format cannot do without."""
    column = find(table, names)
    if column is None:
        raise FormatError(
            f"{table.name}: {format_name} files have a column {names.split('|')[0]!r}, and here is none. "
            f"Columns found: {', '.join(map(repr, table.columns[:30])) or 'none'}."
        )
    return column


def playing(table: Table, format_name: str, **columns: str) -> Table:
    """The table with its roles told: `winner="chosen"`, `annotator="judge|judge_id?"`, ? where it may be missing.

    No other role is guessed.
    """
    roles = dict.fromkeys(ROLES, "")
    for role, names in columns.items():
        optional = names.endswith("?")
        roles[role] = (find(table, names[:-1]) or "") if optional else need(table, names, format_name)
    return replace(table, roles=roles)


def declared(format_name: str, **columns: str) -> Callable[[Source], Table]:
    """A reader for a format that is nothing but names of columns."""
    return lambda source: playing(source.table, format_name, **columns)


def truths(table: Table, column: str | None) -> Mask:
    """Where a column says true, yes or 1; nowhere if there is no such column."""
    if column is None:
        return np.zeros(table.rows, bool)
    return is_true(table.load([column], None)[column])


def is_true(column: pl.Series) -> Mask:
    return words(column).is_in(_TRUE).to_numpy()


def words(column: pl.Series) -> pl.Series:
    """Cells in lower case without spaces around them; "" where they are empty."""
    return cells.labels(column, trimmed=True).fill_null("").str.to_lowercase()


def with_times(table: Table, column: str | None, form: str, zones: Mapping[str, str] | None = None) -> Table:
    """The table with a column of dates in a form of the platform's own read; others are left as they are.

    `zones` are words for time zones, and what they stand for.
    """
    if column is None:
        return table
    told = table.load([column], None)[column]
    if told.dtype != pl.String:
        return table
    for word, offset in (zones or {}).items():
        told = told.str.replace(word, offset, literal=True)
    moment = told.str.strip_chars().str.to_datetime(form, strict=False, time_unit="us")
    return with_computed(table, pl.DataFrame({column: moment})) if moment.null_count() < len(moment) else table


def filled(table: Table, columns: list[str]) -> Mask:
    """Rows that say something in any of the columns."""
    frame = table.load(columns, None)
    return pl.select(pl.any_horizontal(words(frame[column]) != "" for column in columns)).to_series().to_numpy()
