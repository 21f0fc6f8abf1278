"""The ranking: items with scores, intervals and tie groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist
from typing import Any

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    count,
    decimals,
    enumerate_names,
    fold,
    join,
    paragraph,
    percent,
    scrolling,
    section,
    table,
    tag,
)
from crowdrank.results import category_differences, criterion_correlations
from crowdrank.results.categories import DEVIATION

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
