"""Tables and figures of the calibration benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from calibration import CROWD_NAMES, DEFAULT, FIRST_SEED, JOINT, MODELS, SIZES, simulate
from figures import IMAGES

Entry = dict[str, Any]

DOCS = Path(__file__).resolve().parents[1] / "docs" / "calibration.md"
_COLUMNS = {
    "crowds": "crowds",
    "scores": "scores, 95 %",
    "ranks": "ranks, 90 %",
    "claims_right": "claims right",
    "claims": "claims per table",
    "split": "several groups",
    "correlation": "τ",
    "scale": "scale",
}
_COLOURS = ("#b3261e", "#8a8a8a", "#1f5a96", "#4d7c2e", "#8a5a00", "#6a3d9a")
_NORMAL_95 = 1.96
# A share of fewer claims than this says nothing.
_MIN_CLAIMS = 20
_PANELS = {"scores": ("score intervals", 0.95), "ranks": ("rank intervals", 0.9), "claims_right": ("claims", 0.95)}


def table(entries: Sequence[Entry], by_model: bool = True) -> str:
    """A Markdown table, one row per cell."""
    heads = [*(["model"] if by_model else []), "data", "crowd", "spread", *_COLUMNS.values()]
    rows = [heads, ["---"] * (2 + by_model) + ["---:"] * (len(heads) - 2 - by_model)]
    for entry in entries:
        first = [entry["model"]] if by_model else []
        kind = [str(SIZES[entry["size"]]), CROWD_NAMES[entry["crowd"]], f"{entry['spread']:g}"]
        rows.append([*first, *kind, *(_cell(entry, name) for name in _COLUMNS)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(entry: Entry, name: str) -> str:
    value = entry[name]
    if name == "crowds":
        return f"{value:,}"
    if name == "claims":
        return f"{value / entry['crowds']:.1f}"
    # Equal items have no true order, so only claims and groups mean something.
    if value is None or (not entry["spread"] and name in ("ranks", "claims_right", "correlation", "scale")):
        return ""
    return f"{value:.2f}" if name in ("correlation", "scale") else f"{100 * value:.0f} %"


def write_pages(entries: Sequence[Entry], out: Path, made: str, update_docs: bool) -> None:
    """Write calibration.md and the figures; with `update_docs` also the table in docs/calibration.md."""
    text = f"# Calibration\n\n{table(entries)}\n\nThe columns are explained in docs/calibration.md. {made}\n"
    (out / "calibration.md").write_text(text, encoding="utf-8")
    images = IMAGES if update_docs else out
    draw_coverage(entries, images / "calibration.svg")
    draw_scales(images / "naive-estimate.svg")
    if update_docs and DOCS.exists():
        default = table([entry for entry in entries if entry["model"] == DEFAULT], by_model=False)
        kept = DOCS.read_text(encoding="utf-8")
        between = re.compile(r"(<!-- table -->\n).*?(<!-- end of table -->)", re.DOTALL)
        DOCS.write_text(between.sub(lambda m: f"{m[1]}\n{default}\n\n{m[2]}", kept), encoding="utf-8")


def draw_coverage(entries: Iterable[Entry], path: Path) -> None:
    """One panel per kind of statement, one row per cell, one mark per model; a line at the level."""
    import altair

    points = []
    for entry in entries:
        if not entry["spread"]:
            continue
        size = SIZES[entry["size"]]
        label = f"{size.votes:,} votes, {CROWD_NAMES[entry['crowd']]}, spread {entry['spread']:g}"
        for name in _PANELS:
            if entry[name] is None or (name == "claims_right" and entry["claims"] < _MIN_CLAIMS):
                continue
            error = _NORMAL_95 * (entry[f"{name}_std_error"] or 0.0)
            point = {"cell": label, "model": entry["model"], "of": name, "held": entry[name]}
            points.append({**point, "low": max(entry[name] - error, 0.0), "high": min(entry[name] + error, 1.0)})
    if not points:
        return
    found = {point["model"] for point in points}
    models = [*(model for model in MODELS if model in found), *sorted(found - MODELS.keys())]
    colour = altair.Color(
        "model:N",
        scale=altair.Scale(domain=models, range=[_COLOURS[n % len(_COLOURS)] for n in range(len(models))]),
        legend=altair.Legend(title=None, orient="top"),
    )
    charts = []
    for number, (name, (title, level)) in enumerate(_PANELS.items()):
        shown = [point for point in points if point["of"] == name]
        axis = altair.Axis(labelLimit=320) if not number else None
        base = altair.Chart(altair.Data(values=shown)).encode(
            y=altair.Y("cell:N", title=None, sort=None, axis=axis, scale=altair.Scale(domain=_labels(points))),
            color=colour,
        )
        across = altair.X("held:Q", title="share that held", scale=altair.Scale(domain=[0, 1]), axis=_percent(altair))
        marks = base.mark_circle(size=42, opacity=0.9).encode(x=across)
        bars = base.mark_rule(opacity=0.6).encode(x="low:Q", x2="high:Q")
        line = altair.Chart(altair.Data(values=[{"x": level}])).mark_rule(strokeDash=[4, 3], color="#333333")
        layers = line.encode(x="x:Q") + bars + marks
        charts.append(layers.properties(width=200, height=altair.Step(15), title=f"{title}: {level:.0%} expected"))
    _save(altair, altair.hconcat(*charts, spacing=16), path)


def _labels(points: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(point["cell"] for point in points))


def _percent(altair: Any) -> Any:
    return altair.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])


def draw_scales(path: Path) -> None:
    """True scores against two estimates on one arena-like crowd: the joint mode, and annotators integrated out."""
    import altair

    judgments, truth = simulate(SIZES["arena"], "equal", 1.0, FIRST_SEED)
    titles = {JOINT: "qualities estimated jointly", DEFAULT: "qualities integrated out (default)"}
    rows: dict[str, list[Entry]] = {}
    for model in titles:
        ranking = MODELS[model].fit(judgments)
        error = _NORMAL_95 * ranking.uncertainty.std_error
        rows[model] = [
            {"truth": true, "score": score, "low": score - e, "high": score + e}
            for true, score, e in zip(truth.tolist(), ranking.scores.tolist(), error.tolist(), strict=True)
        ]
    reach = 1.05 * max(abs(row[end]) for found in rows.values() for row in found for end in ("low", "high"))
    scale = altair.Scale(domain=[-reach, reach])
    ends = [{"truth": x, "score": x} for x in (float(truth.min()), float(truth.max()))]
    charts = []
    for model, title in titles.items():
        base = altair.Chart(altair.Data(values=rows[model])).encode(x=altair.X("truth:Q", title="true score"))
        diagonal = altair.Chart(altair.Data(values=ends)).mark_line(strokeDash=[4, 3], color="#333333")
        bars = base.mark_rule(color=_COLOURS[0], opacity=0.5).encode(y=altair.Y("low:Q", scale=scale), y2="high:Q")
        marks = base.mark_circle(color=_COLOURS[0], size=30, opacity=1)
        dots = marks.encode(y=altair.Y("score:Q", title="estimated score", scale=scale))
        layers = diagonal.encode(x="truth:Q", y="score:Q") + bars + dots
        charts.append(layers.properties(width=300, height=300, title=title))
    _save(altair, altair.hconcat(*charts, spacing=24), path)


def _save(altair: Any, chart: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    chart = chart.configure(background="white", padding=12).configure_view(stroke=None)
    chart.configure_title(fontSize=13, anchor="start").configure_axis(gridColor="#e6e6e6").save(str(path))
