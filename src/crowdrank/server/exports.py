"""Votes on their way out: streamed, and safe to be opened by a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

COLUMNS = (
    "seq",
    "time",
    "annotator",
    "query",
    "left",
    "right",
    "winner",
    "status",
    "reason",
    "response_ms",
    "assignment",
    "assigned_at",
    "policy",
    "probability",
    "gold",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TOGETHER = 500


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Exactly what is stored, a line a vote."""
    yield from _joined(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = COLUMNS) -> Iterator[str]:
    """Text that a spreadsheet would take for a formula begins with an apostrophe; JSON lines have it as it is."""
    names = list(columns)
    yield _line(names)
    yield from _joined(_line([safe(row.get(name)) for name in names]) for row in rows)


def safe(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _line(cells: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Many at once: a line by itself is not worth sending."""
    some: list[str] = []
    for line in lines:
        some.append(line)
        if len(some) == _TOGETHER:
            yield "".join(some)
            some = []
    if some:
        yield "".join(some)


def counting(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Votes that count: the board is made of these."""
    return (row for row in rows if row["status"] == "counts" and row["winner"] != "skip")


def frame(rows: Iterable[dict[str, Any]]) -> Any:
    """As a table, for Parquet."""
    import polars as pl

    kinds = {
        "seq": pl.Int64,
        "response_ms": pl.Int64,
        "assignment": pl.Int64,
        "probability": pl.Float64,
    }
    return pl.DataFrame(list(rows), schema={name: kinds.get(name, pl.String) for name in COLUMNS})
