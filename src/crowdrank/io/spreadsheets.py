"""Read a sheet of an Excel workbook (.xlsx), which is a zip file of XML, with the standard library."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from xml.etree import ElementTree

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.delimited import title_notes
from crowdrank.io.source_table import RowLocation, SourceTable, dedupe_names, table_from_frame

_SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_WORKBOOK, _RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
# The number and the cells of each row.
_SheetRows = list[tuple[int, list[str | None]]]
# Built-in number formats that show dates.
_DATE_FORMATS = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
# Quoted text and conditions of a number format.
_NOT_SHOWN = re.compile(r'"[^"]*"|\[[^\]]*\]')
_EPOCH = datetime(1899, 12, 30)
_MAX_COLUMNS = 16_384
_UNREADABLE = (
    zipfile.BadZipFile,
    ElementTree.ParseError,
    zlib.error,
    ValueError,
    LookupError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)


def read_workbook(data: bytes, name: str, header: bool | None = None) -> SourceTable:
    """Read the first sheet that holds a table, as a table of strings."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sheets = _sheets(archive)
            if not sheets:
                raise FormatError(f"{name}: is not an Excel workbook.")
            texts, dates = _shared_texts(archive), _date_styles(archive)
            contents = ((sheet, list(_rows(archive.read(path), texts, dates))) for sheet, path in sheets.items())
            chosen, rows = _first_table(contents)
    except FormatError:
        raise
    except _UNREADABLE as error:
        raise FormatError(f"{name}: is not a complete Excel workbook ({error}).") from error
    others = ", ".join(repr(sheet) for sheet in sheets if sheet != chosen)
    notes = (f"Only the sheet {chosen!r} was read, not {others}.",) if others else ()
    return _table(rows, name, notes, header)


def _sheets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the file of each sheet by the name of the sheet, in the order of the workbook."""
    files = set(archive.namelist())
    matches = sorted(filter(None, map(_SHEET.fullmatch, files)), key=lambda found: int(found[1]))
    numbered = {f"sheet {found[1]}": found[0] for found in matches}
    if not {_WORKBOOK, _RELATIONS} <= files:
        return numbered
    links = {
        link.attrib.get("Id"): posixpath.join("/xl", link.attrib.get("Target", "")).lstrip("/")
        for link in ElementTree.fromstring(archive.read(_RELATIONS))
    }
    named = {}
    for sheet in ElementTree.fromstring(archive.read(_WORKBOOK)).iter():
        if _local(sheet) == "sheet":
            link = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), None)
            named[sheet.attrib.get("name", "")] = links.get(link, "")
    return {name: path for name, path in named.items() if path in numbered.values()} or numbered


def _first_table(sheets: Iterable[tuple[str, _SheetRows]]) -> tuple[str, _SheetRows]:
    """Return the first sheet with two rows of two cells or more, else the first one."""
    read = []
    for sheet, rows in sheets:
        read.append((sheet, rows))
        if sum(sum(cell is not None for cell in cells) > 1 for _, cells in rows) > 1:
            return sheet, rows
    return read[0]


def _table(rows: _SheetRows, name: str, notes: tuple[str, ...], header: bool | None) -> SourceTable:
    rows = [(number, cells) for number, cells in rows if any(cells)]
    if not rows:
        raise FormatError(f"{name}: is empty.")
    titles = _count_titles([cells for _, cells in rows]) if header is None else 0
    rows = rows[titles:]
    width = max(len(cells) for _, cells in rows)
    named = header is not False
    first = [cell or "" for cell in rows[0][1]] + [""] * (width - len(rows[0][1]))
    columns, repeated = dedupe_names([c.strip() for c in first] if named else [str(n + 1) for n in range(width)])
    body = rows[1:] if named else rows
    cells = [[row[n] if n < len(row) else None for _, row in body] for n in range(width)]
    frame = pl.DataFrame({c: pl.Series(values, dtype=pl.String) for c, values in zip(columns, cells, strict=True)})
    return replace(
        table_from_frame(frame, name),
        repeated_names=repeated,
        strip_spaces=True,
        has_header=named,
        locate=lambda wanted: [RowLocation(body[row][0]) for row in wanted],
        notes=(*notes, *title_notes(titles)),
    )


def _count_titles(rows: list[list[str | None]]) -> int:
    """Return how many rows stand above the header: titles fill one cell, and tables have at least two columns."""
    filled = [sum(cell is not None for cell in cells) for cells in rows]
    titles = next((n for n, count in enumerate(filled) if count > 1), 0)
    return titles if len(rows) > titles + 1 else 0


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element) -> str:
    """Return the text of a string, without the phonetic readings beside it."""
    return "".join(
        part.text or ""
        for child in element
        if _local(child) in ("t", "r")
        for part in ([child] if _local(child) == "t" else child)
        if _local(part) == "t"
    )


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    root = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
    return [_text(entry) for entry in root if _local(entry) == "si"]


def _date_styles(archive: zipfile.ZipFile) -> set[int]:
    """Return the styles of cells that show a number as a date."""
    if "xl/styles.xml" not in archive.namelist():
        return set()
    root = ElementTree.fromstring(archive.read("xl/styles.xml"))
    own = {
        int(e.attrib["numFmtId"])
        for e in root.iter()
        if _local(e) == "numFmt" and re.search("[yd]", _NOT_SHOWN.sub("", e.attrib.get("formatCode", "")))
    }
    formats = [e for group in root if _local(group) == "cellXfs" for e in group]
    return {n for n, e in enumerate(formats) if int(e.attrib.get("numFmtId", 0)) in _DATE_FORMATS | own}


def _rows(data: bytes, texts: list[str], dates: set[int]) -> Iterator[tuple[int, list[str | None]]]:
    number = 0
    for row in ElementTree.fromstring(data).iter():
        if _local(row) != "row":
            continue
        number = int(row.attrib.get("r", number + 1))
        cells: list[str | None] = []
        for cell in row:
            place = _column_number(cell.attrib.get("r", ""), len(cells))
            cells += [None] * (place - len(cells))
            cells.append(_value(cell, texts, dates))
        yield number, cells


def _column_number(reference: str, default: int) -> int:
    """Return the column of a reference such as AB12, counted from 0."""
    letters = re.match(r"[A-Z]{1,3}", reference)
    if letters is None:
        return default
    number = 0
    for letter in letters[0]:
        number = 26 * number + ord(letter) - 64
    return max(default, min(number, _MAX_COLUMNS) - 1)


def _value(cell: ElementTree.Element, texts: list[str], dates: set[int]) -> str | None:
    kind = cell.attrib.get("t", "n")
    if kind == "inlineStr":
        return next((_text(child) for child in cell if _local(child) == "is"), None)
    text = next((child.text for child in cell if _local(child) == "v"), None)
    if text is None or kind == "e":
        return None
    if kind == "s":
        return texts[int(text)]
    if kind == "b":
        return "true" if text == "1" else "false"
    if kind == "n" and int(cell.attrib.get("s", 0)) in dates:
        days = float(text)
        return (_EPOCH + timedelta(days=days)).isoformat() if abs(days) < 2_900_000 else text
    # 3.0 and 1E2 are whole numbers to the person who typed them.
    return str(int(float(text))) if kind == "n" and re.search("[.eE]", text) and float(text).is_integer() else text
