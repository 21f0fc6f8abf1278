"""Whatever holds judgments, as a table: a path, a data frame, a dict of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.delimited import read_delimited
from crowdrank.files.encodings import as_utf8, read_bytes
from crowdrank.files.frames import read_columns, read_frame
from crowdrank.files.records import first_records, read_json
from crowdrank.files.roles import plain
from crowdrank.files.tables import Table, told_apart

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
