"""Open a source: a path, a data frame or a dict of columns."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.containers import ARROW_SUFFIXES, PARQUET_SUFFIXES, Container, find_containers
from crowdrank.io.delimited import read_delimited
from crowdrank.io.source_table import (
    SourceTable,
    combine_tables,
    dedupe_names,
    read_columns,
    read_frame,
    table_from_frame,
)
from crowdrank.io.synonyms import normalize_name

Result = TypeVar("Result")

_DECODING_CHUNK = 1 << 24
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The delimiter that is expected of text, by suffix.
_DELIMITED_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".dat": "\t", "": ","}
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")
# Never read as text.
_BINARY_SUFFIXES = (".xls", ".ods", ".pdf", ".pkl", ".npy", ".npz", ".mat", ".db", ".7z", ".rar", ".tar", ".tgz")
# Bytes and lines that detection looks at: enough for the first lines, or the first records, of any file.
_HEAD_BYTES, _RECORD_BYTES = 1 << 16, 1 << 22
_HEAD_LINES, _HEAD_RECORDS = 50, 20


@dataclass(frozen=True, eq=False)
class Source:
    """A source whose format is not known yet.

    Parameters
    ----------
    name : str
        The name in messages.
    parse : callable
        Parses the source as a table with named columns.
    text : bytes
        The whole text of a text file, as UTF-8; empty for data frames and Parquet.
    json : bool
        Whether the name of the file says that it is JSON.
    tabular : bool
        Whether the source has named columns. False for text with an unknown suffix, which some format may know.
    path : Path, optional
        The file.
    """

    name: str
    parse: Callable[[], SourceTable]
    text: bytes = b""
    json: bool = False
    tabular: bool = True
    path: Path | None = None

    @cached_property
    def table(self) -> SourceTable:
        """The source as a table with named columns."""
        return self.parse()

    @cached_property
    def head(self) -> tuple[str, ...]:
        """The first lines of a text that are not blank."""
        lines = self.text[:_HEAD_BYTES].decode("utf-8", "replace").split("\n")
        complete = lines if len(self.text) <= _HEAD_BYTES or len(lines) == 1 else lines[:-1]
        return tuple(line for line in complete if line.strip())[:_HEAD_LINES]

    @cached_property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The first objects of a JSON file."""
        if not self.json:
            return ()
        from crowdrank.io.json_records import first_records

        return tuple(first_records(self.text[:_RECORD_BYTES], _HEAD_RECORDS))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table; for JSON the keys of the first objects, which is faster."""
        if not self.tabular:
            return ()
        return tuple(dict.fromkeys(key for record in self.records for key in record)) or self.table.columns

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns without case and punctuation."""
        return frozenset(normalize_name(column) for column in self.columns)


def open_table(source: Any, encoding: str | None = None) -> SourceTable:
    """Open a source that has one table."""
    return combine_tables([opened.table for opened in open_sources(source, encoding)])


def open_sources(source: Any, encoding: str | None = None, header: bool | None = None) -> list[Source]:
    """Open a path, several paths, a data frame or a dict of columns; a folder, a pattern or an archive is several."""
    if isinstance(source, list | tuple) and source and all(isinstance(s, str | PathLike) for s in source):
        return [opened for path in source for opened in open_sources(path, encoding, header)]
    if isinstance(source, str | PathLike):
        return [_open_container(found, encoding, header) for found in find_containers(source)]
    if isinstance(source, Mapping):
        return [Source("the columns", lambda: read_columns(source))]
    return [Source("the data frame", lambda: read_frame(source))]


def _open_container(found: Container, encoding: str | None, header: bool | None) -> Source:
    name, suffix = found.name, found.suffix
    if suffix in PARQUET_SUFFIXES:
        return Source(name, lambda: _read_parquet(found.path or found.read(), name), path=found.path)
    if suffix in ARROW_SUFFIXES:
        return Source(name, lambda: _read_arrow(found.read(), name), path=found.path)
    if suffix in _WORKBOOK_SUFFIXES:
        from crowdrank.io.spreadsheets import read_workbook

        return Source(name, lambda: read_workbook(found.read(), name, header), path=found.path)
    if suffix in _BINARY_SUFFIXES:
        _refuse_suffix(name, suffix)
    text = as_utf8(found.read(), name, encoding)
    if suffix in _JSON_SUFFIXES:
        from crowdrank.io.json_records import read_json, unwrap_records

        text = unwrap_records(text)
        return Source(name, lambda: read_json(text, name), text, json=True, path=found.path)
    if suffix in _DELIMITED_SUFFIXES:
        prefer = _DELIMITED_SUFFIXES[suffix]
        return Source(name, lambda: read_delimited(text, name, prefer, header), text, path=found.path)
    return Source(name, lambda: _refuse_suffix(name, suffix), text, tabular=False, path=found.path)


def _refuse_suffix(name: str, suffix: str) -> NoReturn:
    known = (*_DELIMITED_SUFFIXES, *_JSON_SUFFIXES, *PARQUET_SUFFIXES, *_WORKBOOK_SUFFIXES)
    raise FormatError(
        f"{name}: files with the suffix {suffix!r} cannot be read, and no format recognises this one.",
        remedy=f"Convert it to one of {', '.join(filter(None, known))} (text may be compressed: .csv.gz).",
    )


def as_utf8(data: bytes, name: str, encoding: str | None = None) -> bytes:
    """Convert text to UTF-8 without a byte order mark, with lines that end in \\n."""
    if encoding is not None:
        data = _decode(data, name, encoding)
    else:
        bom, found = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", "utf-8"))
        data = data[len(bom) :] if bom else data
        if found != "utf-8":
            data = _decode(data, name, found)
    _check_utf8(data, name)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _decode(data: bytes, name: str, encoding: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode("utf-8")
    except LookupError as error:
        raise FormatError(f"{name}: unknown encoding {encoding!r}.", remedy="Try utf-8, utf-16 or latin-1.") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{name}: line {line} is not {encoding} text (byte 0x{data[error.start]:02x}).") from error
    except (UnicodeError, ValueError) as error:
        raise FormatError(f"{name}: cannot be read as {encoding}: {error}.") from error


def _encoding_error(problem: str, cause: str, encoding: str) -> FormatError:
    return FormatError(problem, remedy=f"{cause}, pass encoding={encoding!r}.", option="encoding", value=encoding)


def _check_utf8(data: bytes, name: str, chunk: int = _DECODING_CHUNK) -> None:
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        problem = f"{name}: line {line} contains a NUL byte, so this is not plain text."
        raise _encoding_error(problem, "If it is UTF-16 (little-endian) text", "utf-16-le")
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), chunk):
        # Bytes that the decoder holds back from the chunk before count towards the position of an error.
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + chunk], final=start + chunk >= len(data))
        except UnicodeDecodeError as error:
            position = start - held + error.start
            line = data.count(b"\n", 0, position) + 1
            problem = f"{name}: line {line} is not UTF-8 text (byte 0x{data[position]:02x})."
            raise _encoding_error(problem, "If it comes from an older program", "latin-1") from error


def _read_arrow(data: bytes, name: str) -> SourceTable:
    """Read Arrow's file or stream format, in which Hugging Face data sets are saved."""
    read = pl.read_ipc if data.startswith(b"ARROW1") else pl.read_ipc_stream
    frame = _guard_read(name, lambda: read(io.BytesIO(data)), "Arrow")
    columns, repeated_names = dedupe_names([column.strip() for column in frame.columns])
    frame.columns = list(columns)
    return replace(table_from_frame(frame, name), repeated_names=repeated_names)


def _read_parquet(source: Path | bytes, name: str) -> SourceTable:
    """Open a Parquet file; only the columns that are loaded are read."""
    frame = _guard_read(name, lambda: pl.scan_parquet(source))
    schema = _guard_read(name, frame.collect_schema)
    rows: int = _guard_read(name, lambda: frame.select(pl.len()).collect().item())
    columns, repeated_names = dedupe_names([name.strip() for name in schema.names()])
    stored = dict(zip(columns, schema.names(), strict=True))

    def load(names: Sequence[str], most: int | None) -> pl.DataFrame:
        # By number, because polars reads a name such as "^left$" as a pattern.
        wanted = frame.select(pl.nth(columns.index(name)) for name in names)
        found = _guard_read(name, (wanted if most is None else wanted.head(most)).collect)
        return pl.DataFrame({name: found.get_column(stored[name]) for name in names})

    return SourceTable(name=name, columns=columns, load=load, rows=rows, repeated_names=repeated_names)


def _guard_read(name: str, read: Callable[[], Result], kind: str = "Parquet") -> Result:
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{name}: cannot be read as {kind} ({reason}).") from error
