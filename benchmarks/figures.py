"""Plots of cost against size: lines on two logarithmic axes, each labelled at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_OURS = "#b3261e"
_OTHERS = ("#1f5a96", "#4d7c2e", "#8a5a00", "#6a3d9a", "#007d79", "#7a4b3a", "#5f6b76")
_INK = "#333333"
_APART = 13.0
"""Pixels between two names, at the least."""
_SECONDS = (
    "datum.value < 0.9e-6 ? format(datum.value * 1e9, '~r') + ' ns' : datum.value < 0.9e-3 ? "
    "format(datum.value * 1e6, '~r') + ' µs' : datum.value < 0.9 ? format(datum.value * 1e3, '~r') + ' ms' : "
    "format(datum.value, '~r') + ' s'"
)
_MEGABYTES = "datum.value < 900 ? format(datum.value, '~r') + ' MB' : format(datum.value / 1000, '~r') + ' GB'"
Points = Sequence[tuple[float, float]]
LABELS = {"seconds": _SECONDS, "megabytes": _MEGABYTES}


@dataclass(frozen=True)
class Panel:
    """One of the small multiples: for each line, its points (size, cost)."""

    title: str
    lines: Mapping[str, Points]
    x: str
    unit: str = "seconds"
    ours: str = "crowdrank"
    """Lines whose names begin so stand out."""


def exponent(points: Points, decades: float = 2.0) -> float:
    """How cost grows with size: the slope between logarithms, over the largest sizes; small ones are all overhead."""
    if len(points) < 2:
        return math.nan
    largest = max(size for size, _ in points)
    kept = [(math.log(s), math.log(c)) for s, c in points if s >= largest / 10**decades * (1 - 1e-9)]
    if len(kept) < 2:
        return math.nan
    mean_x, mean_y = (sum(column) / len(kept) for column in zip(*kept, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in kept) / sum((x - mean_x) ** 2 for x, _ in kept)


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The same places in the same order, moved as little as need be to stand so far apart."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    blocks: list[list[float]] = []  # of neighbours that touch: the sum of where they would begin, and how many
    for n in order:
        blocks.append([places[n], 1])
        while len(blocks) > 1 and _begins(blocks[-1], apart) < _begins(blocks[-2], apart) + blocks[-2][1] * apart:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    moved, place = [0.0] * len(places), 0
    for block in blocks:
        for step in range(int(block[1])):
            moved[order[place]] = _begins(block, apart) + step * apart
            place += 1
    return moved


def _begins(block: Sequence[float], apart: float) -> float:
    total, count = block
    return total / count - (count - 1) * apart / 2


def draw(panels: Sequence[Panel], place: Path, columns: int = 2, width: int = 300, height: int = 250) -> bool:
    """An SVG (or PNG, by the ending) on white; False where there is nothing to draw with."""
    try:
        import altair
        import vl_convert  # noqa: F401  (what altair draws with)
    except ImportError:
        print('No figure: pip install "crowdrank[reports]" brings what draws it.')
        return False
    drawn = [_panel(altair, panel, width, height) for panel in panels if any(panel.lines.values())]
    if not drawn:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    chart = (
        altair.concat(*drawn, columns=columns, spacing=28)
        .resolve_scale(color="independent")
        .configure(background="white", padding=12)
    )
    # names of lines stand outside the frame, and each panel has its own axes
    chart = chart.configure_view(stroke=None).configure_axis(
        labelFontSize=11,
        titleFontSize=12,
        titleFontWeight="normal",
        gridColor="#e6e6e6",
        domainColor=_INK,
        labelColor=_INK,
        titleColor=_INK,
        tickColor=_INK,
    )
    chart.configure_title(fontSize=13, anchor="start", color=_INK).save(str(place), scale_factor=2)
    return True


def _powers(values: Sequence[float]) -> list[float]:
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return [10.0**n for n in range(low, max(high, low + 1) + 1)]


def _panel(altair: Any, panel: Panel, width: int, height: int) -> Any:
    lines = {name: sorted(points) for name, points in panel.lines.items() if points}
    flat = [point for points in lines.values() for point in points]
    xs, ys = _powers([x for x, _ in flat]), _powers([y for _, y in flat])
    rows = [
        {"line": name, "x": x, "y": y, "ours": name.startswith(panel.ours)}
        for name, points in lines.items()
        for x, y in points
    ]
    colours = _colours(list(lines), panel.ours)
    scale = altair.Scale(domain=list(colours), range=list(colours.values()))
    across = altair.X(
        "x:Q",
        title=panel.x,
        scale=altair.Scale(type="log", domain=[xs[0], xs[-1]]),
        axis=altair.Axis(values=xs, format="~s"),
    )
    up = altair.Y(
        "y:Q",
        title=None,
        scale=altair.Scale(type="log", domain=[ys[0], ys[-1]]),
        axis=altair.Axis(values=ys, labelExpr=LABELS[panel.unit]),
    )
    colour = altair.Color("line:N", scale=scale, legend=None)
    heavy = altair.condition("datum.ours", altair.value(2.6), altair.value(1.4))
    base = altair.Chart(altair.Data(values=rows)).encode(x=across, color=colour)
    marks = base.mark_line().encode(y=up, strokeWidth=heavy) + base.mark_circle(size=26, opacity=1).encode(y=up)
    names = (
        altair.Chart(altair.Data(values=_names(lines, ys, height)))
        .mark_text(align="left", dx=7, fontSize=11, baseline="middle")
        .encode(x="x:Q", y="y:Q", text="line:N", color=colour)
    )
    return (marks + names).properties(width=width, height=height, title=panel.title)


def _colours(names: Sequence[str], ours: str) -> dict[str, str]:
    others = [name for name in names if not name.startswith(ours)]
    return {name: _OURS for name in names if name.startswith(ours)} | {
        name: _OTHERS[n % len(_OTHERS)] for n, name in enumerate(others)
    }


def _names(
    lines: Mapping[str, Sequence[tuple[float, float]]], ys: Sequence[float], height: int
) -> list[dict[str, Any]]:
    """Where each line ends, those that end at one size moved apart; above the end where others go on."""
    decade = height / math.log10(ys[-1] / ys[0])
    last = max(points[-1][0] for points in lines.values())
    found = []
    for end in {points[-1][0] for points in lines.values()}:
        here = [name for name, points in lines.items() if points[-1][0] == end]
        above = 0.0 if end == last else 0.8 * _APART
        moved = spread([math.log10(lines[name][-1][1]) * decade + above for name in here], _APART)
        found += [{"line": name, "x": end, "y": 10 ** (y / decade)} for name, y in zip(here, moved, strict=True)]
    return found
