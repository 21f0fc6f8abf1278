"""JSON: a list of flat objects, or one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.frames import series_of, whole_text
from crowdrank.io.tables import Place, Table, table_of, told_apart

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, RuntimeError)
# What stands between two objects.
_NEXT = re.compile(r"[\s,]*")


def read_json(data: bytes, name: str) -> Table:
    """Objects in a list or on lines of their own; the first sign of a file tells which, whatever its suffix."""
    start = data.lstrip()[:1]
    if not start:
        raise FormatError(f"{name}: is empty.")
    return _read_lines(data, name) if start == b"{" else _read_list(data, name)


def first_records(data: bytes, most: int) -> list[dict[str, Any]]:
    """The first objects of a list, or of lines, as far as they can be read."""
    text, decoder, found = data.decode("utf-8", "ignore"), json.JSONDecoder(), list[dict[str, Any]]()
    place = len(text) - len(text.lstrip().removeprefix("["))
    while len(found) < most:
        place = _NEXT.match(text, place).end()  # type: ignore[union-attr]
        try:
            record, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            break
        if isinstance(record, dict):
            found.append(record)
    return found


def read_records(data: bytes, name: str, schema: Mapping[str, Any]) -> tuple[pl.DataFrame, Mapping[int, str]]:
    """One row an object, only the fields of the schema; and what is wrong with rows that are no objects."""
    by_line = data.lstrip()[:1] == b"{"
    with suppress(*_UNREADABLE):
        return pl.read_ndjson(data, schema=schema) if by_line else pl.read_json(data, schema=schema), {}
    # Something in it does not fit: find out what, object by object, and read the rest.
    objects = [_parsed(line) for _, line in Lines(data)] if by_line else _list_of(data, name)
    broken = {n: f"expected an object, got {_shown(r)}" for n, r in enumerate(objects) if not isinstance(r, dict)}
    lines = ["{}" if n in broken else json.dumps(record) for n, record in enumerate(objects)]
    try:
        return pl.read_ndjson("\n".join(lines).encode(), schema=schema), broken
    except _UNREADABLE as error:
        raise FormatError(f"{name}: {str(error).splitlines()[0]}.") from error


def _read_list(data: bytes, name: str) -> Table:
    with suppress(*_UNREADABLE):
        frame = pl.read_json(data, infer_schema_length=None)
        plain = not any(kind.is_nested() for kind in frame.dtypes)
        if frame.height and plain and not _mixes_truths(frame, data):
            return _named(frame, list(frame.columns), name)
    return _table_of_records(_list_of(data, name), name)


def _mixes_truths(frame: pl.DataFrame, data: bytes) -> bool:
    """Whether a column of numbers holds a true or false, which polars would take for 1 and 0."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    if not numbers or (b"true" not in data and b"false" not in data):
        return False
    texts = pl.read_json(data, schema=dict.fromkeys(numbers, pl.String))
    return bool(texts.select(pl.any_horizontal(pl.all().is_in(("true", "false")).any())).item())


def _list_of(data: bytes, name: str) -> list[Any]:
    try:
        records = json.loads(data)
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}: line {error.lineno}: is not JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: is not JSON that can be read ({error}).") from error
    if not isinstance(records, list):
        raise FormatError(f"{name}: expected a list of objects, got {_shown(records)}.")
    return records


def _read_lines(data: bytes, name: str) -> Table:
    lines = Lines(data)
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
        table = _named(frame, list(frame.columns), name)
    except _UNREADABLE:
        table = _table_of_records([_parsed(line) for _, line in lines], name)
    return replace(table, unit="line", locate=lines.locate)


@dataclass(frozen=True)
class Lines:
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
