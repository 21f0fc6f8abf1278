"""Text without a header, line by line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import polars as pl

from crowdrank.files.sources import Source
from crowdrank.files.tables import Table, table_of


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
