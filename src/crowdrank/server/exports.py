"""Export votes as JSON lines, CSV or a data frame. CSV is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

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
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_LINES_PER_CHUNK = 500


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Iterate over JSON lines, one per vote, exactly as stored."""
    yield from _chunks(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = COLUMNS) -> Iterator[str]:
    """Iterate over lines of CSV. Text that a spreadsheet would read as a formula gets a leading apostrophe."""
    names = list(columns)
    yield _line(names)
    yield from _chunks(_line([escape_formula(row.get(name)) for name in names]) for row in rows)


def escape_formula(value: Any) -> Any:
    """Return a cell that no spreadsheet reads as a formula."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def _line(cells: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _chunks(lines: Iterable[str]) -> Iterator[str]:
    """Join lines into larger chunks, because sending every line by itself is slow."""
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == _LINES_PER_CHUNK:
            yield "".join(chunk)
            chunk = []
    if chunk:
        yield "".join(chunk)


def counted(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Select the votes that count, from which the board is built."""
    return (row for row in rows if row["status"] == "counts" and row["winner"] != "skip")


def to_frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return votes as a data frame."""
    import polars as pl

    kinds = {
        "seq": pl.Int64,
        "response_ms": pl.Int64,
        "assignment": pl.Int64,
        "probability": pl.Float64,
    }
    return pl.DataFrame(list(rows), schema={name: kinds.get(name, pl.String) for name in COLUMNS})
