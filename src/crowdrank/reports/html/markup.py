"""HTML elements with automatic escaping: everything that is not `Html` already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as _escape


def count(number: int, one: str, many: str = "") -> str:
    """
    >>> count(1, "item"), count(1200, "query", "queries")
    ('1 item', '1,200 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def enumerate_names(names: Sequence[str], limit: int = 5) -> str:
    """
    >>> enumerate_names(["a", "b", "c"]), enumerate_names(["a", "b", "c"], limit=2)
    ('a, b and c', 'a, b and 1 more')
    """
    shown = list(names[:limit])
    if len(names) > limit:
        shown.append(f"{len(names) - limit:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def between(low: float, high: float, digits: int = 2) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}"


def decimals(spread: float) -> int:
    """Number of decimals that distinguishes numbers with this range."""
    return 0 if spread > 200 else 1 if spread > 20 else 2 if spread > 0.5 else 3


_VOID = frozenset({"meta", "line", "circle", "rect", "br"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: object) -> Html:
    return value if isinstance(value, Html) else Html(_escape(str(value)))


def join(*parts: object) -> Html:
    return Html("".join(escape(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; `class_` is class, `stroke_width` is stroke-width; None and False omit an attribute.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()]
    written = "".join(
        f" {key}" if value is True else f' {key}="{_escape(str(value))}"'
        for key, value in given
        if value is not None and value is not False
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def paragraph(*sentences: object, class_: str | None = None) -> Html:
    """Return a paragraph of the sentences that are not empty."""
    shown = [escape(sentence) for sentence in sentences if sentence]
    return tag("p", Html(" ".join(shown)), class_=class_) if shown else Html("")


def fold(summary: object, *children: object, open_: bool = False) -> Html:
    """Return content that is folded behind a summary."""
    return tag("details", tag("summary", summary), *children, open=open_)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str, numbers: Sequence[int] = ()) -> Html:
    """Return a table; the columns `numbers` are aligned right."""
    classes = ["num" if n in numbers else None for n in range(len(head))]
    top = tag("tr", *(tag("th", name, scope="col", class_=c) for name, c in zip(head, classes, strict=True)))
    body = [tag("tr", *(tag("td", v, class_=c) for v, c in zip(row, classes, strict=True))) for row in rows]
    whole = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return scrolling(whole, caption)


def scrolling(content: Html, name: str) -> Html:
    """Return wide content that scrolls on its own, also by keyboard."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=name)


def items(entries: Iterable[object], class_: str | None = None) -> Html:
    return tag("ul", *(tag("li", entry) for entry in entries), class_=class_)


@dataclass(frozen=True)
class Section:
    """A section of the page; `name` is its anchor."""

    name: str
    title: str
    body: Html


def section(name: str, title: str, *body: object) -> Section:
    return Section(name, title, join(*body))
