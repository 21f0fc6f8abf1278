"""What a format is: a way to know a source, to translate it into tidy words, and for some a way back.

What formats say of their columns: which there must be, and what each one is.

What writers share: columns under another's names, and a word on what the format cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.data import LEFT, TIE, Comparisons
from crowdrank.errors import FormatError
from crowdrank.io import cells
from crowdrank.io.column_roles import ROLES, plain
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed


@dataclass(frozen=True)
class Writer:
    """How judgments of one kind are written."""

    kinds: tuple[str, ...]
    """comparisons, ratings, rankings: what the format can hold."""
    suffixes: tuple[str, ...]
    """What the file may be called."""
    holds: frozenset[str]
    """What it keeps beside the judgments themselves: annotator, query, weight, time, duration, features."""
    write: Callable[[Any, Path], list[str]]
    """Judgments of one of the kinds into a file; returns sentences on what else was lost."""


def held(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True, kw_only=True)
class Format:
    name: str
    description: str
    known_by: str
    """What it is recognised by, in words."""
    recognises: Callable[[Source], bool]
    """From the names of the columns, the first lines or the first objects."""
    read: Callable[[Source], Table]
    """The same judgments as columns, one row a judgment, those that are none set aside.

    The table says which column plays which role; what it leaves open is guessed by the columns' names.
    """
    writer: Writer | None = None


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


def truths(table: Table, column: str | None) -> BoolArray:
    """Where a column says true, yes or 1; nowhere if there is no such column."""
    if column is None:
        return np.zeros(table.rows, bool)
    return is_true(table.load([column], None)[column])


def is_true(column: pl.Series) -> BoolArray:
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


def filled(table: Table, columns: list[str]) -> BoolArray:
    """Rows that say something in any of the columns."""
    frame = table.load(columns, None)
    return pl.select(pl.any_horizontal(words(frame[column]) != "" for column in columns)).to_series().to_numpy()


def decided(votes: Comparisons, format_name: str) -> tuple[Comparisons, list[str]]:
    """Without ties, for formats that know none."""
    if not votes.ties:
        return votes, []
    ties = "1 tie was" if votes.ties == 1 else f"{votes.ties:,} ties were"
    return votes.take(np.flatnonzero(votes.outcome != TIE)), [f"{ties} left out: {format_name} has none."]


def labelled(votes: Comparisons, names: Mapping[str, str]) -> pl.DataFrame:
    """Canonical columns under other names; query and weight keep theirs, where there are any."""
    frame = votes.to_frame()
    also = [name for name in ("query", "weight") if name in frame.columns]
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)


def sides(votes: Comparisons, left: str, right: str, tie: str) -> pl.Series:
    """Who won, as a word for its side."""
    return pl.Series(np.where(votes.outcome == TIE, tie, np.where(votes.outcome == LEFT, left, right)), dtype=pl.String)


def beaten(votes: Comparisons, who: str, chosen: str, not_chosen: str, took: str) -> pl.DataFrame:
    """Winner and loser in columns of their own."""
    frame = votes.to_frame()
    won = pl.Series(votes.outcome == LEFT)
    loser = frame["right"].zip_with(won, frame["left"])
    names = {"annotator": who, "winner": chosen, "loser": not_chosen, "duration": took}
    also = [name for name in ("query", "weight") if name in frame.columns]
    frame = frame.with_columns(loser.alias("loser"))
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)
