"""From the bytes of a text file to UTF-8, or a plain word about why not.

Whatever holds judgments, as a table: a path, a data frame, a dict of columns.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.column_roles import plain
from crowdrank.io.delimited import read_delimited
from crowdrank.io.frames import read_columns, read_frame
from crowdrank.io.json_records import first_records, read_json
from crowdrank.io.tables import Table, told_apart

_CHUNK = 1 << 24
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_bytes(path: Path) -> bytes:
    """What the file holds, unpacked if its name ends in .gz."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({(error.strerror or str(error)).lower()}).") from error
    if path.suffix.lower() != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path.name}: is not a whole gzip file ({error}).") from error


def as_utf8(data: bytes, name: str, encoding: str | None = None) -> bytes:
    """The same text as UTF-8, without a byte order mark, every line ending in \\n."""
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
        raise FormatError(f"{name}: there is no encoding called {encoding!r}; try utf-8, utf-16 or latin-1.") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{name}: line {line} is not {encoding} text (byte 0x{data[error.start]:02x}).") from error
    except (UnicodeError, ValueError) as error:
        raise FormatError(f"{name}: cannot be read as {encoding}: {error}.") from error


def _check_utf8(data: bytes, name: str, chunk: int = _CHUNK) -> None:
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise FormatError(
            f"{name}: line {line} holds a NUL byte, so this is not plain text; "
            "if it is UTF-16 text, say --encoding utf-16-le (or utf-16-be)."
        )
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), chunk):
        # What the decoder still holds of the chunk before counts towards the position of an error.
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + chunk], final=start + chunk >= len(data))
        except UnicodeDecodeError as error:
            place = start - held + error.start
            line = data.count(b"\n", 0, place) + 1
            raise FormatError(
                f"{name}: line {line} is not UTF-8 text (byte 0x{data[place]:02x}); "
                "if it comes from an older program, say --encoding latin-1."
            ) from error


_TEXT: dict[str, Callable[[bytes, str], Table]] = {
    ".csv": read_delimited,
    ".tsv": lambda data, name: read_delimited(data, name, "\t"),
    ".tab": lambda data, name: read_delimited(data, name, "\t"),
    ".txt": lambda data, name: read_delimited(data, name, "\t"),
    "": read_delimited,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".json": read_json,
}
_PARQUET = (".parquet", ".pq")
_NEVER_TEXT = (".xlsx", ".xls", ".ods", ".zip", ".pdf", ".pkl", ".npy", ".npz", ".mat", ".feather", ".arrow", ".db")


_JSON = (".json", ".jsonl", ".ndjson")
# Enough for the first lines, or the first records, of any file.
_HEAD, _FIRST_RECORDS = 1 << 16, 1 << 22
_FEW_LINES, _FEW_RECORDS = 50, 20


@dataclass(frozen=True, eq=False)
class Source:
    """What was given, before anyone knows whose format it is: text to look at, a table once it is asked for."""

    name: str
    parse: Callable[[], Table]
    text: bytes = b""
    """All of a text file, as UTF-8; nothing for frames and Parquet."""
    json: bool = False
    tabular: bool = True
    """False for a text whose name promises no columns; some format may know it all the same."""
    path: Path | None = None

    @cached_property
    def table(self) -> Table:
        """As columns under a header, which many formats are."""
        return self.parse()

    @cached_property
    def head(self) -> tuple[str, ...]:
        """The first lines of a text that hold something."""
        lines = self.text[:_HEAD].decode("utf-8", "replace").split("\n")
        whole = lines if len(self.text) <= _HEAD or len(lines) == 1 else lines[:-1]
        return tuple(line for line in whole if line.strip())[:_FEW_LINES]

    @cached_property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The first objects of a JSON file."""
        return tuple(first_records(self.text[:_FIRST_RECORDS], _FEW_RECORDS)) if self.json else ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Of the table; of JSON the keys of the first objects, which is quicker."""
        if not self.tabular:
            return ()
        return tuple(dict.fromkeys(key for record in self.records for key in record)) or self.table.columns

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns without case and punctuation."""
        return frozenset(plain(column) for column in self.columns)


def open_table(source: Any, encoding: str | None = None) -> Table:
    return open_source(source, encoding).table


def open_source(source: Any, encoding: str | None = None) -> Source:
    if isinstance(source, str | PathLike):
        return _open_path(Path(source), encoding)
    if isinstance(source, Mapping):
        return Source("the columns", lambda: read_columns(source))
    return Source("the data frame", lambda: read_frame(source))


def _open_path(path: Path, encoding: str | None) -> Source:
    try:
        there, folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(path)[:100]!r} is no path to a file ({error}).") from error
    if not there:
        raise FormatError(f"{path}: there is no such file.")
    if folder:
        raise FormatError(f"{path}: is a folder, not a file.")
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if suffix in _PARQUET:
        return Source(path.name, lambda: _read_parquet(path), path=path)
    if suffix in _NEVER_TEXT:
        _refuse_suffix(path, suffix)
    text = as_utf8(read_bytes(path), path.name, encoding)
    parse = partial(_TEXT[suffix], text, path.name) if suffix in _TEXT else partial(_refuse_suffix, path, suffix)
    return Source(path.name, parse, text, suffix in _JSON, suffix in _TEXT, path)


def _refuse_suffix(path: Path, suffix: str) -> NoReturn:
    known = ", ".join(s for s in (*_TEXT, *_PARQUET) if s)
    raise FormatError(
        f"{path.name}: files with columns end in {known} (text also in .gz), got {suffix!r}, and no other format "
        "knows this one."
    )


def _read_parquet(path: Path) -> Table:
    """Only the columns that are asked for are read."""
    frame = _refusing(path, lambda: pl.scan_parquet(path))
    schema = _refusing(path, frame.collect_schema)
    rows = _refusing(path, lambda: frame.select(pl.len()).collect().item())
    columns, repeated = told_apart([name.strip() for name in schema.names()])
    stored = dict(zip(columns, schema.names(), strict=True))

    def load(names: Sequence[str], most: int | None) -> pl.DataFrame:
        # By number: to polars a name such as "^left$" may be a pattern.
        wanted = frame.select(pl.nth(columns.index(name)) for name in names)
        found: pl.DataFrame = _refusing(path, (wanted if most is None else wanted.head(most)).collect)
        return pl.DataFrame({name: found.get_column(stored[name]) for name in names})

    return Table(name=path.name, columns=columns, load=load, rows=rows, repeated=repeated)


def _refusing(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{path.name}: cannot be read as Parquet ({reason}).") from error
