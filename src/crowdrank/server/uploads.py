"""Read items and gold pairs from files, and keep uploaded images."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crowdrank.errors import FormatError
from crowdrank.server.content import check_image, content_kind
from crowdrank.server.errors import RequestError
from crowdrank.storage import NewItem

CONTENT_FIELDS = ("body", "kind", "context", "group", "owner")
"""What an item may have besides its label and its query."""
_BODY_COLUMNS = ("body", "text", "markdown", "image", "url", "link", "content", "answer")
_KIND_BY_COLUMN = {"markdown": "markdown", "image": "image", "url": None, "link": "link"}
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt")


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
