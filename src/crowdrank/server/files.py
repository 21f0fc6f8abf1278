"""Read items and gold pairs from files, keep uploaded images, and export votes.

Votes are exported as JSON lines, CSV or a data frame. CSV is safe to open in a spreadsheet.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.errors import FormatError
from crowdrank.server.content import check_image, content_kind
from crowdrank.server.errors import RequestError
from crowdrank.storage import NewItem

if TYPE_CHECKING:
    import polars as pl


CONTENT_FIELDS = ("body", "kind", "context", "group", "owner")
"""Fields that an item may have besides its label and its query."""
_BODY_COLUMNS = ("body", "text", "markdown", "image", "url", "link", "content", "answer")
_KIND_BY_COLUMN = {"markdown": "markdown", "image": "image", "url": None, "link": "link"}
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt")
_JUDGED = {
    "comparisons": ("left", "right", "winner"),
    "ratings": ("item", "grade"),
    "rankings": ("list", "item", "rank"),
}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_LINES_PER_CHUNK = 500


def parse_item(values: Mapping[str, Any]) -> NewItem:
    """Return an item from a mapping of columns. Empty values are ignored."""
    content = {key: str(values[key]) for key in CONTENT_FIELDS if values.get(key)}
    content_kind(content.get("body", ""), content.get("kind"))
    return NewItem(label=str(values.get("label", "")), query=str(values.get("query") or ""), content=content)


def read_items_file(path: Path) -> list[NewItem]:
    """Read items from a table with one row per item.

    The columns are item, query, one of text, markdown, image and link, and optionally kind, context, group and owner.
    """
    from crowdrank.io import as_labels, read_items

    table = read_items(path)
    columns = {name.strip().lower(): as_labels(values) for name, values in table.columns.items()}
    body = next((name for name in _BODY_COLUMNS if name in columns), None)
    items = []
    for n, label in enumerate(table.item):
        values: dict[str, Any] = {
            name: columns[name][n] for name in ("kind", "context", "group", "owner") if name in columns
        }
        values |= {"label": label, "query": "" if table.query is None else table.query[n]}
        if body is not None:
            values |= {"body": columns[body][n], "kind": values.get("kind") or _KIND_BY_COLUMN.get(body)}
        items.append(parse_item(values))
    return items


def read_gold_file(path: Path) -> list[list[str]]:
    """Read pairs whose order is known from a table with the columns better and worse."""
    from crowdrank.io.sources import open_table

    table = open_table(path)
    if not {"better", "worse"} <= set(table.columns):
        raise FormatError(
            f"{table.name}: gold pairs need the columns better and worse, got {', '.join(table.columns)}."
        )
    frame = table.load(["better", "worse"], None)
    return [[str(a), str(b)] for a, b in zip(frame["better"], frame["worse"], strict=True)]


@contextmanager
def uploaded_table(name: str, content: bytes) -> Iterator[Path]:
    """Save an uploaded table as a temporary file."""
    suffix = Path(name).suffix.lower()
    if suffix not in _TABLE_SUFFIXES:
        raise RequestError(422, "Upload a table: .csv, .tsv, .jsonl, .json or .parquet.")
    with tempfile.TemporaryDirectory(prefix="crowdrank-") as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        yield path


def save_image(folder: Path | None, name: str, content: bytes) -> str:
    """Save an image in the media folder, under a name made unique by its hash, and return that name."""
    if folder is None:
        raise RequestError(422, "Images cannot be uploaded: the server was started without a media folder.")
    suffix = check_image(name, content)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-")[:60] or "image"
    file_name = f"{stem}-{hashlib.sha256(content).hexdigest()[:10]}{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file_name).write_bytes(content)
    return file_name


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Iterate over JSON lines, one per vote, exactly as stored."""
    yield from _chunks(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def columns_of(kind: str) -> tuple[str, ...]:
    """Return the columns of an export of comparisons, ratings or rankings."""
    start = ("seq", "time", "annotator", "query", *_JUDGED[kind], "status", "reason", "response_ms")
    gold = ("gold",) if kind == "comparisons" else ()
    return (*start, "assignment", "assigned_at", "policy", "probability", *gold, "criterion", "comment")


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> Iterator[str]:
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


def counted(rows: Iterable[dict[str, Any]], criterion: str | None = None) -> Iterator[dict[str, Any]]:
    """Select the votes that count, from which the board is built: answers to the main question, or to a criterion."""
    for row in rows:
        judged = row["winner"] != "skip" if "winner" in row else row.get("grade", row.get("rank")) is not None
        if judged and row["status"] == "counts" and row["criterion"] == criterion:
            yield row


def to_frame(rows: Iterable[dict[str, Any]], kind: str) -> pl.DataFrame:
    """Return votes as a data frame: comparisons, ratings or rankings."""
    import polars as pl

    numbers = dict.fromkeys(("seq", "response_ms", "assignment", "list", "grade", "rank"), pl.Int64)
    kinds = {**numbers, "probability": pl.Float64}
    return pl.DataFrame(list(rows), schema={name: kinds.get(name, pl.String) for name in columns_of(kind)})
