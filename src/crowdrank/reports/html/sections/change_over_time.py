"""Scores over time: curves with bands, and the items that changed."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Axis,
    Html,
    Section,
    decimals,
    fold,
    frame_figure,
    join,
    linear,
    paragraph,
    section,
    table,
    tag,
)
from crowdrank.results.drift import Drift, period_label
from crowdrank.results.scales import Scale

_MAX_CURVES = 6
_MAX_ROWS = 200
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
        for item, first, last, change, low, high, p_value in changes.head(_MAX_ROWS).iter_rows()
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
