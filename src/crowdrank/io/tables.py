"""A table at the door: named columns, loaded when asked for, and the way back from a row to its place in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import polars as pl

from crowdrank.arrays import BoolArray

SAMPLE_ROWS = 100


class Place(NamedTuple):
    """Where a row stands for its reader: a line of a file, or a row counted from 1."""

    line: int
    remark: str = ""
    """What is wrong with the whole line, where that explains more than any one cell: too few fields."""


NOWHERE = Place(0)


def count_from_one(rows: Sequence[int]) -> list[Place]:
    return [Place(row + 1) for row in rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """What a source holds, before anyone asks what it means."""

    name: str
    """How messages call it: a file's name, "the data frame"."""
    columns: tuple[str, ...]
    load: Callable[[Sequence[str], int | None], pl.DataFrame]
    """The named columns, all rows or the first few."""
    rows: int
    native: str = "polars"
    repeated: frozenset[str] = frozenset()
    """Names that head more than one column."""
    trimmed: bool = False
    """Whether spaces around a cell mean nothing, as in text."""
    blank: BoolArray | None = None
    """Rows that are empty lines, not judgments."""
    broken: Mapping[int, str] = field(default_factory=dict)
    """Rows known to be unusable before any cell is looked at, and why."""
    unit: str = "row"
    """What `locate` counts: lines of a file, or rows."""
    locate: Callable[[Sequence[int]], list[Place]] = count_from_one
    notes: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    """What the format says of its columns: role to column, "" for a role that none plays; others are guessed."""
    short: Mapping[str, str] = field(default_factory=dict)
    """Columns without a platform's prefixes, to know them by: INPUT:image_left is image_left."""
    set_aside: Mapping[str, BoolArray] = field(default_factory=dict)
    """Rows that the platform itself tells apart from judgments, by reason: gold, rejected …"""
    swapped: BoolArray | None = None
    """Rows that were shown with left and right exchanged."""
    sided: bool = True
    """False where left and right do not say how a pair was shown."""

    @property
    def sample(self) -> pl.DataFrame:
        """The first rows, for a format to recognise itself by."""
        return self.load(self.columns, SAMPLE_ROWS)


def table_of(frame: pl.DataFrame, name: str, *, native: str = "polars") -> Table:
    """A frame in memory as a table."""

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        # Not `select`, to which a column called "*" or "^…$" is a pattern.
        return pl.DataFrame({column: frame.get_column(column).head(rows or frame.height) for column in columns})

    return Table(name=name, columns=tuple(frame.columns), load=load, rows=frame.height, native=native)


def with_computed(table: Table, computed: pl.DataFrame, **changes: Any) -> Table:
    """The table with more columns, or others in place of its own; the rest is loaded as before."""

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        kept = table.load([c for c in columns if c not in computed.columns], rows)
        fresh = computed if rows is None else computed.head(rows)
        return pl.DataFrame({c: (fresh if c in computed.columns else kept).get_column(c) for c in columns})

    kept = [column for column in table.columns if column not in computed.columns]
    return replace(table, columns=(*kept, *computed.columns), load=load, **changes)


def told_apart(names: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names made unique where they repeat, and those that did."""
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
