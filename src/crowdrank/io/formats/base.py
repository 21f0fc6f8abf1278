"""The `Format` class, and functions that formats share: column roles, flags, times, lines, JSON objects, output frames.

JSON objects that hold lists are loaded with one row per object, then exploded to one row per judgment; the column
`record` leads back to the object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.data import LEFT, TIE, Comparisons
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import ROLES, normalize_name
from crowdrank.io.json_records import Lines, read_records
from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame, with_columns_computed
from crowdrank.io.sources import Source


@dataclass(frozen=True)
class Writer:
    """How a format is written.

    Parameters
    ----------
    kinds : tuple of str
        The kinds of judgments that the format can hold: comparisons, ratings, rankings.
    suffixes : tuple of str
        The suffixes of its files.
    optional_columns : frozenset of str
        What it can hold besides the judgments: annotator, query, weight, time, duration,
        both_bad, features.
    write : callable
        Writes judgments of one of the kinds to a file; returns sentences on what else was lost.
    """

    kinds: tuple[str, ...]
    suffixes: tuple[str, ...]
    optional_columns: frozenset[str]
    write: Callable[[Any, Path], list[str]]


def optional(names: str) -> frozenset[str]:
    """Return the optional columns of a writer."""
    return frozenset(names.split())


@dataclass(frozen=True, kw_only=True)
class Format:
    """An external format.

    Parameters
    ----------
    name : str
        Name of the format.
    description : str
        A description in one sentence.
    known_by : str
        How it is recognised, in words.
    read : callable
        Turns a source into a table with one row per judgment. The table assigns roles to columns; the roles that it
        leaves open are guessed from the names of the columns.
    recognises : callable, optional
        Confirms that a source has this format, if the signature in the registry is not enough.
    writer : Writer, optional
        How to write the format, if it can be written.
    """

    name: str
    description: str
    known_by: str
    read: Callable[[Source], SourceTable]
    recognises: Callable[[Source], bool] | None = None
    writer: Writer | None = None


_TRUE = ("true", "1", "yes", "t", "y")


def find_optional(table: SourceTable, names: str) -> str | None:
    """Return the column of the first name (a|b) that exists."""
    by_name = {normalize_name(column): column for column in reversed(table.columns)}
    return next((by_name[normalize_name(name)] for name in names.split("|") if normalize_name(name) in by_name), None)


def find_required(table: SourceTable, names: str, format_name: str) -> str:
    """Return the column of the first name that exists; an error if none does."""
    column = find_optional(table, names)
    if column is None:
        raise FormatError(
            f"{table.name}: {format_name} files need a column {names.split('|')[0]!r}. "
            f"Columns found: {', '.join(map(repr, table.columns[:30])) or 'none'}."
        )
    return column


def assign_roles(table: SourceTable, format_name: str, **columns: str) -> SourceTable:
    """Assign roles to columns: `winner="chosen"`, `annotator="judge|judge_id?"` (with ? if it may be missing).

    The other roles have no column.
    """
    roles = dict.fromkeys(ROLES, "")
    for role, names in columns.items():
        may_be_missing = names.endswith("?")
        roles[role] = (
            (find_optional(table, names[:-1]) or "") if may_be_missing else find_required(table, names, format_name)
        )
    return replace(table, roles=roles)


def reads_columns(format_name: str, **columns: str) -> Callable[[Source], SourceTable]:
    """Return a reader that only assigns roles to columns."""
    return lambda source: assign_roles(source.table, format_name, **columns)


def true_rows(table: SourceTable, column: str | None) -> BoolArray:
    """Return which rows say true, yes or 1; none if there is no such column."""
    if column is None:
        return np.zeros(table.rows, bool)
    return is_true(table.load([column], None)[column])


def is_true(column: pl.Series) -> BoolArray:
    return words(column).is_in(_TRUE).to_numpy()


def words(column: pl.Series) -> pl.Series:
    """Return cells in lower case without surrounding spaces; "" if they are empty."""
    return parse_labels(column, strip_spaces=True).fill_null("").str.to_lowercase()


def parse_times(
    table: SourceTable, column: str | None, pattern: str, zones: Mapping[str, str] | None = None
) -> SourceTable:
    """Parse a column of times that are written in a pattern of the platform; other times are left as they are.

    `zones` are names of time zones and their offsets.
    """
    if column is None:
        return table
    text = table.load([column], None)[column]
    if text.dtype != pl.String:
        return table
    for zone, offset in (zones or {}).items():
        text = text.str.replace(zone, offset, literal=True)
    times = text.str.strip_chars().str.to_datetime(pattern, strict=False, time_unit="us")
    return with_columns_computed(table, pl.DataFrame({column: times})) if times.null_count() < len(times) else table


def rows_with_values(table: SourceTable, columns: list[str]) -> BoolArray:
    """Return which rows have a value in any of the columns."""
    frame = table.load(columns, None)
    return pl.select(pl.any_horizontal(words(frame[column]) != "" for column in columns)).to_series().to_numpy()


def without_ties(votes: Comparisons, format_name: str) -> tuple[Comparisons, list[str]]:
    """Drop ties, for formats that have none; also returns a sentence about it."""
    if not votes.ties:
        return votes, []
    ties = "1 tie was" if votes.ties == 1 else f"{votes.ties:,} ties were"
    return votes.take(np.flatnonzero(votes.outcome != TIE)), [f"{ties} left out: {format_name} has none."]


def renamed_frame(votes: Comparisons, names: Mapping[str, str]) -> pl.DataFrame:
    """Return the columns of comparisons under other names; query and weight keep theirs."""
    frame = votes.to_polars()
    also = [name for name in ("query", "weight") if name in frame.columns]
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)


def winner_sides(votes: Comparisons, left: str, right: str, tie: str, both_bad: str | None = None) -> pl.Series:
    """Return a word for the side that won; ties of two bad items are plain ties unless there is a word for them."""
    found = np.where(votes.outcome == TIE, tie, np.where(votes.outcome == LEFT, left, right)).astype(object)
    if both_bad is not None and votes.both_bad is not None:
        found[votes.both_bad] = both_bad
    return pl.Series(found.tolist(), dtype=pl.String)


def winner_loser_frame(votes: Comparisons, annotator: str, winner: str, loser: str, duration: str) -> pl.DataFrame:
    """Return one column for the winner and one for the loser, under the given names."""
    frame = votes.to_polars()
    left_won = pl.Series(votes.outcome == LEFT)
    losers = frame["right"].zip_with(left_won, frame["left"])
    names = {"annotator": annotator, "winner": winner, "loser": loser, "duration": duration}
    also = [name for name in ("query", "weight") if name in frame.columns]
    frame = frame.with_columns(losers.alias("loser"))
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)


def split_lines(source: Source) -> pl.Series:
    """Return every line, without surrounding spaces."""
    text = source.text.decode()
    return pl.Series("line", text.removesuffix("\n").split("\n"), dtype=pl.String).str.strip_chars()


def all_lines_match(source: Source, pattern: re.Pattern[str]) -> bool:
    """Return whether all of the first lines match a pattern."""
    return bool(source.head) and all(pattern.fullmatch(line.strip()) for line in source.head)


def table_from_lines(source: Source, lines: pl.Series, frame: pl.DataFrame, **more: Any) -> SourceTable:
    """Make a table of a frame with one row per line; lines without any field are unreadable, empty lines are blank."""
    blank_rows = (lines == "").to_numpy()
    unread = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy() & ~blank_rows
    unreadable_rows = dict.fromkeys(unread.nonzero()[0].tolist(), "does not have this format")
    return replace(
        table_from_frame(frame, source.name),
        unit="line",
        blank_rows=blank_rows,
        unreadable_rows=unreadable_rows,
        **more,
    )


# The column that numbers the objects.
RECORD = "record"


@dataclass(frozen=True)
class Records:
    """The objects of a source, with the fields of a schema."""

    frame: pl.DataFrame
    unreadable_rows: Mapping[int, str]
    source: Source

    def explode_lists(self, *lists: str) -> pl.DataFrame:
        """Return one row per entry of lists of equal length; an object with empty lists has no judgments."""
        holds = (pl.col(lists[0]).list.len() > 0).fill_null(False)
        return self.frame.filter(holds | pl.col(RECORD).is_in(list(self.unreadable_rows))).explode(*lists)

    def table(self, frame: pl.DataFrame, **more: Any) -> SourceTable:
        """Make a table of a frame with a column `record`, which locates the lines of the file."""
        record = frame[RECORD].to_numpy()
        by_line = self.source.text.lstrip()[:1] == b"{"
        lines = Lines(self.source.text)

        def locate(rows: Sequence[int]) -> list[RowLocation]:
            objects = [int(record[row]) for row in rows]
            return lines.locate(objects) if by_line else [RowLocation(number + 1) for number in objects]

        wrong = np.flatnonzero(np.isin(record, list(self.unreadable_rows))).tolist() if self.unreadable_rows else []
        bare = table_from_frame(frame.drop(RECORD), self.source.name)
        count = len(np.unique(record))
        several = count < frame.height and more.get("part_of") is None
        return replace(
            bare,
            entries=count if several else 0,
            unit="line" if by_line else "row",
            locate=locate,
            unreadable_rows={row: self.unreadable_rows[int(record[row])] for row in wrong},
            **more,
        )


def as_object(value: Any) -> dict[str, Any]:
    """Return a value that is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def load_records(source: Source, schema: Mapping[str, Any]) -> Records:
    """Load the objects of JSON, or the columns of another source, with the fields of a schema."""
    if source.json:
        frame, unreadable_rows = read_records(source.text, source.name, schema)
    else:
        present = [name for name in schema if name in source.table.columns]
        frame, unreadable_rows = source.table.load(present, None), {}
        missing = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in present]
        frame = frame.with_columns(missing)
    if not frame.height:
        raise FormatError(f"{source.name}: contains no objects.")
    return Records(frame.with_row_index(RECORD), unreadable_rows, source)
