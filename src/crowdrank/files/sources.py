"""Whatever holds judgments, as a table: a path, a data frame, a dict of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.delimited import read_delimited
from crowdrank.files.encodings import as_utf8, read_bytes
from crowdrank.files.frames import read_columns, read_frame
from crowdrank.files.records import read_json
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


def open_table(source: Any, encoding: str | None = None) -> Table:
    if isinstance(source, str | PathLike):
        return _open_path(Path(source), encoding)
    if isinstance(source, Mapping):
        return read_columns(source)
    return read_frame(source)


def _open_path(path: Path, encoding: str | None) -> Table:
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
        return _read_parquet(path)
    if suffix not in _TEXT:
        known = ", ".join(s for s in (*_TEXT, *_PARQUET) if s)
        raise FormatError(f"{path.name}: files that can be read end in {known} (text also in .gz), got {suffix!r}.")
    return _TEXT[suffix](as_utf8(read_bytes(path), path.name, encoding), path.name)


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
