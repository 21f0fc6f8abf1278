"""Read items and gold pairs from files, keep uploaded images, and export votes.

Votes are exported as JSON lines, CSV or a data frame. CSV is safe to open in a spreadsheet.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from crowdrank.errors import DataError, FormatError
from crowdrank.server.errors import RequestError
from crowdrank.server.records import Item
from crowdrank.storage import NewItem
from crowdrank.storage.access import Keys

if TYPE_CHECKING:
    import polars as pl

# Render items as safe HTML, and check the files that admins upload.

KINDS = ("text", "markdown", "image", "audio", "video", "html", "link")
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Image files that are served. SVG is not one of them, because it may contain scripts."""
AUDIO_TYPES = {".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav", ".m4a": "audio/mp4"}
VIDEO_TYPES = {".mp4": "video/mp4", ".webm": "video/webm"}
MEDIA_TYPES = {**IMAGE_TYPES, **AUDIO_TYPES, **VIDEO_TYPES}
_TEXT_KINDS = {".txt": "text", ".md": "markdown", ".html": "html", ".htm": "html"}
"""Files whose content becomes the content of an item, by kind."""
MAX_IMAGE_SIZE, MAX_RECORDING_SIZE, MAX_TEXT_SIZE = 10 << 20, 30 << 20, 1 << 20
HTML_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""The content security policy of items that are HTML: no scripts, no forms, nothing from elsewhere."""
_HEADINGS = {f"h{n}" for n in range(1, 7)}
_BLOCKS = {"blockquote", "br", "hr", "li", "ol", "p", "pre", "ul", "table", "tbody", "td", "th", "thead", "tr"}
_TAGS = {"a", "b", "code", "del", "em", "i", "strong", "sub", "sup"} | _HEADINGS | _BLOCKS
_SIGNATURES: dict[str, Callable[[bytes], bool]] = {
    "image/png": lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda head: head.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda head: head.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP",
    "audio/mpeg": lambda head: head.startswith(b"ID3") or (head[:1] == b"\xff" and head[1:2] >= b"\xe0"),
    "audio/ogg": lambda head: head.startswith(b"OggS"),
    "audio/wav": lambda head: head.startswith(b"RIFF") and head[8:12] == b"WAVE",
    "audio/mp4": lambda head: head[4:8] == b"ftyp",
    "video/mp4": lambda head: head[4:8] == b"ftyp",
    "video/webm": lambda head: head.startswith(b"\x1a\x45\xdf\xa3"),
}


@lru_cache(maxsize=4096)
def content_kind(body: str, kind: str | None = None) -> str:
    """Return the given kind, or detect it: an image, a recording or a link if the body names one, otherwise text."""
    if kind:
        if kind not in KINDS:
            raise DataError(f"The kind of an item must be one of {', '.join(KINDS)}, got {kind!r}.")
        return kind
    is_url = _is_url(body)
    media_type = MEDIA_TYPES.get(Path(urlsplit(body).path if is_url else body).suffix.lower())
    if media_type is not None and "\n" not in body:
        return media_type.partition("/")[0]
    return "link" if is_url else "text"


def item_view(item: Item, prefix: str = "") -> dict[str, Any]:
    """Return an item as pages and the API show it; `html` is safe to insert into a page."""
    body = item_body(item)
    kind = content_kind(body, item.content.get("kind"))
    return {"id": item.id, "label": item.label, "kind": kind, "html": _shown(item, kind, item.label, prefix)}


def question_view(item: Item, keys: Keys, prefix: str = "") -> dict[str, Any]:
    """Return an item as annotators see it, without its label and the name of its file: these often name a model.

    The label is given if the item has no other content.
    """
    body = item_body(item)
    kind = content_kind(body, item.content.get("kind"))
    label = item.label if body == item.label else None
    return {"id": item.id, "label": label, "kind": kind, "html": _shown(item, kind, kind.capitalize(), prefix, keys)}


def _shown(item: Item, kind: str, label: str, prefix: str, keys: Keys | None = None) -> str:
    """Return an item as HTML, with keys without the name of its file.

    One that is HTML itself is a page of its own, in a frame without any rights.
    """
    if kind != "html":
        body = item_body(item)
        if keys is not None and kind in _MEDIA_KINDS and not _is_url(body):
            body = keys.conceal(body) + Path(body).suffix
        return render(kind, body, label, prefix)
    # The hash makes browsers load it again when it was edited.
    version = hashlib.sha256(item_body(item).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    source = f"{prefix}/items/{item.id}.html?v={version}"
    return f'<iframe src="{source}" title="{html.escape(label)}" sandbox loading="lazy"></iframe>'


def item_body(item: Item) -> str:
    return str(item.content.get("body", item.label))


def media_hosts(items: Iterable[Item]) -> set[str]:
    """Return the other servers that images and recordings come from, for the content security policy."""
    hosts = set()
    for item in items:
        body = item_body(item)
        if body.startswith(("http://", "https://")) and content_kind(body, item.content.get("kind")) in _MEDIA_KINDS:
            parts = urlsplit(body)
            # Characters that could end the directive and start another one are not allowed.
            if not any(sign in parts.netloc for sign in " ;,'\"@") and html.escape(parts.netloc) == parts.netloc:
                hosts.add(f"{parts.scheme}://{parts.netloc}")
    return hosts


_MEDIA_KINDS = ("image", "audio", "video")


@lru_cache(maxsize=4096)
def render(kind: str, body: str, label: str, prefix: str = "") -> str:
    """Return content as HTML. Images that are not URLs are files in the media folder of the server at `prefix`."""
    if kind == "markdown":
        return render_markdown(body)
    if kind in _MEDIA_KINDS:
        source = html.escape(body if _is_url(body) else f"{prefix}/media/{quote(body)}")
        if kind == "image":
            return f'<img src="{source}" alt="{html.escape(label)}">'
        return f'<{kind} src="{source}" aria-label="{html.escape(label)}" controls preload="metadata"></{kind}>'
    if kind == "link" and _is_url(body):
        url = html.escape(body)
        return f'<p><a href="{url}" target="_blank" rel="noopener noreferrer nofollow">{url}</a></p>'
    return f'<p class="text">{html.escape(body)}</p>'


def render_markdown(text: str, lower: int = 2) -> str:
    """Return Markdown as HTML without images, scripts, styles or anything else that loads resources.

    Headings are `lower` levels lower than written: by two in items, which have a heading of the second level.
    """
    import nh3

    rendered = _markdown_parser().render(text, {"lower": lower})
    return str(
        nh3.clean(
            rendered,
            tags=_TAGS,
            attributes={"a": {"href"}},
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
    )


@lru_cache(maxsize=4096)
def instructions_html(text: str) -> str:
    """Return instructions, or another text between the headings of a page, as safe HTML; empty if there are none."""
    return render_markdown(text, lower=1) if text else ""


@lru_cache(maxsize=1)
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.tag in _HEADINGS:
            token.tag = f"h{min(int(token.tag[1]) + state.env['lower'], 6)}"


def media_file(folder: Path, name: str) -> Path | None:
    """Return the path of a file in the media folder; None if it is outside the folder or of another type."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        found = path.is_relative_to(root) and path.suffix.lower() in MEDIA_TYPES and path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return None
    return path if found else None


def check_media(name: str, content: bytes) -> str:
    """Return the suffix of an uploaded image or recording; raise DataError if it is another file, or too large."""
    suffix = Path(name).suffix.lower()
    if suffix not in MEDIA_TYPES:
        raise DataError(f"{name} is neither an image nor a recording: use {', '.join(sorted(MEDIA_TYPES))}.")
    what, most = ("images", MAX_IMAGE_SIZE) if suffix in IMAGE_TYPES else ("recordings", MAX_RECORDING_SIZE)
    if len(content) > most:
        raise DataError(f"{name} is too large: {what} may have at most {most >> 20} MB, got {len(content):,} bytes.")
    if not _SIGNATURES[MEDIA_TYPES[suffix]](content[:16]):
        raise DataError(f"{name}: the content does not match the file name, save it as {suffix[1:].upper()} again.")
    return suffix


def _is_url(body: str) -> bool:
    if any(letter.isspace() for letter in body):
        return False
    try:
        parts = urlsplit(body)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


CONTENT_FIELDS = ("body", "kind", "context", "group", "owner")
"""Fields that an item may have besides its label and its query."""
_BODY_COLUMNS = (
    *("body", "text", "markdown", "image", "audio", "video", "html"),
    *("url", "link", "content", "answer"),
)
_KIND_BY_COLUMN = {name: name for name in ("markdown", "image", "audio", "video", "html", "link")}
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

    The columns are item, query, one of text, markdown, image, audio, video, html and link, and optionally kind,
    context, group and owner.
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


def save_media(folder: Path | None, name: str, content: bytes) -> str:
    """Save an image or a recording in the media folder, under a name made unique by its hash; return that name."""
    if folder is None:
        raise RequestError(422, "Files cannot be uploaded: the server was started without a media folder.")
    suffix = check_media(name, content)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-")[:60] or "file"
    file_name = f"{stem}-{hashlib.sha256(content).hexdigest()[:10]}{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file_name).write_bytes(content)
    return file_name


def text_of_file(name: str, content: bytes) -> tuple[str, str] | None:
    """Return the text and the kind of an uploaded text, Markdown or HTML file; None if it is another file."""
    kind = _TEXT_KINDS.get(Path(name).suffix.lower())
    if kind is None:
        return None
    if len(content) > MAX_TEXT_SIZE:
        raise DataError(f"{name} is too large: texts may have at most {MAX_TEXT_SIZE >> 20} MB.")
    try:
        return content.decode("utf-8-sig"), kind
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not a UTF-8 text: save it as UTF-8.") from error


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Iterate over JSON lines, one per vote, exactly as stored."""
    yield from _chunks(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def columns_of(kind: str) -> tuple[str, ...]:
    """Return the columns of an export of comparisons, ratings or rankings."""
    start = ("seq", "time", "annotator", "query", *_JUDGED[kind], "status", "reason", "response_ms")
    gold = ("gold",) if kind == "comparisons" else ()
    return (
        *start,
        "assignment",
        "assigned_at",
        "policy",
        "probability",
        *gold,
        "criterion",
        "comment",
        "study_version",
        "consent",
    )


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

    numbers = dict.fromkeys(("seq", "response_ms", "assignment", "list", "grade", "rank", "study_version"), pl.Int64)
    kinds = {**numbers, "probability": pl.Float64}
    return pl.DataFrame(list(rows), schema={name: kinds.get(name, pl.String) for name in columns_of(kind)})
