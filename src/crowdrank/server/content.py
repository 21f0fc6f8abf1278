"""What the judging page shows of an item, as HTML that cannot do anything but be read."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from crowdrank.errors import DataError

KINDS = ("text", "markdown", "image", "link")
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Files that are served: no SVG, for it may carry scripts."""
LARGEST_UPLOAD = 10 << 20
_TAGS = {
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
# A heading of an item is no heading of the page.
_LOWER_HEADINGS = {f"h{n}": f"h{min(n + 2, 6)}" for n in range(1, 7)}
_FIRST_BYTES: dict[str, Callable[[bytes], bool]] = {
    "image/png": lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda head: head.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda head: head.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP",
}


def kind_of(body: str, told: str | None = None) -> str:
    """What an item is: as told, else an image or a link where the whole of it is the address of one, else text."""
    if told:
        if told not in KINDS:
            raise DataError(f"The kind of an item must be one of {', '.join(KINDS)}, got {told!r}.")
        return told
    is_address = _is_address(body)
    if Path(urlsplit(body).path if is_address else body).suffix.lower() in IMAGE_TYPES and "\n" not in body:
        return "image"
    return "link" if is_address else "text"


def rendered(kind: str, body: str, label: str) -> str:
    """The item as HTML. Pictures that are no web address are files of the media folder."""
    if kind == "markdown":
        return markdown(body)
    if kind == "image":
        source = body if _is_address(body) else f"/media/{quote(body)}"
        return f'<img src="{html.escape(source)}" alt="{html.escape(label)}">'
    if kind == "link" and _is_address(body):
        address = html.escape(body)
        return f'<p><a href="{address}" target="_blank" rel="noopener noreferrer nofollow">{address}</a></p>'
    return f'<p class="text">{html.escape(body)}</p>'


def markdown(text: str) -> str:
    """Markdown without pictures, scripts, styles or anything else that would reach out."""
    import nh3

    made = _parser().render(text)
    return str(
        nh3.clean(
            made,
            tags=_TAGS,
            attributes={"a": {"href"}},
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
    )


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        token.tag = _LOWER_HEADINGS.get(token.tag, token.tag)


def media_file(folder: Path, name: str) -> Path | None:
    """The picture of that name in the media folder; none where the name leads out of it, or to another type of file."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        found = path.is_relative_to(root) and path.suffix.lower() in IMAGE_TYPES and path.is_file()
    except (OSError, ValueError):  # a name no file can have
        return None
    return path if found else None


def check_upload(name: str, content: bytes) -> str:
    """The ending that the file may be kept under; what is no picture, or too large, is refused."""
    ending = Path(name).suffix.lower()
    if ending not in IMAGE_TYPES:
        raise DataError(f"{name}: pictures must be {', '.join(sorted(IMAGE_TYPES))}.")
    if len(content) > LARGEST_UPLOAD:
        raise DataError(
            f"{name}: pictures may take {LARGEST_UPLOAD >> 20} MB at most, this one has {len(content):,} bytes."
        )
    if not _FIRST_BYTES[IMAGE_TYPES[ending]](content[:16]):
        raise DataError(f"{name}: its content is not what its ending says.")
    return ending


def _is_address(body: str) -> bool:
    if any(letter.isspace() for letter in body):
        return False
    try:
        parts = urlsplit(body)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
