"""What templates call for: figures and QR codes as inline SVG, without styles, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from markupsafe import Markup

from crowdrank.reports.html.markup import Html, join, tag
from crowdrank.reports.html.svg import Axis, Point, linear, numbers, scatter
from crowdrank.server.annotator_summaries import EDGES

Json = Mapping[str, Any]

_DASH = "–"


@lru_cache(maxsize=512)
def qr(address: str) -> Markup:
    """An address for cameras."""
    import segno

    made = segno.make(address, error="m", micro=False)
    return Markup(made.svg_inline(border=1, omitsize=True, svgclass=None, lineclass=None, title="QR code of the link"))


def score_range(row: Json, rows: Sequence[Json]) -> Markup:
    """The score of an item with its interval, on an axis that all rows share."""
    if row["score"] is None:
        return Markup("")
    low = min(one["low"] for one in rows if one["score"] is not None)
    high = max(one["high"] for one in rows if one["score"] is not None)
    return interval(row["score"], row["low"], row["high"], low, high)


def interval(value: float | None, low: float | None, high: float | None, least: float, most: float) -> Markup:
    """A dot on a bar."""
    if value is None or low is None or high is None:
        return Markup("")
    ends = [_percent(_share(one, least, most)) for one in (low, high, value)]
    bar = tag("line", x1=ends[0], x2=ends[1], y1=8, y2=8, class_="range")
    dot = tag("circle", cx=ends[2], cy=8, r=4.5, class_="dot")
    return Markup(tag("svg", bar, dot, width="100%", height=16, aria_hidden="true"))


def history_figure(history: Sequence[Json], what: str) -> Markup:
    """How a figure of the board came about: "uncertainty" or "agreement" against the number of votes."""
    told = [point for point in history if point[what] is not None]
    if len(told) < 2:
        return Markup("")
    x = numbers("votes", 0.0, 1.03 * max(point["votes"] for point in told))
    most = max(point[what] for point in told)
    title, top = {"uncertainty": ("uncertainty of a score", 1.08 * most), "agreement": ("order as today's", 1.0)}[what]
    y = linear(title, min(0.0, *(point[what] for point in told)), top or 1.0)
    points = [Point(p["votes"], p[what], "dot", f"{p['votes']:,} votes: {p[what]:.2f}") for p in told]
    begin, end = (f"{point[what]:.2f} after {point['votes']:,} votes" for point in (told[0], told[-1]))
    said = f"{title.capitalize()}: {begin}, {end}."
    return Markup(scatter(points, x, y, said, _lines(points, x, y)))


def histogram(counts: Sequence[int], edges: Sequence[float] = EDGES) -> Markup:
    """How many answers took how long, small enough for a cell of a table."""
    most, wide = max(counts, default=0), 100 / max(1, len(counts))
    if not most:
        return Markup("")
    bars = [
        tag(
            "rect",
            tag("title", f"{_between(edges, n)}: {count:,}"),
            x=_percent(n * wide / 100),
            width=_percent(0.86 * wide / 100),
            y=_percent(1 - max(count / most, 0.05)),
            height=_percent(max(count / most, 0.05)),
            class_="bar",
        )
        for n, count in enumerate(counts)
        if count
    ]
    usual = _between(edges, counts.index(most))
    base = tag("line", x1="0%", x2="100%", y1="100%", y2="100%", class_="base")
    return Markup(tag("svg", *bars, base, role="img", aria_label=f"Response times, most often {usual}", class_="spark"))


def number(value: float | None, digits: int = 0) -> str:
    return _DASH if value is None else f"{value:,.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    return _DASH if value is None else f"{100 * value:.0f} %"


def chance(value: float | None) -> str:
    """A p-value."""
    return _DASH if value is None else "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def seconds(value: float | None) -> str:
    return _DASH if value is None else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def moment(microseconds: int | None) -> str:
    """When something was, by the server's clock."""
    return _DASH if microseconds is None else f"{datetime.fromtimestamp(microseconds / 1e6, UTC):%Y-%m-%d %H:%M:%S}"


def plainly(value: Any) -> str:
    """A setting, or whatever else was noted."""
    if value is None or isinstance(value, bool):
        return {None: _DASH, True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plainly(said)}" for key, said in value.items())
    return ", ".join(plainly(one) for one in value) if isinstance(value, list | tuple) else str(value)


def ranks(row: Json) -> str:
    low, high = row["rank_low"], row["rank_high"]
    return _DASH if low is None else str(low) if low == high else f"{low}–{high}"


def grouped(rows: Sequence[Json]) -> list[list[Json]]:
    """Rows that follow one another and are of one tie group; what was not judged is the last of them."""
    return [list(some) for _, some in groupby(rows, key=lambda row: row["group"])]


def policies() -> list[str]:
    """What may choose the questions."""
    from crowdrank.active import POLICIES

    return list(POLICIES)


def _lines(points: Sequence[Point], x: Axis, y: Axis) -> Html:
    return join(
        *(
            tag(
                "line",
                x1=_percent(x.position(a.x)),
                x2=_percent(x.position(b.x)),
                y1=_percent(1 - y.position(a.y)),
                y2=_percent(1 - y.position(b.y)),
                class_="line",
            )
            for a, b in pairwise(points)
        )
    )


def _between(edges: Sequence[float], n: int) -> str:
    if n == 0:
        return f"under {edges[0]:g} s"
    return f"over {edges[-1]:g} s" if n >= len(edges) else f"{edges[n - 1]:g} to {edges[n]:g} s"


def _share(value: float, least: float, most: float) -> float:
    return 0.02 + 0.96 * (value - least) / ((most - least) or 1.0)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


GLOBALS: dict[str, Callable[..., Any]] = {
    "chance": chance,
    "grouped": grouped,
    "histogram": histogram,
    "history_figure": history_figure,
    "interval": interval,
    "moment": moment,
    "number": number,
    "percent": percent,
    "plainly": plainly,
    "policies": policies,
    "qr": qr,
    "ranks": ranks,
    "score_range": score_range,
    "seconds": seconds,
}
"""By the names that templates use."""
