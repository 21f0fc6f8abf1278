"""Text without a header, line by line.

JSON objects that hold lists: one row an object first, then one row a judgment, each knowing its object.
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
from crowdrank.io.sources import Source
from crowdrank.io.tables import Place, Table, table_of


def lines_of(source: Source) -> pl.Series:
    """Every line; what ends the last one begins no other."""
    text = source.text.decode()
    return pl.Series("line", text.removesuffix("\n").split("\n"), dtype=pl.String).str.strip_chars()


def look_like(source: Source, pattern: re.Pattern[str]) -> bool:
    """Whether all of the first lines are of one form."""
    return bool(source.head) and all(pattern.fullmatch(line.strip()) for line in source.head)


def table_of_lines(source: Source, lines: pl.Series, frame: pl.DataFrame, **more: Any) -> Table:
    """A frame with one row a line; those of which nothing could be read are broken, empty ones are no rows."""
    blank = (lines == "").to_numpy()
    unread = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy() & ~blank
    broken = dict.fromkeys(unread.nonzero()[0].tolist(), "is not of this format")
    return replace(table_of(frame, source.name), unit="line", blank=blank, broken=broken, **more)


RECORD = "record"
"""The column that numbers the objects."""


@dataclass(frozen=True)
class Records:
    """The objects of a source, with only the fields that were asked for."""

    frame: pl.DataFrame
    broken: Mapping[int, str]
    source: Source

    def one_each(self, *lists: str) -> pl.DataFrame:
        """A row for each entry of lists of one length; an object whose lists are empty holds no judgment."""
        holds = (pl.col(lists[0]).list.len() > 0).fill_null(False)
        return self.frame.filter(holds | pl.col(RECORD).is_in(list(self.broken))).explode(*lists)

    def table(self, frame: pl.DataFrame, **more: Any) -> Table:
        """A frame of judgments made from the objects; its `record` column is the way back to their lines."""
        record = frame[RECORD].to_numpy()
        by_line = self.source.text.lstrip()[:1] == b"{"
        lines = Lines(self.source.text)

        def locate(rows: Sequence[int]) -> list[Place]:
            objects = [int(record[row]) for row in rows]
            return lines.locate(objects) if by_line else [Place(number + 1) for number in objects]

        wrong = np.flatnonzero(np.isin(record, list(self.broken))).tolist() if self.broken else []
        bare = table_of(frame.drop(RECORD), self.source.name)
        return replace(
            bare,
            unit="line" if by_line else "row",
            locate=locate,
            broken={row: self.broken[int(record[row])] for row in wrong},
            **more,
        )


def an_object(value: Any) -> dict[str, Any]:
    """The value, if it is one."""
    return value if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def records_of(source: Source, schema: Mapping[str, Any]) -> Records:
    """The objects with the fields of a schema; of a frame or Parquet, its columns."""
    if source.json:
        frame, broken = read_records(source.text, source.name, schema)
    else:
        there = [name for name in schema if name in source.table.columns]
        frame, broken = source.table.load(there, None), {}
        missing = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in there]
        frame = frame.with_columns(missing)
    if not frame.height:
        raise FormatError(f"{source.name}: holds no objects.")
    return Records(frame.with_row_index(RECORD), broken, source)
