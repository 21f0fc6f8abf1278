"""The ranking: items with scores, intervals and tie groups; scores over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Axis,
    Html,
    Section,
    count,
    decimals,
    enumerate_names,
    fold,
    frame_figure,
    join,
    linear,
    paragraph,
    percent,
    scrolling,
    section,
    table,
    tag,
)
from crowdrank.results import category_differences, criterion_correlations
from crowdrank.results.categories import DEVIATION
from crowdrank.results.drift import Drift, period_label
from crowdrank.results.scales import Scale

_VISIBLE_ROWS = 40
"""Number of items shown before the rest is folded."""
_MAX_ROWS = 1_500
_VISIBLE_QUERIES = 2


def order(findings: Findings) -> Section:
    several_queries = findings.ranking.items.has_queries and len(findings.ranking.items.queries) > 1
    tables = _queries(findings) if several_queries else ranked_items(findings, findings.frame, "")
    return section("order", "Ranking", paragraph(_how_to_read(findings)), tables, _missing(findings))


def headline(findings: Findings) -> tuple[str, str]:
    """The result in a sentence, and a second sentence on its certainty."""
    if findings.ranking.overall is not None:
        return headline(replace(findings, ranking=findings.ranking.overall))
    frame, items = findings.frame, findings.ranking.items
    if len(items.queries) > 1:
        ranked = f"{len(items.queries):,} queries were ranked separately"
        if not findings.has_uncertainty:
            return f"{ranked}.", ""
        firsts = frame.filter(frame["group"] == 1).group_by("query").len()["len"].to_list()
        alone = sum(size == 1 for size in firsts)
        return f"{ranked}.", f"In {alone or 'none'} of them the first item is clearly the best."
    leaders = [str(name) for name in frame.filter(frame["rank"] == 1)["item"]]
    best, verb = enumerate_names(leaders, 3), "is ranked" if len(leaders) == 1 else "share"
    if not findings.has_uncertainty or len(leaders) > 1:
        place = "first" if len(leaders) == 1 else "the first rank"
        return f"{best} {verb} {place}.", "" if findings.has_uncertainty else "Uncertainty was not computed."
    groups = int(frame["group"].max())
    near = [str(name) for name in frame.filter(frame["group"] == 1)["item"][1:]]
    if not near:
        first = f"{best} is ranked first, clearly above {'the other item' if frame.height == 2 else 'all others'}."
    elif len(near) == frame.height - 1:
        return f"{best} is ranked first, but not clearly above any other item.", "More judgments are needed."
    else:
        first = f"{best} is ranked first, but not clearly above {enumerate_names(near, 3)}."
    return first, f"The {frame.height:,} items form {count(groups, 'tie group')}."


def _how_to_read(findings: Findings) -> str:
    if not findings.has_uncertainty:
        return "Best first. The dot is the score; larger is better."
    return (
        f"Best first. The dot is the score, the bar its {percent(findings.level)} interval. Items in one shaded band "
        "form a tie group: their order is uncertain."
    )


def _queries(findings: Findings) -> Html:
    items, frame = findings.ranking.items, findings.frame
    drawn, rows = [], 0
    for code, query in enumerate(items.queries):
        block = frame[items.of_query(code)]
        if rows + block.height > _MAX_ROWS:
            break
        rows += block.height
        first = str(block["item"][0])
        summary = join(tag("strong", query), f": {count(block.height, 'item')}, {first} first")
        drawn.append(fold(summary, ranked_items(findings, block, str(query)), open_=code < _VISIBLE_QUERIES))
    return join(*drawn)


def ranked_items(findings: Findings, frame: Any, query: str) -> Html:
    """The first items, and the others folded."""
    shown = frame.head(_MAX_ROWS)
    caption = f"Items of {query}, best first" if query else "Items, best first"
    low, high = _span(findings, frame)
    rows = list(_rows(findings, shown, low, high))
    if len(rows) <= _VISIBLE_ROWS + 10:
        return _table(findings, rows, caption)
    more = fold(
        f"{count(len(rows) - _VISIBLE_ROWS, 'more item')}",
        _table(findings, rows[_VISIBLE_ROWS:], f"{caption}, continued"),
    )
    return join(_table(findings, rows[:_VISIBLE_ROWS], caption), more)


def _missing(findings: Findings) -> Html:
    """Say what was left out."""
    items, rows = findings.ranking.items, 0
    if len(items.queries) == 1:
        left = len(items) - _MAX_ROWS
        return (
            paragraph(f"{count(left, 'more item')} not shown: ranking.table() (or --out) has all.")
            if left > 0
            else Html("")
        )
    for code in range(len(items.queries)):
        block = items.of_query(code)
        rows += block.stop - block.start
        if rows > _MAX_ROWS:
            left = len(items.queries) - code
            return paragraph(
                f"{count(left, 'more query', 'more queries')} not shown: ranking.table() (or --out) has all."
            )
    return Html("")


Row = tuple[int, Html]
"""Tie group and table row of an item."""


def _rows(findings: Findings, frame: Any, low: float, high: float) -> Iterator[Row]:
    digits = decimals(float(frame["score"].max() - frame["score"].min()))
    reach = NormalDist().inv_cdf(0.5 + findings.level / 2)
    span = (high - low) or 1.0
    judgment_kind = frame.columns[-1]
    for row in frame.iter_rows(named=True):
        error = row.get("std_error")
        at = 100 * (row["score"] - low) / span
        drawn = [tag("b", style=f"--at:{at:.1f}")]
        if error is not None:
            half = 100 * reach * error / span
            drawn.insert(0, tag("i", style=f"--from:{max(0, at - half):.1f};--to:{min(100, at + half):.1f}"))
        cells = [
            tag("td", row["rank"], class_="num"),
            tag("th", row["item"], scope="row"),
            tag("td", tag("div", *drawn, class_="range"), class_="chart"),
            tag("td", _signed(row["score"], digits), class_="num wide"),
        ]
        if error is not None:
            first, last = row["rank_low"], row["rank_high"]
            cells.append(tag("td", f"± {error:.{digits}f}", class_="num wide"))
            cells.append(tag("td", f"{first}–{last}" if first < last else str(first), class_="num"))
        cells.append(tag("td", f"{row[judgment_kind]:,}", class_="num wide"))
        yield int(row.get("group") or 1), tag("tr", *cells)


def _table(findings: Findings, rows: list[Row], caption: str) -> Html:
    heads = [("rank", "num"), ("item", None), ("interval" if findings.has_uncertainty else "", "chart")]
    heads.append(("score", "num wide"))
    if findings.has_uncertainty:
        heads += [("error", "num wide"), ("ranks", "num")]
    heads.append((findings.frame.columns[-1], "num wide"))
    top = tag("tr", *(_head(name, kind) for name, kind in heads))
    bodies = [
        tag("tbody", *(row for _, row in rows_of_group), class_="even" if group % 2 == 0 else "odd")
        for group, rows_of_group in groupby(rows, key=lambda row: row[0])
    ]
    whole = tag("table", tag("caption", caption), tag("thead", top), *bodies, class_="order")
    return scrolling(whole, caption)


def _head(name: str, kind: str | None) -> Html:
    return tag("th", name, scope="col", class_=kind) if name else tag("td", class_=kind)


def _span(findings: Findings, frame: Any) -> tuple[float, float]:
    """Range of the scores, with room for bars of median length; longer bars are cut off."""
    room = 0.0
    if findings.has_uncertainty:
        room = 1.5 * NormalDist().inv_cdf(0.5 + findings.level / 2) * float(frame["std_error"].median())
    return float(frame["score"].min()) - room, float(frame["score"].max()) + room


def _signed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


# The overall of several leaderboards, and how categories or criteria differ.

_MAX_DIFFERENCES = 40


def overall(findings: Findings) -> Section | None:
    """The ranking over all categories or criteria; None if there is none."""
    ranking = findings.ranking.overall
    if ranking is None:
        return None
    frame = ranking.to_polars(findings.level, findings.show_uncertainty)
    parts = [ranked_items(findings, frame, "")]
    if findings.has_uncertainty:
        by_category = DEVIATION in findings.ranking.item_parameters
        parts.append(_differences(findings) if by_category else _correlations(findings))
    return section("overall", "Overall", *parts)


def _differences(findings: Findings) -> Html:
    found = category_differences(findings.ranking, findings.level)
    sure = found.filter(found["sure"]).head(_MAX_DIFFERENCES)
    if not sure.height:
        return paragraph("No item differs significantly between categories.")
    digits = 0 if float(sure["std_error"].max()) > 1 else 2  # type: ignore[arg-type]
    rows = [
        (category, item, f"{difference:+.{digits}f}", f"± {error:.{digits}f}", rank, "" if above is None else above)
        for category, item, difference, error, _, rank, above in sure.iter_rows()
    ]
    heads = ("category", "item", "difference", "error", "rank", "overall rank")
    return table(heads, rows, caption="Items that differ significantly from their overall score", numbers=(2, 3, 4, 5))


def _correlations(findings: Findings) -> Html:
    found = criterion_correlations(findings.ranking, findings.level)
    rows = [
        (
            first,
            second,
            "" if value != value else f"{value:+.2f}",
            "" if value != value else f"{low:+.2f} to {high:+.2f}",
        )
        for first, second, value, low, high, _ in found.iter_rows()
    ]
    heads = ("criterion", "and", "correlation", f"between ({percent(findings.level)})")
    return table(heads, rows, caption="Correlations of true scores by two criteria", numbers=(2, 3))


# Scores over time: curves with bands, and the items that changed.

_MAX_CURVES = 6
_MAX_CHANGES = 200
# Told apart on light and dark paper, and by people who see fewer colours.
_COLOURS = ("#1f77b4", "#d1601f", "#2a9d5c", "#9457b8", "#b8860b", "#c0392b")


def drift(findings: Findings) -> Section | None:
    found = findings.ranking.drift
    if found is None:
        return None
    scale = findings.ranking.scale
    changes = found.changes(findings.level, scale)
    digits = decimals(float(np.ptp(found.on_scale(scale)[0])))
    rows = [
        (
            item,
            f"{first:.{digits}f}",
            f"{last:.{digits}f}",
            f"{change:+.{digits}f}",
            f"{low:+.{digits}f} to {high:+.{digits}f}",
            f"{p_value:.2g}",
        )
        for item, first, last, change, low, high, p_value in changes.head(_MAX_CHANGES).iter_rows()
    ]
    head = ("item", "first", "last", "change", f"between ({findings.level:.0%})", "p-value")
    shown = table(head, rows, caption="Change from the first period to the last", numbers=range(1, 6))
    return section(
        "drift",
        "Change over time",
        paragraph(found.sentence(), "The ranking is that of the last period."),
        drift_figure(found, scale, findings.level),
        fold("All items", shown),
    )


def drift_figure(found: Drift, scale: Scale | None, level: float) -> Html:
    """Return the curves of the items that changed and of the best ones, with bands."""
    scores, errors = found.on_scale(scale)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    shown = _chosen(found)
    low, high = scores[:, shown] - z * errors[:, shown], scores[:, shown] + z * errors[:, shown]
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    x = _time_axis(found)
    y = linear("score" if scale is None else scale.name, float(low.min()), float(high.max()))
    across = [x.position(value) for value in middles]
    drawn, keys = [], []
    for n, item in enumerate(shown):
        colour = _COLOURS[n]
        drawn.append(_curve(across, y, scores[:, item], low[:, n], high[:, n], colour))
        key = tag("span", "", class_="key", style=f"background:{colour}")
        keys.append(tag("li", key, str(found.items.labels[item])))
    inner = tag("svg", *drawn, viewBox="0 0 1000 1000", preserveAspectRatio="none", width="100%", height="100%")
    figure = frame_figure(inner, x, y, "Scores of items over time, with bands")
    return join(figure, tag("ul", *keys, class_="keys"))


def _chosen(found: Drift) -> list[int]:
    """Items whose curves are drawn: those that changed most, then the best."""
    labels = found.items.labels.tolist()
    change = np.abs(found.scores[-1] - found.scores[0])
    changed = sorted((labels.index(name) for name in found.changed), key=lambda n: -change[n])
    best = np.argsort(-found.scores[-1], kind="stable").tolist()
    return list(dict.fromkeys([*changed[: _MAX_CURVES - 2], *best]))[:_MAX_CURVES]


def _curve(across: list[float], y: Axis, score: FloatArray, low: FloatArray, high: FloatArray, colour: str) -> Html:
    def points(values: FloatArray) -> list[str]:
        return [f"{1000 * a:.1f},{1000 * (1 - y.position(float(v))):.1f}" for a, v in zip(across, values, strict=True)]

    band = " ".join(points(high) + points(low)[::-1])
    line = " ".join(points(score))
    style = f"fill:none;stroke:{colour};stroke-width:2;vector-effect:non-scaling-stroke"
    return join(
        tag("polygon", points=band, style=f"fill:{colour};fill-opacity:.15;stroke:none"),
        tag("polyline", points=line, style=style),
    )


def _time_axis(found: Drift) -> Axis:
    low, high = float(found.edges[0]), float(found.edges[-1])
    values = np.linspace(low, high, 5)[:-1] + (high - low) / 8
    ticks = tuple((float(value), period_label(value, found.edges)) for value in values)
    return Axis("time", lambda value: (value - low) / (high - low), ticks)
