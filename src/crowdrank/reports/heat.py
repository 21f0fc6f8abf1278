"""Who is good at what, drawn: annotators down, domains across, quality in colour."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from crowdrank.errors import DataError
from crowdrank.reports.drawing import check_drawable, write_chart
from crowdrank.results import Domains

_COLOURS = ("#B35806", "#F7F7F7", "#2166AC")
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
    write_chart(_chart(domains), target)


def _chart(domains: Domains) -> Any:
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
    scale = altair.Scale(domain=[0, 0.5, 1], range=list(_COLOURS), clamp=True)
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
    known = domains.judged > 0
    dark = known & (np.abs(quality - 0.5) > 0.33)
    return [
        {
            "annotator": str(domains.annotators[k]), "domain": n + 1, "queries": int(domains.sizes[n]),
            "quality": float(quality[k, n]), "between": f"{low[k, n]:.2f}–{high[k, n]:.2f}",
            "verdict": domains.verdict[k, n], "judgments": int(domains.judged[k, n]),
            "label": f"{quality[k, n]:.2f}" if known[k, n] else "?", "dark": bool(dark[k, n]),
        }
        for k in _best_first(domains)
        for n in np.flatnonzero(domains.sizes).tolist()
    ]  # fmt: skip


def _best_first(domains: Domains) -> list[int]:
    """By their mean quality where they judged, every judgment counting once; who judged nothing comes last."""
    total = domains.judged.sum(axis=1)
    mean = np.sum(domains.judged * domains.quality[0], axis=1) / np.maximum(total, 1)
    return [int(k) for k in np.lexsort((-mean, total == 0))]
