"""Figures as files: rankings, learning curves of policies, and heat maps; and checks that the files can be written."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.errors import DataError, SettingError
from crowdrank.results import Domains, Ranking

_FIGURE_SUFFIXES = (".html", ".svg", ".png")
_REPORT_SUFFIXES = (".html", ".htm")
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
"""Menu of an HTML figure: pictures, and nothing that needs a network."""
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008): distinguishable for the colour-blind."""
_DASHES = ((1, 0), (6, 3), (2, 2))
"""Dashes of the first seven lines, of the next seven, and of the rest."""
_HEAT_COLOURS = ("#B35806", "#F7F7F7", "#2166AC")
"""Reversed, random, expert: distinguishable for the colour-blind."""
_UNKNOWN_COLOUR = "#D0D0D0"
_MAX_HEIGHT, _MAX_ROW_HEIGHT, _COLUMN_WIDTH = 1400, 22, 56
_MIN_TEXT_ROW_HEIGHT = 14
"""Rows lower than this have no numbers in their cells."""


def check_drawable(path: str | PathLike[str]) -> Path:
    """Return the path of a figure; raise if the suffix, the folder or the drawing library is missing."""
    target = Path(path)
    if target.suffix.lower() not in _FIGURE_SUFFIXES:
        raise SettingError(f"{target.name}: figures are drawn as {', '.join(_FIGURE_SUFFIXES)}, got {target.suffix!r}.")
    _check_folder(target)
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401  (altair draws with it)
    except ImportError as error:
        raise SettingError("Figures need Altair: pip install 'crowdrank[reports]'.") from error
    return target


def check_report(path: str | PathLike[str]) -> Path:
    """Return the path of a report; raise if the suffix or the folder is wrong."""
    target = Path(path)
    if target.suffix.lower() not in _REPORT_SUFFIXES:
        raise SettingError(f"{target.name}: a report is an HTML page (.html), got {target.suffix!r}.")
    _check_folder(target)
    return target


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise SettingError(f"{target}: the folder {target.parent} does not exist.")


def write_chart(chart: Any, target: Path) -> None:
    """Write an Altair chart in the format of the file's suffix."""
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
    """Write `Ranking.plot` to a file.

    Parameters
    ----------
    ranking : Ranking
        The ranking.
    path : path
        File to write: .html, .svg or .png.
    top : int, default 30
        Number of items per query.
    level : float, default 0.95
        Coverage of the intervals.
    uncertainty : bool, default True
        Whether to draw intervals.
    """
    target = check_drawable(path)
    write_chart(ranking.plot(top=top, level=level, uncertainty=uncertainty), target)


def draw_curves(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write learning curves of policies, with bands of ± one standard error.

    Parameters
    ----------
    frame : polars.DataFrame
        Table with policy, votes, accuracy and std_error.
    path : path
        File to write: .html, .svg or .png.
    """
    target = check_drawable(path)
    write_chart(_curve_chart(frame), target)


def _curve_chart(frame: pl.DataFrame) -> Any:
    import altair

    spread = pl.col("std_error").fill_null(0)
    table = frame.with_columns(low=pl.col("accuracy") - spread, high=pl.col("accuracy") + spread)
    base = altair.Chart(table).encode(
        x=altair.X("votes:Q", title="votes", axis=altair.Axis(format=",d", grid=False)),
        **_line_styles(altair, _best_curve_first(frame)),
    )
    y_axis: Any = {"title": "share of pairs in the right order", "scale": altair.Scale(zero=False)}
    tooltip = [altair.Tooltip("policy"), altair.Tooltip("votes", format=",")]
    tooltip += [altair.Tooltip(name, format=".3f") for name in ("accuracy", "std_error")]
    bands = base.mark_area(opacity=0.18).encode(y=altair.Y("low:Q", **y_axis), y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=altair.Y("accuracy:Q", **y_axis))
    points = base.mark_circle(size=24, opacity=1).encode(y="accuracy:Q", tooltip=tooltip)
    note = "" if frame["std_error"].is_null().all() else "bands: ± one standard error"
    caption = altair.Title(note, orient="bottom", anchor="end", fontSize=12, fontWeight="normal", color="#555555")
    chart = (bands + lines + points).properties(width=620, height=380, title=caption)
    axes: Any = {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal", "titlePadding": 10}
    return (
        chart.configure(font="sans-serif")
        .configure_axis(**axes, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=13, labelLimit=320)
        .configure_view(stroke=None)
    )


def _line_styles(altair: Any, names: list[str]) -> dict[str, Any]:
    """Colour and dash of each policy; the legend has the order in which the lines end."""
    colours = [_COLOURS[n % len(_COLOURS)] for n in range(len(names))]
    dashes = [_DASHES[n // len(_COLOURS) % len(_DASHES)] for n in range(len(names))]
    legend = altair.Legend(title=None, symbolType="stroke", symbolOpacity=1, symbolSize=400, symbolStrokeWidth=3)
    return {
        "color": altair.Color("policy:N", scale=altair.Scale(domain=names, range=colours), legend=legend),
        "strokeDash": altair.StrokeDash("policy:N", scale=altair.Scale(domain=names, range=dashes), legend=legend),
    }


def _best_curve_first(frame: pl.DataFrame) -> list[str]:
    last = frame.sort("votes", maintain_order=True).group_by("policy", maintain_order=True).last()
    return [str(name) for name in last.sort("accuracy", descending=True, maintain_order=True)["policy"]]


def draw_heat_map(domains: Domains, path: str | PathLike[str]) -> None:
    """Write a heat map of the quality of every annotator in every domain.

    Quality above one half is blue, below it orange; cells without judgments are grey. The best annotators come first.
    Domains without queries are left out.

    Parameters
    ----------
    domains : Domains
        Domains of a ranking, ``ranking.domains``.
    path : path
        File to write: .html, .svg or .png.
    """
    target = check_drawable(path)
    if not len(domains.annotators):
        raise DataError("A heat map needs annotators, but the judgments name none.")
    write_chart(_heat_chart(domains), target)


def _heat_chart(domains: Domains) -> Any:
    import altair

    row_height = max(1, min(_MAX_ROW_HEIGHT, _MAX_HEIGHT // len(domains.annotators)))
    x_axis = altair.Axis(orient="top", labelAngle=0, domain=False, ticks=False)
    y_axis = altair.Axis(domain=False, ticks=False, labelOverlap=True, labelLimit=200)
    tooltip = [altair.Tooltip(name) for name in ("annotator:N", "domain:O", "queries:Q", "verdict:N", "between:N")]
    tooltip += [altair.Tooltip("quality:Q", format=".2f"), altair.Tooltip("judgments:Q", format=",")]
    base = altair.Chart(altair.InlineData(values=_cells(domains))).encode(
        x=altair.X("domain:O", title="domain", axis=x_axis),
        y=altair.Y("annotator:N", title=None, sort=None, axis=y_axis),  # in the order of the cells
        tooltip=tooltip,
    )
    scale = altair.Scale(domain=[0, 0.5, 1], range=list(_HEAT_COLOURS), clamp=True)
    colour = altair.Color("quality:Q", scale=scale, legend=altair.Legend(title="quality", format=".1f"))
    chart = base.mark_rect().encode(
        color=altair.condition("datum.judgments > 0", colour, altair.value(_UNKNOWN_COLOUR))
    )
    if row_height >= _MIN_TEXT_ROW_HEIGHT:
        text_colour = altair.condition("datum.dark", altair.value("#FFFFFF"), altair.value("#222222"))
        chart += base.mark_text(fontSize=11).encode(text="label:N", color=text_colour)
    note = "probability to choose the better of two items one unit apart; grey: no judgments"
    caption: Any = {"orient": "bottom", "anchor": "start", "offset": 10, "fontSize": 12, "fontWeight": "normal"}
    chart = chart.properties(
        width={"step": _COLUMN_WIDTH}, height={"step": row_height}, title=altair.Title(note, color="#555555", **caption)
    )
    axes: Any = {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal", "titlePadding": 10}
    return chart.configure(font="sans-serif").configure_axis(**axes, grid=False).configure_view(stroke=None)


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
    """Annotators by mean quality over their judgments; those without judgments come last."""
    total = domains.n_judgments.sum(axis=1)
    mean = np.sum(domains.n_judgments * domains.quality[0], axis=1) / np.maximum(total, 1)
    return [int(k) for k in np.lexsort((-mean, total == 0))]
