"""What formats of lines and of JSON objects share.

JSON objects that hold lists are loaded with one row per object, then exploded to one row per judgment; the column
`record` leads back to the object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.json_records import Lines, read_records
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame
from crowdrank.io.sources import Source


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
        return replace(
            bare,
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
