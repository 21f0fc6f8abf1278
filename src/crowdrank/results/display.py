"""A ranking to look at: a plot of scores with their intervals, and an HTML table for notebooks."""

from __future__ import annotations

from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl

from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.results.ranking import Ranking


_COLOURS = ("#1F63AD", "#B8500F")
"""Colours of alternating tie groups, distinguishable for the colour-blind."""
_ROW_HEIGHT = 20
_MAX_QUERIES_IN_PLOT = 12
_MAX_ROWS = 20
_MAX_QUERIES_IN_TABLE = 3


def plot(ranking: Ranking, query: object | None, top: int, level: float, uncertainty: bool) -> Any:
    """Return an Altair chart of one query, or of the first queries one below the other."""
    altair = _altair()
    if top < 1:
        raise SettingError(f"top must be at least 1, got {top}.")
    items = ranking.items
    frame = ranking.to_polars(level, uncertainty)
    codes = range(len(items.queries)) if query is None else [items.query_code(query)]
    charts = []
    for code in list(codes)[:_MAX_QUERIES_IN_PLOT]:
        block = frame[items.of_query(code)]
        name = str(items.queries[code]) if items.has_queries else ""
        charts.append(_chart(altair, block.head(top), _title(name, block.height, min(top, block.height)), level))
    figure = charts[0] if len(charts) == 1 else altair.vconcat(*charts)
    if len(codes) > _MAX_QUERIES_IN_PLOT:
        figure = figure.properties(title=f"{_MAX_QUERIES_IN_PLOT} of {len(codes):,} queries")
    axes: Any = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 260}
    return figure.configure(font="sans-serif").configure_axis(**axes).configure_view(stroke=None)


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise SettingError("Figures need Altair: pip install 'crowdrank[reports]'.") from error
    return altair


def _title(query: str, size: int, shown: int) -> str:
    truncated = f"the first {shown:,} of {size:,}" if shown < size else ""
    return ", ".join(filter(None, (query, truncated)))


def _chart(altair: Any, frame: pl.DataFrame, title: str, level: float) -> Any:
    has_uncertainty = "std_error" in frame.columns
    half_width = NormalDist().inv_cdf(0.5 + level / 2) * pl.col("std_error") if has_uncertainty else pl.lit(0.0)
    shown = frame.with_columns(low=pl.col("score") - half_width, high=pl.col("score") + half_width)
    tooltip = [altair.Tooltip("rank:Q"), altair.Tooltip("item:N"), altair.Tooltip("score:Q", format=".3f")]
    if has_uncertainty:
        tooltip += [altair.Tooltip(f"{name}:Q") for name in ("rank_low", "rank_high", "group")]
        shown = shown.with_columns(parity=pl.col("group") % 2)
    rows = altair.InlineData(values=shown.to_dicts())
    y = altair.Y("item:N", sort=None, title=None, axis=altair.Axis(domain=False, ticks=False, grid=False))
    x_title = f"score with {level:.0%} interval" if has_uncertainty else "score"
    x = altair.X("low:Q" if has_uncertainty else "score:Q", title=x_title, scale=altair.Scale(zero=False, nice=True))
    base = altair.Chart(rows).encode(y=y, tooltip=tooltip)
    scale = altair.Scale(domain=[1, 0], range=list(_COLOURS))
    colour = altair.Color("parity:N", scale=scale, legend=None) if has_uncertainty else altair.value(_COLOURS[0])
    chart = base.mark_circle(size=70, opacity=1).encode(x="score:Q", color=colour)
    if has_uncertainty:
        chart = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=x, x2="high:Q", color=colour) + chart
    chart = chart.properties(width=420, height={"step": _ROW_HEIGHT})
    return chart.properties(title=altair.Title(title, anchor="start", fontSize=13)) if title else chart


def ranking_html(ranking: Ranking) -> str:
    """Return the best items of the first queries as tables, with the notes below."""
    frame, items = ranking.to_polars(), ranking.items
    parts = [f"<p><b>{escape(ranking.model)}</b>: {len(items):,} items</p>"]
    for code, query in enumerate(items.queries[:_MAX_QUERIES_IN_TABLE]):
        caption = str(query) if items.has_queries else ""
        parts.append(_table(frame[items.of_query(code)], caption))
    if (more := len(items.queries) - _MAX_QUERIES_IN_TABLE) > 0:
        parts.append(f"<p>… and {more:,} more queries</p>")
    if ranking.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in ranking.notes) + "</ul>")
    return "<div>" + "".join(parts) + "</div>"


def _table(frame: pl.DataFrame, caption: str) -> str:
    has_uncertainty = "std_error" in frame.columns
    head = ["rank", "item", "score"] + ["± error", "rank interval", "group"] * has_uncertainty
    rows = [_cells(row, has_uncertainty) for row in frame.head(_MAX_ROWS).iter_rows(named=True)]
    if frame.height > _MAX_ROWS:
        rows.append(["", f"… and {frame.height - _MAX_ROWS:,} more"] + [""] * (len(head) - 2))
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: dict[str, Any], has_uncertainty: bool) -> list[str]:
    score = row["score"]
    # Elo points, without an exponent
    cells = [str(row["rank"]), str(row["item"]), f"{score:.0f}" if abs(score) >= 1000 else f"{score:.3g}"]
    if has_uncertainty:
        low, high = row["rank_low"], row["rank_high"]
        interval = f"{low}–{high}" if low < high else str(low)
        cells += [f"{row['std_error']:.2g}", interval, str(row["group"])]
    return cells


# The table of a ranking, and the note on annotators who answer in reverse.
