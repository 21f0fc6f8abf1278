"""Render the templates in `pages/`. See pages/CONTEXT.md for the variables of each template.

The templates call the functions in GLOBALS: charts and QR codes as inline SVG without styles, and number formatting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crowdrank.reports.html.markup import Axis, Html, Point, columns, join, level, linear, numbers, scatter, tag
from crowdrank.server.annotator_summaries import HISTOGRAM_EDGES
from crowdrank.server.errors import RequestError
from crowdrank.server.files import media_hosts
from crowdrank.server.middleware import content_security_policy
from crowdrank.server.service import service_of
from crowdrank.server.translation import language_names, translator

PAGES = Path(__file__).parent / "pages"
NOTICES = {
    "saved": "Saved.",
    "added": "Added.",
    "removed": "Removed.",
    "paused": "Paused. No questions are asked until you resume.",
    "resumed": "Resumed.",
    "closed": "Closed. No more questions are asked.",
    "revoked": "The link no longer works.",
    "excluded": "Their votes no longer count.",
    "included": "Their votes count again.",
    "person_paused": "They get no more questions until you let them go on.",
    "person_resumed": "They get questions again.",
    "voided": "These votes no longer count.",
    "erased": "Their data are erased.",
    "password_changed": "The password is changed. Your other sessions are ended.",
    "sessions_ended": "These sessions are ended.",
    "set_aside": "These votes are set aside. The board is computed without them.",
}
"""Notices after a redirect, by the key in the URL. Text from a URL is never shown on a page."""
TRANSLATED = (
    *("consent.html", "join.html", "return.html", "practice.html"),
    *("judge.html", "task.html", "finished.html"),
)
"""Pages for annotators, which are shown in the language of the settings."""
Json = Mapping[str, Any]

_DASH = "–"
_MAX_NAME = 16
"""Letters of a name beside a line."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(GLOBALS)
    environment.filters["priced"] = lambda point, price: (point[0], point[1] * price)
    return environment


def page(
    request: Request,
    template: str,
    /,
    status_code: int = 200,
    *,
    admin: bool = False,
    csrf: str = "",
    form_host: str | None = None,
    **context: Any,
) -> HTMLResponse:
    """Render a template as a response. Its forms go to this server, or also to `form_host`."""
    service = service_of(request)
    projection, prefix = service.projection, service.options.prefix
    settings = replace(projection.settings, title="crowdrank") if service.is_overview else projection.settings
    t = translator(settings.language if template in TRANSLATED else "en")
    notice = request.query_params.get("notice", "")
    html = (
        _environment()
        .get_template(template)
        .render(
            settings=settings,
            state=projection.state,
            admin=admin,
            csrf=csrf,
            prefix=prefix,
            path=request.scope["path"],
            role=getattr(request.state, "role", None),
            navigation=service.navigation,
            home=None if service.home is None else f"{_origin(request)}{service.home}",
            t=t,
            notice=t(f"notice_{notice}") if t.has(f"notice_{notice}") else NOTICES.get(notice),
            **context,
        )
    )
    html = _with_prefix(html, prefix)
    headers = {"Content-Security-Policy": content_security_policy(media_hosts(projection.items.values()), form_host)}
    return HTMLResponse(html, status_code, headers=headers)


def _origin(request: Request) -> str:
    return service_of(request).options.public_url or str(request.base_url).rstrip("/")


def _with_prefix(html: str, prefix: str) -> str:
    """Put the prefix of the server before the paths of links, forms and resources that do not have it yet."""
    if not prefix:
        return html
    return re.sub(rf'\b(href|src|action)="/(?!/|{re.escape(prefix[1:])}/)', rf'\1="{prefix}/', html)


def error_page(request: Request, error: RequestError) -> HTMLResponse:
    """Render the page of an error."""
    response = page(request, "error.html", error.status, status=error.status, code=error.code, message=error.message)
    response.headers.update(error.headers)
    return response


@lru_cache(maxsize=512)
def qr_code(url: str) -> Markup:
    """Return a URL as a QR code."""
    import segno

    code = segno.make(url, error="m", micro=False)
    return Markup(code.svg_inline(border=1, omitsize=True, svgclass=None, lineclass=None, title="QR code of the link"))


def score_range(row: Json, rows: Sequence[Json]) -> Markup:
    """Draw the score of an item with its interval, on an axis that all rows share."""
    if row["score"] is None:
        return Markup("")
    low, high, ticks = _score_axis(rows)
    return interval(row["score"], row["low"], row["high"], low, high, ticks)


def score_axis(rows: Sequence[Json]) -> Markup:
    """Draw the axis of `score_range`: its ticks with their numbers."""
    if all(row["score"] is None for row in rows):
        return Markup("")
    low, high, ticks = _score_axis(rows)
    marks = [
        tag("text", text, x=_percent(_position(value, low, high)), y=12, text_anchor="middle") for value, text in ticks
    ]
    return Markup(
        tag("svg", *marks, width="100%", height=16, role="img", aria_label=f"Axis from {low:.2f} to {high:.2f}")
    )


def _score_axis(rows: Sequence[Json]) -> tuple[float, float, list[tuple[float, str]]]:
    """Return the ends of the axis and at most five ticks."""
    low = min(row["low"] for row in rows if row["score"] is not None)
    high = max(row["high"] for row in rows if row["score"] is not None)
    ticks = list(linear("score", low, high).ticks)
    return low, high, ticks if len(ticks) <= 5 else ticks[len(ticks) % 2 :: 2]


def interval(
    value: float | None,
    low: float | None,
    high: float | None,
    minimum: float,
    maximum: float,
    ticks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Draw a value as a dot and its interval as a bar, over the lines of the ticks."""
    if value is None or low is None or high is None:
        return Markup("")
    grid = [
        tag("line", x1=at, x2=at, y1=-8, y2=24, class_="grid")
        for at in (_percent(_position(tick, minimum, maximum)) for tick, _ in ticks)
    ]
    ends = [_percent(_position(one, minimum, maximum)) for one in (low, high, value)]
    bar = tag("line", x1=ends[0], x2=ends[1], y1=8, y2=8, class_="range")
    dot = tag("circle", cx=ends[2], cy=8, r=4.5, class_="dot")
    return Markup(tag("svg", *grid, bar, dot, width="100%", height=16, aria_hidden="true"))


def history_chart(history: Sequence[Json], what: str) -> Markup:
    """Plot "uncertainty" or "agreement" against the number of votes."""
    known = [point for point in history if point[what] is not None]
    if len(known) < 2:
        return Markup("")
    x = numbers("votes", 0.0, 1.03 * max(point["votes"] for point in known))
    largest = max(point[what] for point in known)
    title, top = {"uncertainty": ("standard error", 1.08 * largest), "agreement": ("agreement", 1.0)}[what]
    y = linear(title, min(0.0, *(point[what] for point in known)), top or 1.0)
    points = [Point(p["votes"], p[what], "dot", f"{_after(p)}: {p[what]:.2f}") for p in known]
    start, end = (f"{point[what]:.2f} after {point['votes']:,} votes" for point in (known[0], known[-1]))
    description = f"{title.capitalize()}: {start}, {end}."
    return Markup(scatter(points, x, y, description, _lines(points, x, y)))


def rank_chart(history: Sequence[Json], rows: Sequence[Json]) -> Markup:
    """Plot the ranks of the leading items against the number of votes."""
    names = {row["id"]: row["item"] for row in rows}
    paths: dict[int, list[tuple[Json, int]]] = {}
    for point in history:
        for one in point["ranks"]:
            if one["id"] in names:
                paths.setdefault(one["id"], []).append((point, one["rank"]))
    if len(history) < 2 or not paths:
        return Markup("")
    worst = max(rank for path in paths.values() for _, rank in path)
    x = numbers("votes", 0.0, 1.35 * history[-1]["votes"])
    ticks = tuple((float(rank), str(rank)) for rank in range(1, worst + 1, 1 + worst // 12))
    y = Axis("rank", lambda rank: (worst - rank) / max(worst - 1, 1), ticks)  # the best is at the top
    drawn, points = [], []
    for n, (id_, path) in enumerate(paths.items()):
        line = [Point(p["votes"], rank, f"dot path-{n}", f"{names[id_]}: rank {rank} {_after(p)}") for p, rank in path]
        end = {"x": _percent(x.position(line[-1].x)), "y": _percent(1 - y.position(line[-1].y))}
        name = names[id_] if len(names[id_]) <= _MAX_NAME else f"{names[id_][: _MAX_NAME - 1]}…"
        drawn += [_lines(line, x, y, f"line path-{n}"), tag("text", name, dx=10, dy=4, class_="name", **end)]
        points += line
    said = "; ".join(f"{names[id_]}: {path[0][1]}, now {path[-1][1]}" for id_, path in paths.items())
    return Markup(scatter(points, x, y, f"Ranks after {history[0]['votes']:,} votes and now: {said}.", join(*drawn)))


def _after(point: Json) -> str:
    at = point.get("at")
    return f"after {point['votes']:,} votes" + (f" ({at[:16].replace('T', ' ')})" if at else "")


def time_chart(
    series: Sequence[tuple[float, float]], title: str, limit: float | None = None, digits: int = 0
) -> Markup:
    """Plot a total against time, given as pairs of seconds since 1970 and values, with its limit if there is one."""
    if len(series) < 2 or series[0][0] >= series[-1][0]:
        return Markup("")
    start, end = series[0][0], series[-1][0]
    form = "%H:%M" if end - start < 86_400 else "%d %b"
    moments = [start + (end - start) * share for share in (0.0, 0.5, 1.0)]
    ticks = tuple((at, f"{datetime.fromtimestamp(at, UTC):{form}}") for at in moments)
    x = Axis("time (UTC)", lambda at: 0.03 + 0.94 * (at - start) / (end - start), ticks)
    largest = series[-1][1]
    shown_limit = limit if limit is not None and limit <= 3 * largest else None
    y = linear(title, 0.0, 1.08 * max(largest, shown_limit or 0.0) or 1.0)
    points = [Point(at, value, "", "") for at, value in series]
    last = [Point(*series[-1], "dot", f"{series[-1][1]:,.{digits}f}")]
    extra = join(_lines(points, x, y), level(shown_limit, y, f"limit {shown_limit:,.{digits}f}") if shown_limit else "")
    return Markup(scatter(last, x, y, f"{title.capitalize()} over time: now {largest:,.{digits}f}.", extra))


def times_chart(counts: Sequence[int], edges: Sequence[float] = HISTOGRAM_EDGES) -> Markup:
    """Plot how long answers took."""
    if not any(counts):
        return Markup("")
    labels = [_bin_label(edges, n) for n in range(len(counts))]
    bounds = tuple(((n + 1) / len(counts), f"{edge:g} s") for n, edge in enumerate(edges))
    x = Axis("time per answer", lambda share: share, bounds)
    y = numbers("answers", 0.0, 1.08 * max(counts))
    hints = [f"{label}: {count:,}" for label, count in zip(labels, counts, strict=True)]
    most = labels[list(counts).index(max(counts))]
    return Markup(columns(list(counts), hints, x, y, f"Time per answer, most often {most}."))


def histogram(counts: Sequence[int], edges: Sequence[float] = HISTOGRAM_EDGES) -> Markup:
    """Draw the distribution of response times, small enough for a table cell."""
    largest, width = max(counts, default=0), 1 / max(1, len(counts))
    if not largest:
        return Markup("")
    bars = [
        tag(
            "rect",
            tag("title", f"{_bin_label(edges, n)}: {count:,}"),
            x=_percent(n * width),
            width=_percent(0.86 * width),
            y=_percent(1 - max(count / largest, 0.05)),
            height=_percent(max(count / largest, 0.05)),
            class_="bar",
        )
        for n, count in enumerate(counts)
        if count
    ]
    mode = _bin_label(edges, counts.index(largest))
    base = tag("line", x1="0%", x2="100%", y1="100%", y2="100%", class_="base")
    return Markup(tag("svg", *bars, base, role="img", aria_label=f"Response times, most often {mode}", class_="spark"))


def number(value: float | None, digits: int = 0) -> str:
    return _DASH if value is None else f"{value:,.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    return _DASH if value is None else f"{100 * value:.0f} %"


def p_value(value: float | None) -> str:
    return _DASH if value is None else "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def seconds(value: float | None) -> str:
    return _DASH if value is None else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def as_text(value: Any) -> str:
    """Format a setting or another JSON value."""
    if value is None or isinstance(value, bool):
        return {None: _DASH, True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {as_text(inner)}" for key, inner in value.items())
    return ", ".join(as_text(one) for one in value) if isinstance(value, list | tuple) else str(value)


def rank_interval(row: Json) -> str:
    low, high = row["rank_low"], row["rank_high"]
    return _DASH if low is None else str(low) if low == high else f"{low}–{high}"


def tie_groups(rows: Sequence[Json]) -> list[list[Json]]:
    """Split rows into tie groups; items without votes are the last group."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row["group"])]


def policies() -> list[str]:
    """Return the names of the policies."""
    from crowdrank.active import POLICIES

    return list(POLICIES)


def _lines(points: Sequence[Point], x: Axis, y: Axis, kind: str = "line") -> Html:
    return join(
        *(
            tag(
                "line",
                x1=_percent(x.position(a.x)),
                x2=_percent(x.position(b.x)),
                y1=_percent(1 - y.position(a.y)),
                y2=_percent(1 - y.position(b.y)),
                class_=kind,
            )
            for a, b in pairwise(points)
        )
    )


def _bin_label(edges: Sequence[float], n: int) -> str:
    if n == 0:
        return f"under {edges[0]:g} s"
    return f"over {edges[-1]:g} s" if n >= len(edges) else f"{edges[n - 1]:g} to {edges[n]:g} s"


def _position(value: float, minimum: float, maximum: float) -> float:
    return 0.02 + 0.96 * (value - minimum) / ((maximum - minimum) or 1.0)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


GLOBALS: dict[str, Callable[..., Any]] = {
    "as_text": as_text,
    "histogram": histogram,
    "history_chart": history_chart,
    "interval": interval,
    "language_names": language_names,
    "number": number,
    "p_value": p_value,
    "percent": percent,
    "policies": policies,
    "qr_code": qr_code,
    "rank_interval": rank_interval,
    "rank_chart": rank_chart,
    "score_axis": score_axis,
    "score_range": score_range,
    "seconds": seconds,
    "tie_groups": tie_groups,
    "time_chart": time_chart,
    "times_chart": times_chart,
}
