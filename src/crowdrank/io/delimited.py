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

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import NAMES_BY_ROLE, normalize_name
from crowdrank.io.source_table import UNKNOWN_LOCATION, RowLocation, SourceTable, dedupe_names, table_from_frame

# The layout of delimited text: comment lines, the delimiter, and whether the first line names the columns.

DELIMITERS = ",;\t|"
_HEAD_BYTES, _HEAD_LINES, _MOST_LINES = 1 << 16, 50, 0.5
_MAX_TITLES, _MIN_LINES = 5, 4
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SCORE = re.compile(r"\d+\s*[-–:]\s*\d+")
# Several answers in one cell.
_ANSWERS = re.compile(r"[+-]?\d(\s*,\s*[+-]?\d)+")
# Lines that draw a table, as Markdown and databases print it: |---|:--:| and +----+----+.
_RULE = re.compile(rb"(?m)^[ \t]*(?=[^\n]*[|+])(?=[^\n]*--)[|+:= \t-]+$")
# A list such as "tea > milk > juice", and the name before one: "ann: ".
_ORDER, _BEFORE_ORDER = " > ", re.compile(rb"(?m)^([^:>\n]+):[ \t]*")
# Results without a header: "Real Madrid 3 - 1 Ajax", "ann beats bob".
_MET = re.compile(
    rb"(?m)^[ \t]*(\S.*?)[ \t]+(\d+[ \t]*(?:-|:|\xe2\x80\x93)[ \t]*\d+|beats|beat|defeats|defeated)[ \t]+(\S.*?)[ \t]*$"
)
# Words that are as often values as names of columns.
_ALSO_VALUES = frozenset(
    "a b c x y i j l r p1 p2 first second left right lhs rhs home away white black choice answer".split()  # noqa: SIM905
)
_KNOWN_NAMES = (
    frozenset(name for tiers in NAMES_BY_ROLE.values() for tier in tiers for name in tier)
    | frozenset(["id", "name", "text", "title", "prompt", "question", "value", "gold", "truth", "quota", "group"])
    | frozenset(["startdate", "enddate", "responseid"])
) - _ALSO_VALUES


def blank_comments(data: bytes) -> bytes:
    """Return text whose comment lines (#) are empty, if it begins with one; a commented header loses its sign."""
    if not data.lstrip().startswith(b"#"):
        return data
    lines = data.split(b"\n")
    if all(line.lstrip().startswith(b"#") for line in lines if line.strip()):
        return data
    first = next(n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"#"))
    last = max(n for n in range(first) if lines[n].strip())
    found = [b"" if line.lstrip().startswith(b"#") else line for line in lines]
    names = re.split(r"[,;|\s]+", lines[last].decode("utf-8", "replace").strip("# \t"))
    if len(names) > 1 and sum(normalize_name(name) in _KNOWN_NAMES | _ALSO_VALUES for name in names) > 1:
        found[last] = lines[last].lstrip().lstrip(b"# \t")
    return b"\n".join(found)


def without_titles(body: bytes) -> bytes:
    """Return text without lines of a title above its header: lines without the delimiter that all others have."""
    lines = body[:_HEAD_BYTES].decode("utf-8", "replace").split("\n")[:_HEAD_LINES]
    first = next((n for n, line in enumerate(lines) if any(sign in line for sign in DELIMITERS)), 0)
    rest = [line for line in lines[first:] if line.strip()]
    if not 0 < first <= _MAX_TITLES or len(rest) < _MIN_LINES or '"' in "".join(lines[:first]):
        return body
    # Not a list of single names with a comma somewhere: every line has the same number of fields.
    if not any(len({line.count(sign) for line in rest}) == 1 and sign in rest[0] for sign in DELIMITERS):
        return body
    return body.split(b"\n", first)[first]


def title_notes(lines: int) -> tuple[str, ...]:
    """Return the remark that lines above the header were left out, if there are any."""
    if not lines:
        return ()
    above = "The line above the header was" if lines == 1 else f"The {lines} lines above the header were"
    return (f"{above} taken for a title. If there is none, pass header=False.",)


def find_delimiter(body: bytes, prefer: str) -> tuple[bytes, str]:
    """Return the text and its delimiter; text that is separated by spaces or in several ways gets tabs."""
    lines = _head_lines(body)
    if len(counts := {line.count("::") for line in lines}) == 1 and min(counts) > 1:
        return body.replace(b"::", b"\t"), "\t"
    if all(_ORDER in line and not any(sign in line for sign in DELIMITERS) for line in lines):
        named = all(_BEFORE_ORDER.match(line.encode()) for line in lines)
        return (_BEFORE_ORDER.sub(rb"\1\t", body), "\t") if named else (body, prefer)
    if len(lines) > 1 and all(_MET.fullmatch(line.encode()) and not set(line) & {*DELIMITERS} for line in lines):
        return _MET.sub(rb"\1\t\2\t\3", body), "\t"
    outside_quotes = re.sub(r'"[^"]*"', "", lines[0])
    best = max(prefer + DELIMITERS, key=outside_quotes.count)
    if b'"' in body[:_HEAD_BYTES]:
        return body, best
    if best not in lines[0]:
        counts = {len(line.split()) for line in lines}
        by_space = len(lines) > 1 and len(counts) == 1 and min(counts) > 1
        return (_with_tabs(body, rb"[ \t]+"), "\t") if by_space else (body, best)
    # Decimal commas, or several answers in one cell: another sign separates fields.
    if best == "," and not _names_columns(lines[0].split(",")):
        other = next((sign for sign in ";|\t" if _count_fields(lines, sign) > 1), best)
        if other != best:
            return body, other
    if _count_fields(lines, best) == 0:
        for sign in DELIMITERS:
            if _count_fields(lines, sign) > 1:
                return body, sign
        for mixed in (r"[ \t]*[,;|\t][ \t]*", r"[ \t]*[,;|\t ][ \t]*"):
            if len(counts := {len(re.split(mixed, line.strip())) for line in lines}) == 1 and min(counts) > 1:
                return _with_tabs(body, mixed.encode()), "\t"
    return body, best


def _head_lines(body: bytes) -> list[str]:
    lines = body[:_HEAD_BYTES].decode("utf-8", "replace").split("\n")
    complete = lines if len(body) <= _HEAD_BYTES or len(lines) == 1 else lines[:-1]
    return [line for line in complete if line.strip()][:_HEAD_LINES] or [""]


def _count_fields(lines: Sequence[str], sign: str) -> int:
    """Return the number of fields of every line; 0 if most lines differ from the first."""
    counts = [line.rstrip().count(sign) + 1 for line in lines]
    same = sum(count == counts[0] for count in counts)
    if counts[0] == 1:
        return 1 if same == len(counts) else 0
    return counts[0] if same > _MOST_LINES * len(counts) or len(counts) < 3 else 0


def _with_tabs(body: bytes, pattern: bytes) -> bytes:
    return re.sub(pattern, b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", body))


def _names_columns(fields: Sequence[str]) -> bool:
    return any(normalize_name(field) in _KNOWN_NAMES for field in fields)


def has_header(body: bytes, delimiter: str) -> bool:
    """Return whether the first line names the columns.

    It does not if none of its fields is a known name and one of them is a number above numbers, or is repeated in its
    column: names of columns are not.
    """
    csv.field_size_limit(max(csv.field_size_limit(), (1 << 31) - 1))
    try:
        rows = [row for row in csv.reader(_head_lines(body), delimiter=delimiter) if row]
    except csv.Error:
        return True
    if len(rows) < 2 or len(rows[0]) < 2 or all(_ORDER in row[-1] for row in rows):
        return len(rows) < 2 or not all(">" in row[-1] for row in rows)  # lines such as a>b>c
    # The header may be there again, where files were put below each other.
    below = [row for row in rows[1:] if row != rows[0]]
    columns = [[row[n].strip() for row in below if n < len(row) and row[n].strip()] for n in range(len(rows[0]))]
    first = [field.strip() for field in rows[0]]
    pairs = list(zip(first, columns, strict=True))
    if any(normalize_name(field) in _KNOWN_NAMES and field not in cells for field, cells in pairs):
        return True
    if below != rows[1:]:  # a line of data that is there twice
        return False
    return not any(_is_value(field, cells) for field, cells in pairs)


def _is_value(field: str, cells: Sequence[str]) -> bool:
    """Return whether a field of the first line looks like the cells below it."""
    if not field or not cells:
        return False
    for pattern in (_NUMBER, _SCORE, _ANSWERS):
        if pattern.fullmatch(field):
            return all(pattern.fullmatch(cell) for cell in cells)
    return field in cells


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
    frame = table.load(columns, None)
    first = frame.select(pl.nth(0).str.strip_chars()).to_series()
    blank, again = _blank(frame, first), _repeats_header(frame, first, text)
    if found := int(np.count_nonzero(again)):
        notes = (*notes, f"{found:,} {'line repeats' if found == 1 else 'lines repeat'} the header; left out.")
    return replace(
        table,
        repeated_names=repeated_names,
        strip_spaces=True,
        has_header=text.has_header,
        blank_rows=blank | again,
        notes=(*notes, *title_notes(text.titles)),
    )


def _repeats_header(frame: pl.DataFrame, first: pl.Series, text: _Text) -> BoolArray:
    """Return which rows are the header again, as where files were put below each other.

    `first` is the first column without spaces around its cells. The others are compared only if it repeats its name.
    """
    names = text.header()
    if not text.has_header or sum(map(bool, names)) < 2 or not (first.fill_null("") == names[0]).any():
        return np.zeros(frame.height, bool)
    same = (pl.nth(n).fill_null("").str.strip_chars() == name for n, name in enumerate(names))
    return frame.select(pl.all_horizontal(same)).to_series().to_numpy()


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
    if b"--" in data:  # the search takes longer than reading all else
        data = _RULE.sub(b"", data)
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


def _blank(frame: pl.DataFrame, first: pl.Series) -> BoolArray:
    """Return which rows are empty lines, or lines of spaces. `first` is the first column without spaces around it."""
    empty = (first == "").fill_null(True)
    if not empty.any():
        return np.zeros(frame.height, bool)
    rest = [pl.nth(n).is_null() for n in range(1, frame.width)]
    return frame.select(pl.all_horizontal(empty, *rest)).to_series().to_numpy()


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
