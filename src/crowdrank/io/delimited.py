"""Comma-, semicolon-, tab- and bar-separated text: polars reads it, Python's csv module finds what is wrong with it."""

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
from crowdrank.io.tables import NOWHERE, Place, Table, table_of, told_apart

DELIMITERS = ",;\t|"
# Beyond this many bytes nobody waits for Python to walk through the lines.
LONGEST_WALK = 500_000_000
_THE_END = "\ue000 the end \ue000"


class _Record(NamedTuple):
    line: int
    """Where it begins, counted from 1."""
    fields: list[str]


class _UnclosedQuote(Exception):  # noqa: N818 - found and answered within this file
    def __init__(self, line: int):
        self.line = line


@dataclass(frozen=True)
class _Text:
    """The text of a file from its header on."""

    name: str
    data: bytes
    delimiter: str
    skipped: int
    """Lines of the file before the header."""
    walkable: bool

    def parse(self, ragged: bool = False) -> pl.DataFrame:
        return pl.read_csv(self.data, separator=self.delimiter, infer_schema=False, truncate_ragged_lines=ragged)

    def walk(self, quoting: int = csv.QUOTE_MINIMAL) -> Iterator[_Record]:
        """Every record, the header first; a blank line is a record without fields."""
        # A limit meant for other programs: real cells hold whole conversations.
        csv.field_size_limit(max(csv.field_size_limit(), (1 << 31) - 1))
        lines = chain((line.decode() for line in io.BytesIO(self.data)), [_THE_END])
        reader = csv.reader(lines, delimiter=self.delimiter, quoting=quoting)  # type: ignore[arg-type]
        line = self.skipped + 1
        for fields in reader:
            if fields and fields[-1].endswith(_THE_END):
                if line == self.skipped + reader.line_num:
                    return
                # The mark after the last line was taken into a cell that began before it.
                raise _UnclosedQuote(line)
            yield _Record(line, fields)
            line = self.skipped + reader.line_num + 1

    def header(self) -> list[str]:
        try:
            return [field.strip() for field in next(self.walk()).fields]
        except _UnclosedQuote as quote:
            raise FormatError(f"{self.name}: line {quote.line}: a quote is opened and never closed.") from None


def read_delimited(data: bytes, name: str, prefer: str = ",", longest_walk: int = LONGEST_WALK) -> Table:
    """UTF-8 text with a header, as a table of strings."""
    text = _open(data, name, prefer, longest_walk)
    columns, repeated = told_apart(text.header())
    try:
        table = _parsed(text, columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        table = _walk_through(text, columns) if text.walkable else _cut_to_header(text, columns)
    return replace(table, repeated=repeated, trimmed=True, blank=_blank(table.load(columns, None)))


def _parsed(text: _Text, columns: Sequence[str], ragged: bool = False) -> Table:
    """What polars makes of it; the lines of a long file are not numbered."""
    frame = text.parse(ragged)
    frame.columns = list(columns)
    table = table_of(frame, text.name)
    if text.walkable:
        return replace(table, unit="line", locate=_Locator(text, frame))
    return replace(table, notes=("The file is too long to number its lines; rows are counted instead.",))


def _open(data: bytes, name: str, prefer: str, longest_walk: int) -> _Text:
    body, declared = data.lstrip(b"\n"), None
    # Spreadsheets may name the delimiter on a line of its own.
    if found := re.match(rb'"?sep=([,;\t|])"?\n+', body, re.IGNORECASE):
        body, declared = body[found.end() :], found[1].decode()
    if not re.search(rb"\S", body):
        raise FormatError(f"{name}: is empty.")
    skipped = data.count(b"\n", 0, len(data) - len(body))
    return _Text(name, body, declared or _sniff(body, prefer), skipped, len(body) <= longest_walk)


def _sniff(body: bytes, prefer: str) -> str:
    """The delimiter that splits the header into most fields."""
    header = body[: body.find(b"\n") + 1 or None].decode()
    outside_quotes = re.sub(r'"[^"]*"', "", header)
    return max(prefer + DELIMITERS, key=outside_quotes.count)


def _blank(frame: pl.DataFrame) -> BoolArray:
    """Rows that stand for empty lines, or lines of spaces."""
    first = (pl.nth(0).str.strip_chars() == "").fill_null(True)
    rest = [pl.nth(n).is_null() for n in range(1, frame.width)]
    return frame.select(pl.all_horizontal(first, *rest)).to_series().to_numpy()


@dataclass(frozen=True)
class _Locator:
    """From rows of the parsed table back to lines of the file."""

    text: _Text
    frame: pl.DataFrame

    def __call__(self, rows: Sequence[int]) -> list[Place]:
        wanted, found = set(rows), dict.fromkeys(rows, NOWHERE)
        with suppress(_UnclosedQuote):
            for row, record in enumerate(self.text.walk(), -1):
                if row in wanted:
                    wanted.discard(row)
                    found[row] = self._place(row, record)
                if not wanted:
                    break
        return [found[row] for row in rows]

    def _place(self, row: int, record: _Record) -> Place:
        # polars and csv part ways over text after a closing quote; then no line is better than a wrong one.
        missing = [""] * (self.frame.width - len(record.fields))
        same = [cell or "" for cell in self.frame.row(row)] == record.fields + missing
        return Place(record.line, _remark(len(record.fields), self.frame.width)) if same else NOWHERE


def _remark(fields: int, width: int) -> str:
    return "" if fields == width else f"{fields} {'field' if fields == 1 else 'fields'} where the header has {width}"


def _walk_through(text: _Text, columns: Sequence[str]) -> Table:
    """What polars refuses, record by record: rows with too many fields are marked, short ones filled up."""
    records, notes = _records(text, len(columns))
    width, body = len(columns), records[1:]
    long = (n for n, record in enumerate(body) if any(map(str.strip, record.fields[width:])))
    cells = [[r.fields[n] or None if n < len(r.fields) else None for r in body] for n in range(width)]
    frame = pl.DataFrame({name: pl.Series(c, dtype=pl.String) for name, c in zip(columns, cells, strict=True)})

    def locate(rows: Sequence[int]) -> list[Place]:
        return [Place(body[row].line, _remark(len(body[row].fields), width)) for row in rows]

    broken = {n: _remark(len(body[n].fields), width) for n in long}
    return replace(table_of(frame, text.name), unit="line", locate=locate, broken=broken, notes=notes)


def _records(text: _Text, width: int) -> tuple[list[_Record], tuple[str, ...]]:
    try:
        return list(text.walk()), ()
    except _UnclosedQuote as quote:
        # Where every line has the right number of fields without them, quotes are ordinary characters.
        records = list(text.walk(csv.QUOTE_NONE))
        if all(len(record.fields) in (0, width) for record in records):
            return records, ("Quotes are not balanced, so they were read as ordinary characters.",)
        raise FormatError(f"{text.name}: line {quote.line}: a quote is opened and never closed.") from None


def _cut_to_header(text: _Text, columns: Sequence[str]) -> Table:
    """What polars refuses and is too long to walk through."""
    try:
        table = _parsed(text, columns, ragged=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FormatError(f"{text.name}: cannot be read as delimited text: {str(error).splitlines()[0]}.") from error
    return replace(table, notes=(*table.notes, "Rows with more fields than the header were cut to its length."))
