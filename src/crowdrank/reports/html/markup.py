"""HTML elements with automatic escaping: everything that is not `Html` already is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape as _escape
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray


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


# Figures as SVG. Positions are fractions of the width, so that text keeps its size on any screen.


@dataclass(frozen=True)
class Axis:
    """An axis.

    Parameters
    ----------
    title : str
        Title of the axis.
    position : callable
        Maps a value to a fraction of the axis, 0 to 1.
    ticks : tuple of pairs
        Values with their labels.
    """

    title: str
    position: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def linear(title: str, low: float, high: float) -> Axis:
    """Return a linear axis with about five round ticks."""
    span = (high - low) or 1.0
    step = _round_step(span / 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((n * step, f"{n * step:,.{digits}f}".replace("-", "−")) for n in range(first, last + 1))
    return Axis(title, lambda value: (value - low) / span, ticks)


def percentages(title: str, low: float = 0.0, high: float = 1.0) -> Axis:
    """Return an axis of fractions, labelled in percent."""
    found = linear(title, low, high)
    return Axis(title, found.position, tuple((value, f"{100 * value:.0f} %") for value, _ in found.ticks))


def numbers(title: str, low: float, high: float) -> Axis:
    """Return an axis of counts, with ticks at whole numbers."""
    found = linear(title, low, high)
    return Axis(title, found.position, tuple((v, f"{v:,.0f}") for v, _ in found.ticks if abs(v - round(v)) < 1e-6))


def counts(title: str, low: int, high: int) -> Axis:
    """Return an axis of counts, logarithmic if the largest is more than 20 times the smallest."""
    if high <= 20 * max(low, 1):
        return numbers(title, 0.0, 1.05 * high)
    bottom, top = math.log(max(low, 1) / 1.3), math.log(high * 1.3)
    ticks = tuple((float(v), f"{v:,}") for power in range(8) for v in _within(10**power, low, high))
    return Axis(title, lambda value: (math.log(max(value, 1.0)) - bottom) / (top - bottom), ticks)


def _within(power: int, low: int, high: int) -> list[int]:
    return [m * power for m in (1, 3) if low / 1.3 <= m * power <= high * 1.3]


def _round_step(rough: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))


_HEIGHT = 300
_WIDTH = 640
"""Approximate size of a figure in pixels, to find names that would overlap."""
_LETTER_WIDTH = 6.6
_MAX_CELL, _MAX_HEAT_MAP = 16, 660
"""Largest side of a cell of a heat map, and of the heat map."""


class Point(NamedTuple):
    """A point of a scatter plot.

    Parameters
    ----------
    x, y : float
        Its values.
    kind : str
        Its CSS class.
    hint : str
        Text of the tooltip.
    name : str, default ""
        Label beside the point, if there is room.
    low, high : float, default nan
        Ends of a vertical interval.
    """

    x: float
    y: float
    kind: str
    tooltip: str
    name: str = ""
    low: float = float("nan")
    high: float = float("nan")


def scatter(points: Sequence[Point], x: Axis, y: Axis, alternative: str, extra: object = "") -> Html:
    """Return a scatter plot; names are written beside their points."""
    marks = [_mark(point, x, y) for point in points]
    drawn = [*_grid(x, y), extra, *marks, *_names(points, x, y)]
    return _figure(join(*drawn), alternative)


def diagonal(kind: str = "even") -> Html:
    return tag("line", x1="0%", y1="100%", x2="100%", y2="0%", class_=kind)


def level(value: float, axis: Axis, text: str) -> Html:
    """Return a horizontal line with a label."""
    y = _percent(1 - axis.position(value))
    words = tag("text", text, x="100%", y=y, dx=-4, dy=-5, text_anchor="end", class_="faint")
    return join(tag("line", x1="0%", y1=y, x2="100%", y2=y, class_="even"), words)


def columns(values: Sequence[float], tooltips: Sequence[str], x: Axis, y: Axis, alternative: str) -> Html:
    """Return a bar chart over the whole width."""
    wide = 100 / max(1, len(values))
    drawn = [
        tag(
            "rect",
            tag("title", tooltip),
            x=f"{n * wide + wide * 0.06:.2f}%",
            width=f"{wide * 0.88:.2f}%",
            y=_percent(1 - y.position(value)),
            height=_percent(y.position(value)),
            class_="bar",
        )
        for n, (value, tooltip) in enumerate(zip(values, tooltips, strict=True))
    ]
    return _figure(join(*_grid(x, y), *drawn), alternative, 180)


def heat_map(cells: FloatArray, names: Sequence[str], tooltips: Sequence[Sequence[str]], alternative: str) -> Html:
    """Return a square heat map: 1 is one colour, −1 the other, 0 neither; nan is empty."""
    cell = min(_MAX_CELL, _MAX_HEAT_MAP // len(names))
    margin = 16 + int(1.1 * _LETTER_WIDTH * max(len(_short(name)) for name in names))
    whole = len(names) * cell
    drawn = [tag("rect", x=margin - 1, y=-1, width=whole + 1, height=whole + 1, class_="frame")]
    for row, name in enumerate(names):
        size = min(12, cell)
        drawn.append(
            tag(
                "text",
                _short(name),
                x=margin - 8,
                y=row * cell + (cell + 0.7 * size) / 2,
                text_anchor="end",
                style=f"font-size:{size}px",
            )
        )
        drawn += [
            _shade(float(cells[row, column]), margin + column * cell, row * cell, cell - 1, tooltips[row][column])
            for column in np.flatnonzero(~np.isnan(cells[row])).tolist()
        ]
    size_of = {"width": margin + whole + 2, "height": whole + 2, "viewBox": f"0 -1 {margin + whole + 2} {whole + 2}"}
    picture = tag("svg", *drawn, role="img", aria_label=alternative, class_="heat", **size_of)
    return scrolling(picture, f"Figure: {alternative}")


def _shade(value: float, x: int, y: int, side: int, tooltip: str) -> Html:
    opacity, kind = f"{max(0.06, abs(value)):.2f}", "more" if value >= 0 else "less"
    return tag("rect", tag("title", tooltip), x=x, y=y, width=side, height=side, class_=kind, fill_opacity=opacity)


def stacked(parts: Sequence[tuple[str, float, str]], alternative: str) -> Html:
    """Return a stacked bar of parts: name, fraction and CSS class."""
    start, drawn = 0.0, []
    for name, share, kind in parts:
        if share > 0:
            words = tag("text", name, x=_percent(start + share / 2), y=25, text_anchor="middle", class_=f"on-{kind}")
            block = tag("rect", x=_percent(start), width=_percent(share), y=0, height=40, class_=kind)
            drawn.append(join(block, words if share > 0.12 else ""))
        start += share
    svg = tag("svg", *drawn, role="img", aria_label=alternative, width="100%", height=40)
    return tag("div", svg, class_="stack")


def frame_figure(drawn: Html, x: Axis, y: Axis, alternative: str) -> Html:
    """Return a figure with axes around something that is drawn already."""
    return _figure(join(*_grid(x, y), drawn), alternative)


def _figure(drawn: Html, alternative: str, height: int = _HEIGHT) -> Html:
    svg = tag("svg", drawn, role="img", aria_label=alternative, width="100%", height=height)
    return tag("div", svg, class_="plot")


def _grid(x: Axis, y: Axis) -> list[Html]:
    drawn = []
    for value, text in y.ticks:
        at = _percent(1 - y.position(value))
        drawn.append(tag("line", x1="0%", x2="100%", y1=at, y2=at, class_="grid"))
        drawn.append(tag("text", text, x=0, y=at, dx=-8, dy=4, text_anchor="end"))
    for value, text in x.ticks:
        at = _percent(x.position(value))
        drawn.append(tag("text", text, x=at, y="100%", dy=20, text_anchor="middle"))
    drawn.append(tag("line", x1="0%", x2="100%", y1="100%", y2="100%", class_="base"))
    drawn.append(tag("text", x.title, x="50%", y="100%", dy=42, text_anchor="middle", class_="title"))
    drawn.append(tag("text", y.title, x=0, y=0, dx=-44, dy=-14, class_="title"))
    return drawn


def _mark(point: Point, x: Axis, y: Axis) -> Html:
    across, up = _percent(x.position(point.x)), _percent(1 - y.position(point.y))
    circle = tag("circle", tag("title", point.tooltip), cx=across, cy=up, r=4.5, class_=point.kind)
    if point.low != point.low:
        return circle
    ends = {"y1": _percent(1 - y.position(point.low)), "y2": _percent(1 - y.position(point.high))}
    return join(tag("line", x1=across, x2=across, class_=f"range {point.kind}", **ends), circle)


def _names(points: Sequence[Point], x: Axis, y: Axis) -> list[Html]:
    """Names beside their points, on the side with room; names that would overlap others are left out."""
    taken: list[tuple[float, float, float]] = []
    drawn = []
    for point in points:
        if not point.name:
            continue
        text = _short(point.name)
        across, up = x.position(point.x), 1 - y.position(point.y)
        wide = len(text) * _LETTER_WIDTH
        to_left = across > 0.6
        start = across * _WIDTH + (-8 - wide if to_left else 8)
        middle = up * _HEIGHT
        if any(start < e and start + wide > s and abs(middle - m) < 14 for s, e, m in taken):
            continue
        taken.append((start, start + wide, middle))
        anchor = "end" if to_left else "start"
        drawn.append(
            tag(
                "text",
                text,
                x=_percent(across),
                y=_percent(up),
                dx=-9 if to_left else 9,
                dy=4,
                text_anchor=anchor,
                class_="name",
            )
        )
    return drawn


def _short(name: str, limit: int = 22) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
