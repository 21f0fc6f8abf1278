"""Markup that cannot be broken by a label: whatever is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape

_EMPTY = frozenset({"meta", "line", "circle", "rect", "br"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(value: object) -> Html:
    return value if isinstance(value, Html) else Html(_escape(str(value)))


def join(*parts: object) -> Html:
    return Html("".join(escape(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` is class, `stroke_width` is stroke-width; attributes that are None or False are left out.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()]
    written = "".join(
        f" {key}" if value is True else f' {key}="{_escape(str(value))}"'
        for key, value in given
        if value is not None and value is not False
    )
    if name in _EMPTY and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def paragraph(*sentences: object, class_: str | None = None) -> Html:
    """Sentences with a space between them; empty ones are left out."""
    said = [escape(sentence) for sentence in sentences if sentence]
    return tag("p", Html(" ".join(said)), class_=class_) if said else Html("")


def fold(summary: object, *children: object, open_: bool = False) -> Html:
    """What is behind a click."""
    return tag("details", tag("summary", summary), *children, open=open_)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str, numbers: Sequence[int] = ()) -> Html:
    """Rows under a head; `numbers` are the columns that stand to the right."""
    side = ["num" if n in numbers else None for n in range(len(head))]
    top = tag("tr", *(tag("th", name, scope="col", class_=c) for name, c in zip(head, side, strict=True)))
    body = [tag("tr", *(tag("td", v, class_=c) for v, c in zip(row, side, strict=True))) for row in rows]
    whole = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return scrolling(whole, caption)


def scrolling(content: Html, name: str) -> Html:
    """Wide content that scrolls by itself, by keyboard as well."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=name)


def items(entries: Iterable[object], class_: str | None = None) -> Html:
    return tag("ul", *(tag("li", entry) for entry in entries), class_=class_)
