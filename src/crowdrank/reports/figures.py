"""Charts as files: a page that needs no network, or a picture.

A ranking as a figure for a paper or a page.

Curves of accuracy as votes grow, drawn.

Who is good at what, drawn: annotators down, domains across, quality in colour.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.errors import DataError, SettingError
from crowdrank.results import Domains, Ranking

_ENDINGS = (".html", ".svg", ".png")
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
"""What the menu of a page offers: pictures, and nothing that needs a network."""


def check_drawable(path: str | PathLike[str]) -> Path:
    """Refuses what cannot be drawn, before anyone waits for it."""
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise SettingError(f"{target.name}: figures are drawn as {', '.join(_ENDINGS)}, got {target.suffix!r}.")
    if not target.parent.is_dir():
        raise SettingError(f"{target}: there is no folder {target.parent} to draw into.")
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401  (what altair draws with)
    except ImportError as error:
        raise SettingError("Nothing to draw with: pip install 'crowdrank[reports]' brings it.") from error
    return target


def write_chart(chart: Any, target: Path) -> None:
    """By the ending of the file."""
    try:
        if target.suffix.lower() == ".html":
            chart.save(str(target), format="html", inline=True, embed_options={"actions": _ACTIONS})
        else:
            chart.save(str(target), format=target.suffix.lower()[1:], scale_factor=2)
    except OSError as error:
        raise SettingError(f"{target}: cannot be written ({error.strerror or error}).") from error


def draw_ranking(
    ranking: Ranking, path: str | PathLike[str], *, top: int = 30, level: float = 0.95, uncertainty: bool = True
) -> None:
    """What `Ranking.plot` shows, by the ending of the file: .html, .svg or .png."""
    target = check_drawable(path)
    write_chart(ranking.plot(top=top, level=level, uncertainty=uncertainty), target)


_CURVE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008): told apart by the colour-blind as well."""
_DASHES = ((1, 0), (6, 3), (2, 2))
"""Of the first seven lines, of the next seven …"""


def draw_curves(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Lines with bands of ± one standard error, of a table with policy, votes, accuracy and std_error."""
    target = check_drawable(path)
    write_chart(_curve_chart(frame), target)


def _curve_chart(frame: pl.DataFrame) -> Any:
    import altair

    spread = pl.col("std_error").fill_null(0)
    table = frame.with_columns(low=pl.col("accuracy") - spread, high=pl.col("accuracy") + spread)
    base = altair.Chart(table).encode(
        x=altair.X("votes:Q", title="votes", axis=altair.Axis(format=",d", grid=False)),
        **_looks(altair, _best_curve_first(frame)),
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
    colours = [_CURVE_COLOURS[n % len(_CURVE_COLOURS)] for n in range(len(names))]
    dashes = [_DASHES[n // len(_CURVE_COLOURS) % len(_DASHES)] for n in range(len(names))]
    legend = altair.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolSize=400, symbolStrokeWidth=3)
    return {
        "color": altair.Color("policy:N", scale=altair.Scale(domain=names, range=colours), legend=legend),
        "strokeDash": altair.StrokeDash("policy:N", scale=altair.Scale(domain=names, range=dashes), legend=legend),
    }


def _best_curve_first(frame: pl.DataFrame) -> list[str]:
    last = frame.sort("votes", maintain_order=True).group_by("policy", maintain_order=True).last()
    return [str(name) for name in last.sort("accuracy", descending=True, maintain_order=True)["policy"]]


_HEAT_COLOURS = ("#B35806", "#F7F7F7", "#2166AC")
"""Reversed, a coin, expert: told apart by the colour-blind as well."""
_UNKNOWN = "#D0D0D0"
_TALLEST, _ROW, _COLUMN = 1400, 22, 56
_LEAST_LEGIBLE = 14
"""Rows less high than this have no numbers in them."""


def draw_heat_map(domains: Domains, path: str | PathLike[str]) -> None:
    """The quality of every annotator in every domain, blue above one half and orange below, with the verdict at hand.

    The best annotators come first. Grey stands where they judged nothing; domains without a query are left out.
    """
    target = check_drawable(path)
    if not len(domains.annotators):
        raise DataError("There is no heat map without annotators: the judgments name none.")
    write_chart(_heat_chart(domains), target)


def _heat_chart(domains: Domains) -> Any:
    import altair

    row = max(1, min(_ROW, _TALLEST // len(domains.annotators)))
    across = altair.Axis(orient="top", labelAngle=0, domain=False, ticks=False)
    down = altair.Axis(domain=False, ticks=False, labelOverlap=True, labelLimit=200)
    hints = [altair.Tooltip(name) for name in ("annotator:N", "domain:O", "queries:Q", "verdict:N", "between:N")]
    hints += [altair.Tooltip("quality:Q", format=".2f"), altair.Tooltip("judgments:Q", format=",")]
    base = altair.Chart(altair.InlineData(values=_cells(domains))).encode(
        x=altair.X("domain:O", title="domain", axis=across),
        y=altair.Y("annotator:N", title=None, sort=None, axis=down),  # as the cells come
        tooltip=hints,
    )
    scale = altair.Scale(domain=[0, 0.5, 1], range=list(_HEAT_COLOURS), clamp=True)
    shade = altair.Color("quality:Q", scale=scale, legend=altair.Legend(title="quality", format=".1f"))
    drawn = base.mark_rect().encode(color=altair.condition("datum.judgments > 0", shade, altair.value(_UNKNOWN)))
    if row >= _LEAST_LEGIBLE:
        ink = altair.condition("datum.dark", altair.value("#FFFFFF"), altair.value("#222222"))
        drawn += base.mark_text(fontSize=11).encode(text="label:N", color=ink)
    note = "the chance to name the better of two items one unit apart; grey where nothing was judged"
    caption: Any = {"orient": "bottom", "anchor": "start", "offset": 10, "fontSize": 12, "fontWeight": "normal"}
    drawn = drawn.properties(
        width={"step": _COLUMN}, height={"step": row}, title=altair.Title(note, color="#555555", **caption)
    )
    axes: Any = {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal", "titlePadding": 10}
    return drawn.configure(font="sans-serif").configure_axis(**axes, grid=False).configure_view(stroke=None)


def _cells(domains: Domains) -> list[dict[str, Any]]:
    quality, low, high = domains.quality
    known = domains.n_judgments > 0
    dark = known & (np.abs(quality - 0.5) > 0.33)
    return [
        {
            "annotator": str(domains.annotators[k]),
            "domain": n + 1,
            "queries": int(domains.sizes[n]),
            "quality": float(quality[k, n]),
            "between": f"{low[k, n]:.2f}–{high[k, n]:.2f}",
            "verdict": domains.verdict[k, n],
            "judgments": int(domains.n_judgments[k, n]),
            "label": f"{quality[k, n]:.2f}" if known[k, n] else "?",
            "dark": bool(dark[k, n]),
        }
        for k in _best_first(domains)
        for n in np.flatnonzero(domains.sizes).tolist()
    ]


def _best_first(domains: Domains) -> list[int]:
    """By their mean quality where they judged, every judgment counting once; who judged nothing comes last."""
    total = domains.n_judgments.sum(axis=1)
    mean = np.sum(domains.n_judgments * domains.quality[0], axis=1) / np.maximum(total, 1)
    return [int(k) for k in np.lexsort((-mean, total == 0))]
