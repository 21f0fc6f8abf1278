"""A ranking drawn: items down, scores across, with the range each is likely to lie in."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl

from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.results.ranking import Ranking

_COLOURS = ("#1F63AD", "#B8500F")
"""Of groups in turn: told apart by the colour-blind as well."""
_ROW = 20
_MOST_QUERIES = 12


def plot(ranking: Ranking, query: object | None, top: int, level: float, uncertainty: bool) -> Any:
    """An Altair chart; one below the other for the first queries, where there are several and none is named."""
    altair = _altair()
    if top < 1 or not 0 < level < 1:
        raise SettingError(f"top must be at least 1 and level between 0 and 1, got {top} and {level}.")
    items = ranking.items
    frame = ranking.frame(level, uncertainty)
    codes = range(len(items.queries)) if query is None else [items.query_code(query)]
    charts = []
    for code in list(codes)[:_MOST_QUERIES]:
        block = frame[items.of_query(code)]
        name = str(items.queries[code]) if items.has_queries else ""
        charts.append(_chart(altair, block.head(top), _title(name, block.height, min(top, block.height)), level))
    drawn = charts[0] if len(charts) == 1 else altair.vconcat(*charts)
    if len(codes) > _MOST_QUERIES:
        drawn = drawn.properties(title=f"{_MOST_QUERIES} of {len(codes):,} queries")
    axes: Any = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 260}
    return drawn.configure(font="sans-serif").configure_axis(**axes).configure_view(stroke=None)


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise SettingError("Nothing to draw with: pip install 'crowdrank[reports]' brings it.") from error
    return altair


def _title(query: str, size: int, shown: int) -> str:
    cut = f"the first {shown:,} of {size:,}" if shown < size else ""
    return ", ".join(filter(None, (query, cut)))


def _chart(altair: Any, frame: pl.DataFrame, title: str, level: float) -> Any:
    measured = "std_error" in frame.columns
    reach = NormalDist().inv_cdf(0.5 + level / 2) * pl.col("std_error") if measured else pl.lit(0.0)
    shown = frame.with_columns(low=pl.col("score") - reach, high=pl.col("score") + reach)
    hints = [altair.Tooltip("rank:Q"), altair.Tooltip("item:N"), altair.Tooltip("score:Q", format=".3f")]
    if measured:
        hints += [altair.Tooltip(f"{name}:Q") for name in ("rank_low", "rank_high", "group")]
        shown = shown.with_columns(turn=pl.col("group") % 2)
    rows = altair.InlineData(values=shown.to_dicts())
    down = altair.Y("item:N", sort=None, title=None, axis=altair.Axis(domain=False, ticks=False, grid=False))
    said = f"score, with the range it lies in with probability {level:.0%}" if measured else "score"
    across = altair.X("low:Q" if measured else "score:Q", title=said, scale=altair.Scale(zero=False, nice=True))
    base = altair.Chart(rows).encode(y=down, tooltip=hints)
    scale = altair.Scale(domain=[1, 0], range=list(_COLOURS))
    colour = altair.Color("turn:N", scale=scale, legend=None) if measured else altair.value(_COLOURS[0])
    drawn = base.mark_circle(size=70, opacity=1).encode(x="score:Q", color=colour)
    if measured:
        drawn = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=across, x2="high:Q", color=colour) + drawn
    drawn = drawn.properties(width=420, height={"step": _ROW})
    return drawn.properties(title=altair.Title(title, anchor="start", fontSize=13)) if title else drawn
