"""Open a source: a path, a data frame or a dict of columns."""

from __future__ import annotations

import codecs
import glob
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.delimited import read_delimited
from crowdrank.io.json_records import first_records, read_json
from crowdrank.io.source_table import SourceTable, dedupe_names, read_columns, read_frame
from crowdrank.io.synonyms import normalize_name

Result = TypeVar("Result")

_DECODING_CHUNK = 1 << 24
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_TEXT_READERS: dict[str, Callable[[bytes, str], SourceTable]] = {
    ".csv": read_delimited,
    ".tsv": lambda data, name: read_delimited(data, name, "\t"),
    ".tab": lambda data, name: read_delimited(data, name, "\t"),
    ".txt": lambda data, name: read_delimited(data, name, "\t"),
    "": read_delimited,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".json": read_json,
}
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
PARQUET_SUFFIXES = (".parquet", ".pq")
_BINARY_SUFFIXES = [
    ".xlsx",
    ".xls",
    ".ods",
    ".zip",
    ".pdf",
    ".pkl",
    ".npy",
    ".npz",
    ".mat",
    ".feather",
    ".arrow",
    ".db",
]  # never read as text
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
        return tuple(first_records(self.text[:_RECORD_BYTES], _HEAD_RECORDS)) if self.json else ()

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
    return open_source(source, encoding).table


def open_source(source: Any, encoding: str | None = None) -> Source:
    if isinstance(source, str | PathLike):
        return _open_path(Path(source), encoding)
    if isinstance(source, Mapping):
        return Source("the columns", lambda: read_columns(source))
    return Source("the data frame", lambda: read_frame(source))


def needs_scan(source: str | PathLike[str]) -> bool:
    """Return whether a source is a folder or a pattern of names, which only `scan` can read."""
    return Path(source).is_dir() or (glob.has_magic(str(source)) and not Path(source).exists())


def _open_path(path: Path, encoding: str | None) -> Source:
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(path)[:100]!r} is not a valid path ({error}).") from error
    if not exists:
        raise FormatError(f"{path}: there is no such file.")
    if is_folder:
        raise FormatError(f"{path}: is a folder, not a file.", remedy="Use crowdrank.scan for folders of files.")
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return Source(path.name, lambda: _read_parquet(path), path=path)
    if suffix in _BINARY_SUFFIXES:
        _refuse_suffix(path, suffix)
    text = as_utf8(read_bytes(path), path.name, encoding)
    is_table = suffix in _TEXT_READERS
    parse = partial(_TEXT_READERS[suffix], text, path.name) if is_table else partial(_refuse_suffix, path, suffix)
    return Source(path.name, parse, text, suffix in _JSON_SUFFIXES, is_table, path)


def _refuse_suffix(path: Path, suffix: str) -> NoReturn:
    known = ", ".join(s for s in (*_TEXT_READERS, *PARQUET_SUFFIXES) if s)
    raise FormatError(
        f"{path.name}: files with the suffix {suffix!r} cannot be read, and no format recognises this one.",
        remedy=f"Convert it to one of {known} (text may be compressed: .csv.gz).",
    )


def read_bytes(path: Path) -> bytes:
    """Read a file, decompressed if its name ends in .gz."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({(error.strerror or str(error)).lower()}).") from error
    if path.suffix.lower() != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path.name}: is not a complete gzip file ({error}).") from error


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


def _read_parquet(path: Path) -> SourceTable:
    """Open a Parquet file; only the columns that are loaded are read."""
    frame = _guard_read(path, lambda: pl.scan_parquet(path))
    schema = _guard_read(path, frame.collect_schema)
    rows: int = _guard_read(path, lambda: frame.select(pl.len()).collect().item())
    columns, repeated_names = dedupe_names([name.strip() for name in schema.names()])
    stored = dict(zip(columns, schema.names(), strict=True))

    def load(names: Sequence[str], most: int | None) -> pl.DataFrame:
        # By number, because polars reads a name such as "^left$" as a pattern.
        wanted = frame.select(pl.nth(columns.index(name)) for name in names)
        found = _guard_read(path, (wanted if most is None else wanted.head(most)).collect)
        return pl.DataFrame({name: found.get_column(stored[name]) for name in names})

    return SourceTable(name=path.name, columns=columns, load=load, rows=rows, repeated_names=repeated_names)


def _guard_read(path: Path, read: Callable[[], Result]) -> Result:
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{path.name}: cannot be read as Parquet ({reason}).") from error
