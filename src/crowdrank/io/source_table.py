"""A source as a table: named columns that are loaded when needed, and the line of the file that each row comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import polars as pl

from crowdrank.arrays import BoolArray

SAMPLE_ROWS = 100


class RowLocation(NamedTuple):
    """Where a row is in its source.

    Parameters
    ----------
    line : int
        The line of a file, or the row counted from 1; 0 if unknown.
    remark : str, default ""
        What is wrong with the whole line, if that says more than any one cell: too few fields.
    """

    line: int
    remark: str = ""


UNKNOWN_LOCATION = RowLocation(0)


def count_from_one(rows: Sequence[int]) -> list[RowLocation]:
    return [RowLocation(row + 1) for row in rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceTable:
    """The columns of a source, before they have a meaning.

    Parameters
    ----------
    name : str
        The name in messages: a file name, or "the data frame".
    columns : tuple of str
        Names of the columns.
    load : callable
        Loads the named columns: all rows, or the first n.
    rows : int
        Number of rows.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame the source is.
    repeated_names : frozenset of str
        Names of more than one column.
    strip_spaces : bool
        Whether spaces around a cell are ignored, as in text files.
    blank_rows : array of bool, optional
        Rows that are empty lines, not judgments.
    unreadable_rows : mapping of int to str
        Rows that could not be parsed, and why.
    unit : {"line", "row"}
        What `locate` counts.
    locate : callable
        Returns the locations of rows.
    notes : tuple of str
        Remarks for the import report.
    roles : mapping of str to str
        Roles that the format assigns to columns, "" for a role without a column. Other roles are guessed from names.
    short_names : mapping of str to str
        Columns without a platform's prefix, for guessing: INPUT:image_left is image_left.
    set_aside : mapping of str to array of bool
        Rows that the platform itself marks as no judgments, by reason: gold, rejected.
    shown_swapped : array of bool, optional
        Rows that were shown with left and right exchanged.
    positions_known : bool
        Whether left and right are positions on the screen.
    """

    name: str
    columns: tuple[str, ...]
    load: Callable[[Sequence[str], int | None], pl.DataFrame]
    rows: int
    frame_backend: str = "polars"
    repeated_names: frozenset[str] = frozenset()
    strip_spaces: bool = False
    blank_rows: BoolArray | None = None
    unreadable_rows: Mapping[int, str] = field(default_factory=dict)
    unit: str = "row"
    locate: Callable[[Sequence[int]], list[RowLocation]] = count_from_one
    notes: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    short_names: Mapping[str, str] = field(default_factory=dict)
    set_aside: Mapping[str, BoolArray] = field(default_factory=dict)
    shown_swapped: BoolArray | None = None
    positions_known: bool = True

    @property
    def sample(self) -> pl.DataFrame:
        """The first rows, for recognising a format."""
        return self.load(self.columns, SAMPLE_ROWS)


def table_from_frame(frame: pl.DataFrame, name: str, *, frame_backend: str = "polars") -> SourceTable:
    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        # Not `select`, which reads column names such as "*" or "^…$" as patterns.
        return pl.DataFrame({column: frame.get_column(column).head(rows or frame.height) for column in columns})

    return SourceTable(
        name=name, columns=tuple(frame.columns), load=load, rows=frame.height, frame_backend=frame_backend
    )


def with_columns_computed(table: SourceTable, computed: pl.DataFrame, **changes: Any) -> SourceTable:
    """Add or replace columns; the others are loaded as before."""

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        kept = table.load([c for c in columns if c not in computed.columns], rows)
        fresh = computed if rows is None else computed.head(rows)
        return pl.DataFrame({c: (fresh if c in computed.columns else kept).get_column(c) for c in columns})

    kept = [column for column in table.columns if column not in computed.columns]
    return replace(table, columns=(*kept, *computed.columns), load=load, **changes)


def dedupe_names(names: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Make names unique; returns them and the names that occurred more than once."""
    unique: dict[str, None] = {}
    repeated = set()
    for number, name in enumerate(names, 1):
        if name in unique:
            repeated.add(name)
        free = f"{name} (column {number})" if name in unique else name
        while free in unique:
            free += "'"
        unique[free] = None
    return tuple(unique), frozenset(repeated)
