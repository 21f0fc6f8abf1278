"""Curves of accuracy as votes grow, drawn."""

from __future__ import annotations

from os import PathLike
from typing import Any

import polars as pl

from crowdrank.reports.drawing import check_drawable, write_chart

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008): told apart by the colour-blind as well."""
_DASHES = ((1, 0), (6, 3), (2, 2))
"""Of the first seven lines, of the next seven …"""


def draw_curves(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Lines with bands of ± one standard error, of a table with policy, votes, accuracy and std_error."""
    target = check_drawable(path)
    write_chart(_chart(frame), target)


def _chart(frame: pl.DataFrame) -> Any:
    import altair

    spread = pl.col("std_error").fill_null(0)
    table = frame.with_columns(low=pl.col("accuracy") - spread, high=pl.col("accuracy") + spread)
    base = altair.Chart(table).encode(
        x=altair.X("votes:Q", title="votes", axis=altair.Axis(format=",d", grid=False)),
        **_looks(altair, _best_first(frame)),
    )
    height: Any = {"title": "share of pairs in the right order", "scale": altair.Scale(zero=False)}
    hints = [altair.Tooltip("policy"), altair.Tooltip("votes", format=",")]
    hints += [altair.Tooltip(name, format=".3f") for name in ("accuracy", "std_error")]
    bands = base.mark_area(opacity=0.18).encode(y=altair.Y("low:Q", **height), y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=altair.Y("accuracy:Q", **height))
    points = base.mark_circle(size=24, opacity=1).encode(y="accuracy:Q", tooltip=hints)
    note = "" if frame["std_error"].is_null().all() else "bands: ± one standard error"
    caption = altair.Title(note, orient="bottom", anchor="end", fontSize=12, fontWeight="normal", color="#555555")
    drawn = (bands + lines + points).properties(width=620, height=380, title=caption)
    axes: Any = {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal", "titlePadding": 10}
    return (
        drawn.configure(font="sans-serif")
        .configure_axis(**axes, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=13, labelLimit=320)
        .configure_view(stroke=None)
    )


def _looks(altair: Any, names: list[str]) -> dict[str, Any]:
    """A colour and a dash for each policy; the legend stands in the order in which the lines end."""
    colours = [_COLOURS[n % len(_COLOURS)] for n in range(len(names))]
    dashes = [_DASHES[n // len(_COLOURS) % len(_DASHES)] for n in range(len(names))]
    legend = altair.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolSize=400, symbolStrokeWidth=3)
    return {
        "color": altair.Color("policy:N", scale=altair.Scale(domain=names, range=colours), legend=legend),
        "strokeDash": altair.StrokeDash("policy:N", scale=altair.Scale(domain=names, range=dashes), legend=legend),
    }


def _best_first(frame: pl.DataFrame) -> list[str]:
    last = frame.sort("votes", maintain_order=True).group_by("policy", maintain_order=True).last()
    return [str(name) for name in last.sort("accuracy", descending=True, maintain_order=True)["policy"]]
