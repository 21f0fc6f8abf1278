"""Tables out, in the format the file's name asks for."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

import polars as pl

from crowdrank.errors import FormatError

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
    ".ndjson": lambda frame, path: frame.write_ndjson(path),
    ".json": lambda frame, path: frame.write_json(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}


SUFFIXES = tuple(_WRITERS)
# What programs that want a table read.
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def write_table(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table as .csv, .tsv, .jsonl (.ndjson), .json or .parquet."""
    target = Path(path)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise FormatError(f"{target.name}: tables are written as {', '.join(_WRITERS)}, got {target.suffix!r}.")
    writing(target, lambda: write(frame, target))


def write_text(lines: pl.Series, path: Path) -> None:
    """Lines of text, each with its end."""
    writing(path, lambda: path.write_text("\n".join(lines.to_list()) + "\n", encoding="utf-8"))


def writing(target: Path, write: Callable[[], object]) -> None:
    """Do it, or say in plain words why not."""
    try:
        write()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{target}: cannot be written ({reason}).") from error
