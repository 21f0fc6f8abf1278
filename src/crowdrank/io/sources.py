"""Open a source: a path, a data frame or a dict of columns."""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import io
import lzma
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, TextIO, TypeVar

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.column_roles import normalize_name
from crowdrank.io.delimited import read_delimited
from crowdrank.io.source_table import (
    SourceTable,
    combine_tables,
    dedupe_names,
    read_columns,
    read_frame,
    table_from_frame,
)

# Where the bytes of a source are: files, folders, patterns of names, compressed files, archives, standard input.

STANDARD_INPUT = "-"
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather")
# Suffixes of data in folders and archives. Only files of the first suffix that occurs are read.
_DATA_SUFFIXES = (
    *PARQUET_SUFFIXES,
    *ARROW_SUFFIXES,
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    ".tab",
    ".json",
    ".txt",
    ".xlsx",
)
# Files that describe a data set and hold no rows of it.
_DESCRIPTIONS = re.compile(r"(readme|license|licence|dataset_infos?|dataset_dict|state|metadata|\.|_).*", re.IGNORECASE)
_URL = re.compile(r"(https?|ftp|s3|gs|hf):/", re.IGNORECASE)
# Larger folders are streamed from disk.
MAX_FOLDER_BYTES = 500_000_000


@dataclass(frozen=True)
class Container:
    """The bytes of one file.

    Parameters
    ----------
    name : str
        The name in messages.
    suffix : str
        The suffix of its content, without that of a compression.
    read : callable
        Reads the bytes, decompressed.
    path : Path, optional
        The file, if its bytes are not changed on the way.
    """

    name: str
    suffix: str
    read: Callable[[], bytes]
    path: Path | None = None


def find_containers(source: str | PathLike[str]) -> list[Container]:
    """Return the files of a path, a folder, a pattern of names, an archive, or standard input."""
    text = str(source)
    if text == STANDARD_INPUT:
        return _from_bytes("standard input", _read_stream(sys.stdin))
    if _URL.match(text):
        address = re.sub(":/+", "://", text, count=1)  # a Path holds one slash only
        raise FormatError(f"{address}: URLs are not read.", remedy="Download the file, then pass its path.")
    if is_folder_or_pattern(source):
        return [found for path in find_files(text) for found in _open_file(path)]
    return _open_file(Path(source))


@lru_cache(maxsize=1)
def _read_stream(stream: TextIO) -> bytes:
    """Read standard input, which gives its content once; some commands look at their source twice."""
    return stream.buffer.read()


def is_folder_or_pattern(source: str | PathLike[str]) -> bool:
    path = Path(source)
    try:
        return path.is_dir() or (glob.has_magic(str(source)) and not path.exists())
    except (OSError, ValueError):
        return False


def find_files(source: str) -> list[Path]:
    """Return the data files of a folder or a pattern, sorted by name; of a folder, those of one suffix."""
    if not Path(source).is_dir():
        files = sorted(path for path in map(Path, glob.glob(source, recursive=True)) if path.is_file())
        if not files:
            raise FormatError(f"{source}: no file has such a name.")
        return files
    found = sorted(path for path in Path(source).rglob("*") if path.is_file())
    chosen = _data_files([path.relative_to(source).as_posix() for path in found])
    if not chosen:
        raise FormatError(f"{source}: is a folder without data files ({', '.join(_DATA_SUFFIXES)}).")
    return [Path(source) / name for name in chosen]


def needs_scan(source: str | PathLike[str]) -> bool:
    """Return whether a source is a folder or a pattern of Parquet or CSV files too large to be read into memory."""
    if not is_folder_or_pattern(source):
        return False
    files = find_files(str(source))
    scannable = all(content_suffix(path.name) in (*PARQUET_SUFFIXES, ".csv", ".tsv", ".tab") for path in files)
    return scannable and sum(path.stat().st_size for path in files) > MAX_FOLDER_BYTES


def content_suffix(name: str) -> str:
    """Return the suffix of the content: .csv for votes.csv.gz."""
    path = PurePosixPath(name)
    return (PurePosixPath(path.stem) if path.suffix.lower() in COMPRESSED_SUFFIXES else path).suffix.lower()


def _data_files(names: Sequence[str]) -> list[str]:
    data = [n for n in names if not any(_DESCRIPTIONS.fullmatch(part) for part in PurePosixPath(n).parts)]
    for suffix in _DATA_SUFFIXES:
        if chosen := [name for name in data if content_suffix(name) == suffix]:
            return chosen
    return []


def _open_file(path: Path) -> list[Container]:
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(path)[:100]!r} is not a valid path ({error}).") from error
    if not exists:
        raise FormatError(f"{path}: there is no such file.", remedy=_nearest_file(path))
    suffix = content_suffix(path.name)
    if suffix == ".zip":
        return _from_archive(path.name, read_file(path))
    plain = path.suffix.lower() not in COMPRESSED_SUFFIXES
    return [Container(path.name, suffix, lambda: decompress(read_file(path), path.name), path if plain else None)]


def _nearest_file(path: Path) -> str:
    """Return the question whether a file of a similar name in the same folder is meant."""
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    nearest = get_close_matches(path.name, names, n=1)
    return f"Did you mean {str(path.parent / nearest[0])!r}?" if nearest else ""


def _from_bytes(name: str, data: bytes) -> list[Container]:
    """Return the file that bytes without a name are, by their first bytes."""
    data = decompress(data, name)
    if data.startswith(b"PK\x03\x04"):
        if b"xl/workbook.xml" in data:
            return [Container(name, ".xlsx", lambda: data)]
        return _from_archive(name, data)
    start = data.lstrip()[:1]
    suffix = ".parquet" if data.startswith(b"PAR1") else ".json" if start and start in b"[{" else ""
    return [Container(name, suffix, lambda: data)]


BROKEN_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,  # encrypted, or compressed in a way that is not implemented
    EOFError,
    KeyError,
    ValueError,  # offsets before the beginning of the file
    OSError,
)
"""What Python raises for zip files that are cut or changed."""


def _from_archive(name: str, data: bytes) -> list[Container]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [member for member in archive.namelist() if not member.endswith("/")]
    except BROKEN_ARCHIVE as error:
        raise FormatError(f"{name}: is not a complete zip file ({error}).") from error
    chosen = _data_files(members)
    if not chosen:
        raise FormatError(f"{name}: contains no data file ({', '.join(_DATA_SUFFIXES)}).")

    def read(member: str) -> bytes:
        try:
            return decompress(archive.read(member), member)
        except BROKEN_ARCHIVE as error:
            raise FormatError(f"{name}: {member} cannot be extracted ({error}).") from error

    return [
        Container(f"{name}/{PurePosixPath(member).name}", content_suffix(member), lambda member=member: read(member))  # type: ignore[misc]
        for member in chosen
    ]


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({(error.strerror or str(error)).lower()}).") from error


def decompress(data: bytes, name: str) -> bytes:
    """Decompress data by their first bytes, whatever the file is called."""
    for magic, (program, unpack) in _COMPRESSIONS.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pl.exceptions.PolarsError) as error:
                reason = str(error).strip().split("\n", 1)[0]
                raise FormatError(f"{name}: is not a complete {program} file ({reason}).") from error
    if name.lower().endswith(COMPRESSED_SUFFIXES):
        raise FormatError(f"{name}: is not a complete {name.rpartition('.')[2]} file (its first bytes are others).")
    return data


def _unpack_zstd(data: bytes) -> bytes:
    # Python reads Zstandard from version 3.14 on, and polars always does: line by line, without interpreting quotes.
    lines = pl.read_csv(data, has_header=False, separator="\x01", quote_char=None, infer_schema=False)
    return "\n".join(line or "" for line in lines.to_series()).encode()


_COMPRESSIONS: dict[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress),
    b"\x28\xb5\x2f\xfd": ("zstd", _unpack_zstd),
}


Result = TypeVar("Result")

_DECODING_CHUNK = 1 << 24
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The delimiter that is expected of text, by suffix.
_DELIMITED_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".dat": "\t", "": ","}
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
# Text with another suffix is JSON if it begins so, and delimited if not.
_JSON_STARTS = (b"[{", b'{"', b"[\n", b"{\n")
_WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")
# Never read as text.
_BINARY_SUFFIXES = (".xls", ".ods", ".pdf", ".pkl", ".npy", ".npz", ".mat", ".db", ".7z", ".rar", ".tar", ".tgz")
_DOCUMENT_SUFFIXES = (".html", ".htm", ".xml", ".svg", ".py", ".ipynb", ".r", ".rdata", ".rds", ".doc", ".docx", ".rtf")
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
    path : Path, optional
        The file.
    """

    name: str
    parse: Callable[[], SourceTable]
    text: bytes = b""
    json: bool = False
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
        _refuse_repeated_files(source)
        return [opened for path in source for opened in open_sources(path, encoding, header)]
    if isinstance(source, str | PathLike):
        return [_open_container(found, encoding, header) for found in find_containers(source)]
    if isinstance(source, Mapping):
        return [Source("the columns", lambda: read_columns(source))]
    return [Source("the data frame", lambda: read_frame(source))]


def _refuse_repeated_files(paths: Sequence[str | PathLike[str]]) -> None:
    """Raise an error if one file is named twice, as by two patterns that overlap: its judgments would count twice."""
    seen = set[Path]()
    for text in map(str, paths):
        if text == STANDARD_INPUT or _URL.match(text):
            continue
        for path in find_files(text) if is_folder_or_pattern(text) else [Path(text)]:
            if (real := path.absolute()) in seen:
                raise FormatError(f"{path}: is named twice.", remedy="Name each file once.")
            seen.add(real)


def _open_container(found: Container, encoding: str | None, header: bool | None) -> Source:
    name, suffix = found.name, found.suffix
    if suffix in PARQUET_SUFFIXES:
        return Source(name, lambda: _read_parquet(found.path or found.read(), name), path=found.path)
    if suffix in ARROW_SUFFIXES:
        return Source(name, lambda: _read_arrow(found.read(), name), path=found.path)
    if suffix in _WORKBOOK_SUFFIXES:
        from crowdrank.io.spreadsheets import read_workbook

        return Source(name, lambda: read_workbook(found.read(), name, header), path=found.path)
    if suffix in (*_BINARY_SUFFIXES, *_DOCUMENT_SUFFIXES):
        _refuse_suffix(name, suffix)
    text = as_utf8(found.read(), name, encoding)
    if suffix in _JSON_SUFFIXES or (suffix not in _DELIMITED_SUFFIXES and text.lstrip()[:2] in _JSON_STARTS):
        from crowdrank.io.json_records import read_json, unwrap_records

        text = unwrap_records(text)
        return Source(name, lambda: read_json(text, name), text, json=True, path=found.path)
    prefer = _DELIMITED_SUFFIXES.get(suffix, ",")
    return Source(name, lambda: read_delimited(text, name, prefer, header), text, path=found.path)


def _refuse_suffix(name: str, suffix: str) -> NoReturn:
    raise FormatError(
        f"{name}: files with the suffix {suffix!r} cannot be read.",
        remedy=f"Convert it to one of {_known_suffixes()} (text may be compressed: .csv.gz).",
    )


def _known_suffixes() -> str:
    known = (*_DELIMITED_SUFFIXES, *_JSON_SUFFIXES, *PARQUET_SUFFIXES, *_WORKBOOK_SUFFIXES)
    return ", ".join(filter(None, known))


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


def _looks_like_utf16(data: bytes) -> bool:
    """Return whether the second byte of most pairs is NUL, as in Latin text of UTF-16 (little-endian)."""
    return 2 * data[1::2].count(0) > len(data[1::2]) and data[::2].count(0) <= len(data) // 100


def _check_utf8(data: bytes, name: str, chunk: int = _DECODING_CHUNK) -> None:
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        problem = f"{name}: line {line} contains a NUL byte, so this is not plain text."
        if not _looks_like_utf16(data[:_HEAD_BYTES]):
            raise FormatError(problem, remedy=f"Export it from its program as one of {_known_suffixes()}.")
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
