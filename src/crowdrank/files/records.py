"""JSON: a list of flat objects, or one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files.tables import Place, Table, table_of, told_apart
from crowdrank.files.values import series_of, whole_text


def read_json(data: bytes, name: str) -> Table:
    """Objects in a list or on lines of their own; the first sign of a file tells which, whatever its suffix."""
    start = data.lstrip()[:1]
    if not start:
        raise FormatError(f"{name}: is empty.")
    return _read_lines(data, name) if start == b"{" else _read_list(data, name)


def _read_list(data: bytes, name: str) -> Table:
    try:
        records = json.loads(data)
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}: line {error.lineno}: is not JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: is not JSON that can be read ({error}).") from error
    if not isinstance(records, list):
        raise FormatError(f"{name}: expected a list of objects, got {_shown(records)}.")
    return _table_of_records(records, name)


def _read_lines(data: bytes, name: str) -> Table:
    lines = _Lines(data)
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
        table = _named(frame, list(frame.columns), name)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, RuntimeError):
        table = _table_of_records([_parsed(line) for _, line in lines], name)
    return replace(table, unit="line", locate=lines.locate)


@dataclass(frozen=True)
class _Lines:
    """The lines of a file that hold something, with their numbers."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((n, line) for n, line in enumerate(self.data.split(b"\n"), 1) if line.strip())

    def locate(self, rows: Sequence[int]) -> list[Place]:
        numbers = [n for n, _ in self]
        return [Place(numbers[row]) for row in rows]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return error


def _table_of_records(records: Sequence[Any], name: str) -> Table:
    """Objects as columns; whatever else stands among them is a broken row."""
    broken = {n: f"expected an object, got {_shown(r)}" for n, r in enumerate(records) if not isinstance(r, dict)}
    if len(broken) == len(records):
        raise FormatError(f"{name}: holds no objects" + (f"; the first entry: {broken[0]}." if broken else "."))
    rows = [r if isinstance(r, dict) else {} for r in records]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    frame = pl.DataFrame([series_of(str(n), [row.get(key) for row in rows]) for n, key in enumerate(keys)])
    return replace(_named(frame, keys, name), broken=broken)


def _named(frame: pl.DataFrame, keys: Sequence[str], name: str) -> Table:
    columns, repeated = told_apart([whole_text(key).strip() for key in keys])
    return replace(table_of(frame.rename(dict(zip(frame.columns, columns, strict=True))), name), repeated=repeated)


def _shown(value: Any) -> str:
    if isinstance(value, Exception):
        return f"something that is not JSON ({value})"
    if isinstance(value, dict):
        return "one object"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
