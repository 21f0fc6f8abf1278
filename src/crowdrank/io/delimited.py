"""Read comma-, semicolon-, tab- and bar-separated text with polars; Python's csv module locates what is wrong."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.errors import FormatError
from crowdrank.io.source_table import UNKNOWN_LOCATION, RowLocation, SourceTable, dedupe_names, table_from_frame
from crowdrank.io.text_layout import blank_comments, find_delimiter, has_header, title_notes, without_titles

# Larger files are not parsed line by line in Python, which would take minutes.
MAX_SCAN_BYTES = 500_000_000
_NO_HEADER = (
    "The first line looks like data, so the columns are numbered from 1. If it names the columns, pass header=True."
)
_END_MARK = "\ue000 the end \ue000"


class _Record(NamedTuple):
    line: int  # where the record begins, counted from 1
    fields: list[str]


class _UnclosedQuote(Exception):  # noqa: N818 - raised and caught within this module
    def __init__(self, line: int):
        self.line = line


@dataclass(frozen=True)
class _Text:
    """The text of a file, without the lines before the header."""

    name: str
    data: bytes
    delimiter: str
    skipped: int  # lines of the file before the header
    has_header: bool
    scannable: bool  # whether it is short enough to be parsed in Python
    titles: int = 0  # lines of a title above the header

    def parse(self, ragged: bool = False) -> pl.DataFrame:
        return pl.read_csv(
            self.data,
            separator=self.delimiter,
            has_header=self.has_header,
            infer_schema=False,
            truncate_ragged_lines=ragged,
        )

    def records(self, quoting: int = csv.QUOTE_MINIMAL) -> Iterator[_Record]:
        """Iterate over the records, header first; a blank line is a record without fields."""
        # The default limit is too small for cells that hold whole conversations.
        csv.field_size_limit(max(csv.field_size_limit(), (1 << 31) - 1))
        lines = chain((line.decode() for line in io.BytesIO(self.data)), [_END_MARK])
        reader = csv.reader(lines, delimiter=self.delimiter, quoting=quoting)  # type: ignore[arg-type]
        line = self.skipped + 1
        for fields in reader:
            if fields and fields[-1].endswith(_END_MARK):
                if line == self.skipped + reader.line_num:
                    return
                # The mark after the last line became part of a cell, so a quote was never closed.
                raise _UnclosedQuote(line)
            yield _Record(line, fields)
            line = self.skipped + reader.line_num + 1

    def header(self) -> list[str]:
        """Return the names of the columns; numbers from 1 if there is no header."""
        try:
            fields = [field.strip() for field in next(self.records()).fields]
            return fields if self.has_header else [str(n) for n in range(1, len(fields) + 1)]
        except _UnclosedQuote as quote:
            raise FormatError(f"{self.name}: line {quote.line}: a quote is opened and never closed.") from None


def read_delimited(
    data: bytes,
    name: str,
    prefer: str = ",",
    header: bool | None = None,
    max_scan_bytes: int = MAX_SCAN_BYTES,
) -> SourceTable:
    """Read UTF-8 text as a table of strings; whether its first line is a header is guessed, or told by `header`."""
    text = _open(data, name, prefer, header, max_scan_bytes)
    columns, repeated_names = dedupe_names(text.header())
    try:
        table = _parse_with_polars(text, columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        table = _parse_in_python(text, columns) if text.scannable else _truncate_to_header(text, columns)
    notes = table.notes if text.has_header or header is False else (*table.notes, _NO_HEADER)
    notes = (*notes, *title_notes(text.titles))
    return replace(
        table,
        repeated_names=repeated_names,
        strip_spaces=True,
        has_header=text.has_header,
        blank_rows=_blank(table.load(columns, None)),
        notes=notes,
    )


def _parse_with_polars(text: _Text, columns: Sequence[str], ragged: bool = False) -> SourceTable:
    """Parse with polars; rows of a long file are counted, because finding their lines would take minutes."""
    frame = text.parse(ragged)
    frame.columns = list(columns)
    table = table_from_frame(frame, text.name)
    if text.scannable:
        return replace(table, unit="line", locate=_Locator(text, frame))
    return replace(table, notes=("The file is too large to count its lines; numbers are those of rows.",))


def _open(data: bytes, name: str, prefer: str, header: bool | None, max_scan_bytes: int) -> _Text:
    data = blank_comments(data)
    body, declared = data.lstrip(b"\n"), None
    found = without_titles(body) if header is None else body
    titles = sum(1 for line in body[: len(body) - len(found)].split(b"\n") if line.strip())
    body = found
    # Spreadsheets may declare the delimiter on the first line.
    if declaration := re.match(rb'"?sep=([,;\t|])"?\n+', body, re.IGNORECASE):
        body, declared = body[declaration.end() :], declaration[1].decode()
    if not re.search(rb"\S", body):
        raise FormatError(f"{name}: is empty.")
    skipped = data.count(b"\n", 0, len(data) - len(body))
    delimiter = declared
    if delimiter is None:
        body, delimiter = find_delimiter(body, prefer)
    named = has_header(body, delimiter) if header is None else header
    return _Text(name, body, delimiter, skipped, named, len(body) <= max_scan_bytes, titles)


def _blank(frame: pl.DataFrame) -> BoolArray:
    """Return which rows are empty lines, or lines of spaces."""
    first = (pl.nth(0).str.strip_chars() == "").fill_null(True)
    rest = [pl.nth(n).is_null() for n in range(1, frame.width)]
    return frame.select(pl.all_horizontal(first, *rest)).to_series().to_numpy()


@dataclass(frozen=True)
class _Locator:
    """Finds the line of the file that a row of the parsed table comes from."""

    text: _Text
    frame: pl.DataFrame

    def __call__(self, rows: Sequence[int]) -> list[RowLocation]:
        wanted, found = set(rows), dict.fromkeys(rows, UNKNOWN_LOCATION)
        with suppress(_UnclosedQuote):
            for row, record in enumerate(self.text.records(), -1 if self.text.has_header else 0):
                if row in wanted:
                    wanted.discard(row)
                    found[row] = self._location(row, record)
                if not wanted:
                    break
        return [found[row] for row in rows]

    def _location(self, row: int, record: _Record) -> RowLocation:
        # polars and csv disagree on text after a closing quote; then no line number is better than a wrong one.
        missing = [""] * (self.frame.width - len(record.fields))
        same = [cell or "" for cell in self.frame.row(row)] == record.fields + missing
        return RowLocation(record.line, _remark(len(record.fields), self.frame.width)) if same else UNKNOWN_LOCATION


def _remark(fields: int, width: int) -> str:
    return "" if fields == width else f"{fields} {'field' if fields == 1 else 'fields'} where the header has {width}"


def _parse_in_python(text: _Text, columns: Sequence[str]) -> SourceTable:
    """Parse what polars refuses: rows with too many fields are unreadable, short ones are filled up."""
    records, notes = _records(text, len(columns))
    width, body = len(columns), records[1:] if text.has_header else records
    long = (n for n, record in enumerate(body) if any(map(str.strip, record.fields[width:])))
    cells = [[r.fields[n] or None if n < len(r.fields) else None for r in body] for n in range(width)]
    frame = pl.DataFrame({name: pl.Series(c, dtype=pl.String) for name, c in zip(columns, cells, strict=True)})

    def locate(rows: Sequence[int]) -> list[RowLocation]:
        return [RowLocation(body[row].line, _remark(len(body[row].fields), width)) for row in rows]

    unreadable_rows = {n: _remark(len(body[n].fields), width) for n in long}
    return replace(
        table_from_frame(frame, text.name), unit="line", locate=locate, unreadable_rows=unreadable_rows, notes=notes
    )


def _records(text: _Text, width: int) -> tuple[list[_Record], tuple[str, ...]]:
    try:
        return list(text.records()), ()
    except _UnclosedQuote as quote:
        # If every line has the right number of fields without quoting, quotes are ordinary characters.
        records = list(text.records(csv.QUOTE_NONE))
        if all(len(record.fields) in (0, width) for record in records):
            return records, ("Quotes are not balanced, so they were read as ordinary characters.",)
        raise FormatError(f"{text.name}: line {quote.line}: a quote is opened and never closed.") from None


def _truncate_to_header(text: _Text, columns: Sequence[str]) -> SourceTable:
    """Parse what polars refuses and is too large for Python."""
    try:
        table = _parse_with_polars(text, columns, ragged=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FormatError(f"{text.name}: cannot be read as delimited text: {str(error).splitlines()[0]}.") from error
    return replace(table, notes=(*table.notes, "Rows with more fields than the header were cut to its length."))
