"""Render items as safe HTML, and check the images that admins upload."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from crowdrank.errors import DataError
from crowdrank.server.records import Item

KINDS = ("text", "markdown", "image", "link")
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Image files that are served. SVG is not one of them, because it may contain scripts."""
MAX_IMAGE_SIZE = 10 << 20
_HEADINGS = {f"h{n}" for n in range(1, 7)}
_BLOCKS = {"blockquote", "br", "hr", "li", "ol", "p", "pre", "ul", "table", "tbody", "td", "th", "thead", "tr"}
_TAGS = {"a", "b", "code", "del", "em", "i", "strong", "sub", "sup"} | _HEADINGS | _BLOCKS
# Headings within an item must rank below the headings of the page.
_LOWER_HEADINGS = {f"h{n}": f"h{min(n + 2, 6)}" for n in range(1, 7)}
_SIGNATURES: dict[str, Callable[[bytes], bool]] = {
    "image/png": lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda head: head.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda head: head.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP",
}


@lru_cache(maxsize=4096)
def content_kind(body: str, kind: str | None = None) -> str:
    """Return the given kind, or detect it: an image or a link if the body is the URL of one, otherwise text."""
    if kind:
        if kind not in KINDS:
            raise DataError(f"The kind of an item must be one of {', '.join(KINDS)}, got {kind!r}.")
        return kind
    is_url = _is_url(body)
    if Path(urlsplit(body).path if is_url else body).suffix.lower() in IMAGE_TYPES and "\n" not in body:
        return "image"
    return "link" if is_url else "text"


def item_view(item: Item, prefix: str = "") -> dict[str, Any]:
    """Return an item as pages and the API show it; `html` is safe to insert into a page."""
    body = item_body(item)
    kind = content_kind(body, item.content.get("kind"))
    return {"id": item.id, "label": item.label, "kind": kind, "html": render(kind, body, item.label, prefix)}


def question_view(item: Item, prefix: str = "") -> dict[str, Any]:
    """Return an item as annotators see it. Its label is often the name of a model, so it is left out unless shown."""
    body = item_body(item)
    kind = content_kind(body, item.content.get("kind"))
    label = item.label if body == item.label else None
    return {"id": item.id, "label": label, "kind": kind, "html": render(kind, body, "Image", prefix)}


def item_body(item: Item) -> str:
    return str(item.content.get("body", item.label))


def image_hosts(items: Iterable[Item]) -> set[str]:
    """Return the other servers that images of items come from, for the content security policy."""
    hosts = set()
    for item in items:
        body = item_body(item)
        if body.startswith(("http://", "https://")) and content_kind(body, item.content.get("kind")) == "image":
            parts = urlsplit(body)
            # Characters that could end the directive and start another one are not allowed.
            if not any(sign in parts.netloc for sign in " ;,'\"@") and html.escape(parts.netloc) == parts.netloc:
                hosts.add(f"{parts.scheme}://{parts.netloc}")
    return hosts


@lru_cache(maxsize=4096)
def render(kind: str, body: str, label: str, prefix: str = "") -> str:
    """Return content as HTML. Images that are not URLs are files in the media folder of the server at `prefix`."""
    if kind == "markdown":
        return render_markdown(body)
    if kind == "image":
        source = body if _is_url(body) else f"{prefix}/media/{quote(body)}"
        return f'<img src="{html.escape(source)}" alt="{html.escape(label)}">'
    if kind == "link" and _is_url(body):
        url = html.escape(body)
        return f'<p><a href="{url}" target="_blank" rel="noopener noreferrer nofollow">{url}</a></p>'
    return f'<p class="text">{html.escape(body)}</p>'


def render_markdown(text: str) -> str:
    """Return Markdown as HTML without images, scripts, styles or anything else that loads resources."""
    import nh3

    rendered = _markdown_parser().render(text)
    return str(
        nh3.clean(
            rendered,
            tags=_TAGS,
            attributes={"a": {"href"}},
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
    )


@lru_cache(maxsize=1)
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        token.tag = _LOWER_HEADINGS.get(token.tag, token.tag)


def media_file(folder: Path, name: str) -> Path | None:
    """Return the path of an image in the media folder; None if it is outside the folder or not an image."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        found = path.is_relative_to(root) and path.suffix.lower() in IMAGE_TYPES and path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return None
    return path if found else None


def check_image(name: str, content: bytes) -> str:
    """Return the suffix of an uploaded image; raise DataError if it is not an image or too large."""
    suffix = Path(name).suffix.lower()
    if suffix not in IMAGE_TYPES:
        raise DataError(f"{name} is not an image: use {', '.join(sorted(IMAGE_TYPES))}.")
    if len(content) > MAX_IMAGE_SIZE:
        raise DataError(
            f"{name} is too large: images may have at most {MAX_IMAGE_SIZE >> 20} MB, got {len(content):,} bytes."
        )
    if not _SIGNATURES[IMAGE_TYPES[suffix]](content[:16]):
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
