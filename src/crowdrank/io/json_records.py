"""Read JSON: a list of objects, or one object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.source_table import (
    RowLocation,
    SourceTable,
    dedupe_names,
    replace_surrogates,
    table_from_frame,
    text_series,
)

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, RuntimeError)
# Keys of an object that holds all records.
_WRAPPERS = frozenset(
    ["data", "rows", "records", "results", "votes", "comparisons", "ratings", "examples", "instances"]
)
# What separates two objects.
_SEPARATOR = re.compile(r"[\s,]*")


def read_json(data: bytes, name: str) -> SourceTable:
    """Read objects in a list or on lines of their own; the first character of the file decides which."""
    start = data.lstrip()[:1]
    if not start:
        raise FormatError(f"{name}: is empty.")
    return _read_lines(data, name) if start == b"{" else _read_list(data, name)


def unwrap_records(data: bytes) -> bytes:
    """Return JSON whose records are inside one object as a list of them: {"data": […]}, or columns as pandas writes."""
    if data.lstrip()[:1] != b"{" or not data.rstrip().endswith(b"}"):
        return data
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):  # objects on lines of their own, or broken: read as such
        return data
    alone = len(content) == 1
    inner = [value for key, value in content.items() if (alone or key.casefold() in _WRAPPERS) and _is_records(value)]
    if len(inner) == 1:
        return json.dumps(inner[0]).encode()
    columns = list(content.values())
    if len(columns) > 1 and all(isinstance(column, dict) and len(column) > 1 for column in columns):
        keys = columns[0].keys()
        if all(column.keys() == keys for column in columns):
            return json.dumps([{name: column[key] for name, column in content.items()} for key in keys]).encode()
    if len(columns) > 1 and all(isinstance(column, list) for column in columns) and len({*map(len, columns)}) == 1:
        return json.dumps([dict(zip(content, row, strict=True)) for row in zip(*columns, strict=True)]).encode()
    return data


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def first_records(data: bytes, most: int) -> list[dict[str, Any]]:
    """Return the first objects of a list or of lines, up to the first that cannot be parsed."""
    text, decoder, found = data.decode("utf-8", "ignore"), json.JSONDecoder(), list[dict[str, Any]]()
    position = len(text) - len(text.lstrip().removeprefix("["))
    while len(found) < most:
        position = _SEPARATOR.match(text, position).end()  # type: ignore[union-attr]
        try:
            record, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if isinstance(record, dict):
            found.append(record)
    return found


def read_records(data: bytes, name: str, schema: Mapping[str, Any]) -> tuple[pl.DataFrame, Mapping[int, str]]:
    """Return one row per object with the fields of the schema, and what is wrong with entries that are not objects."""
    by_line = data.lstrip()[:1] == b"{"
    with suppress(*_UNREADABLE):
        return pl.read_ndjson(data, schema=schema) if by_line else pl.read_json(data, schema=schema), {}
    # Something does not fit the schema: parse object by object, and read those that do.
    objects = [_parsed(line) for _, line in Lines(data)] if by_line else _list_of(data, name)
    unreadable_rows = {
        n: f"expected an object, got {_shown(r)}" for n, r in enumerate(objects) if not isinstance(r, dict)
    }
    kind = pl.Struct(schema)
    lines = ["{}" if n in unreadable_rows else json.dumps(_fitted(record, kind)) for n, record in enumerate(objects)]
    try:
        return pl.read_ndjson("\n".join(lines).encode(), schema=schema), unreadable_rows
    except _UNREADABLE as error:
        raise FormatError(f"{name}: {str(error).splitlines()[0]}.") from error


def _fitted(value: Any, kind: Any) -> Any:
    """Return a value as its place in a schema needs it; what has another form there becomes null.

    One file may write a person as an id and as an object with an id.
    """
    if isinstance(kind, pl.Struct):
        fields = {field.name: field.dtype for field in kind.fields}
        if not isinstance(value, dict):
            return {"id": value} if fields.keys() == {"id"} and not isinstance(value, list) else None
        return {name: _fitted(value.get(name), inner) for name, inner in fields.items()}
    if isinstance(kind, pl.List):
        return [_fitted(entry, kind.inner) for entry in value] if isinstance(value, list) else None
    if kind == pl.String:
        return json.dumps(value) if isinstance(value, dict | list) else value
    with suppress(TypeError, ValueError):
        return value if isinstance(value, int | float) else float(value)
    return None


def _read_list(data: bytes, name: str) -> SourceTable:
    with suppress(*_UNREADABLE):
        frame = pl.read_json(data, infer_schema_length=None)
        plain = not any(kind.is_nested() for kind in frame.dtypes)
        if frame.height and plain and not _mixes_booleans(frame, data):
            return _named(frame, list(frame.columns), name)
    return _table_of_records(_list_of(data, name), name)


def _mixes_booleans(frame: pl.DataFrame, data: bytes) -> bool:
    """Return whether a column of numbers also holds true or false, which polars would read as 1 and 0."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    if not numbers or (b"true" not in data and b"false" not in data):
        return False
    texts = pl.read_json(data, schema=dict.fromkeys(numbers, pl.String))
    return bool(texts.select(pl.any_horizontal(pl.all().is_in(("true", "false")).any())).item())


def _list_of(data: bytes, name: str) -> list[Any]:
    try:
        records = json.loads(data)
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}: line {error.lineno}: is not valid JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: is not valid JSON ({error}).") from error
    if not isinstance(records, list):
        raise FormatError(f"{name}: expected a list of objects, got {_shown(records)}.")
    return records


def _read_lines(data: bytes, name: str) -> SourceTable:
    lines = Lines(data)
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
        table = _named(frame, list(frame.columns), name)
    except _UNREADABLE:
        table = _table_of_records([_parsed(line) for _, line in lines], name)
    return replace(table, unit="line", locate=lines.locate)


@dataclass(frozen=True)
class Lines:
    """The non-blank lines of a file, with their numbers."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((n, line) for n, line in enumerate(self.data.split(b"\n"), 1) if line.strip())

    def locate(self, rows: Sequence[int]) -> list[RowLocation]:
        numbers = [n for n, _ in self]
        return [RowLocation(numbers[row]) for row in rows]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return error


def _table_of_records(records: Sequence[Any], name: str) -> SourceTable:
    """Turn objects into columns; entries that are not objects become unreadable rows."""
    unreadable_rows = {
        n: f"expected an object, got {_shown(r)}" for n, r in enumerate(records) if not isinstance(r, dict)
    }
    if len(unreadable_rows) == len(records):
        raise FormatError(
            f"{name}: contains no objects" + (f"; the first entry: {unreadable_rows[0]}." if unreadable_rows else ".")
        )
    rows = [r if isinstance(r, dict) else {} for r in records]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    frame = pl.DataFrame([text_series(str(n), [row.get(key) for row in rows]) for n, key in enumerate(keys)])
    return replace(_named(frame, keys, name), unreadable_rows=unreadable_rows)


def _named(frame: pl.DataFrame, keys: Sequence[str], name: str) -> SourceTable:
    columns, repeated_names = dedupe_names([replace_surrogates(key).strip() for key in keys])
    return replace(
        table_from_frame(frame.rename(dict(zip(frame.columns, columns, strict=True))), name),
        repeated_names=repeated_names,
    )


def _shown(value: Any) -> str:
    if isinstance(value, Exception):
        return f"text that is not valid JSON ({value})"
    if isinstance(value, dict):
        return "one object"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
