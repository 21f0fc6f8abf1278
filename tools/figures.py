"""Draw the figures of the README and of the explanation pages into docs/images/: python tools/figures.py [NAME …]."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import altair
import numpy as np
import polars as pl
from scipy.stats import binom, norm

import crowdrank as cr

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_BLUE, _RED, _GREEN = "#1F63AD", "#B8500F", "#00795B"


def _style(chart: Any) -> Any:
    axes: Any = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridOpacity": 0.5}
    return chart.configure(font="sans-serif", background="white").configure_axis(**axes).configure_view(stroke=None)


def _rows(frame: pl.DataFrame) -> altair.InlineData:
    return altair.InlineData(values=frame.to_dicts())


def _colour(name: str, domain: list[str], colours: list[str]) -> altair.Color:
    scale = altair.Scale(domain=domain, range=colours)
    legend = altair.Legend(title=None, orient="top", labelFontSize=12, labelLimit=400)
    return altair.Color(f"{name}:N", scale=scale, legend=legend)


def draw_annotators_matter(path: Path, crowds: int = 20) -> None:
    """Pairs in the right order, by the share of annotators who answer at random or in reverse."""
    models = {
        "every answer counts alike (bradley-terry)": "bradley-terry",
        "annotators are weighed (crowd-bt)": "crowd-bt",
    }
    rows = []
    for bad in range(0, 13, 2):
        for seed in range(crowds):
            kinds = {"good": 20 - bad, "random": bad // 2, "reversed": bad // 2}
            crowd = cr.simulation.mixed_crowd(20, kinds, votes_each=30, seed=1000 + seed)
            for name, model in models.items():
                ranking = cr.rank(crowd.judgments, model=model, uncertainty="none")
                rows.append((name, bad / 20, cr.evaluate(ranking, crowd.gold()).accuracy))
    frame = pl.DataFrame(rows, ["model", "bad", "accuracy"], orient="row")
    means = frame.group_by("model", "bad", maintain_order=True).agg(pl.col("accuracy").mean())
    x = altair.X("bad:Q", title="share of annotators who answer at random or in reverse", axis=altair.Axis(format="%"))
    y = altair.Y(
        "accuracy:Q", title="pairs in the right order", axis=altair.Axis(format="%"), scale=altair.Scale(zero=False)
    )
    chart = altair.Chart(_rows(means)).mark_line(point=altair.OverlayMarkDef(size=60), strokeWidth=2.5)
    chart = chart.encode(x=x, y=y, color=_colour("model", list(models), [_RED, _BLUE]))
    _style(chart.properties(width=480, height=260)).save(path)


def _ranks_and_truth(seed: int) -> pl.DataFrame:
    """Rank intervals of a simulated crowd beside the true ranks, and whether they hold."""
    crowd = cr.simulation.mixed_crowd(40, {"good": 15, "noisy": 5}, votes_each=40, seed=seed)
    gold = crowd.gold()
    gold = gold.select("item", true=pl.col(gold.columns[-1]).rank(descending=True))
    frame = cr.rank(crowd.judgments).to_polars().join(gold, on="item").sort("rank")
    return frame.with_columns(inside=pl.col("true").is_between(pl.col("rank_low"), pl.col("rank_high")))


def draw_intervals(path: Path, crowds: int = 20) -> None:
    """The rank intervals of one ranking with the true ranks: of several crowds, the one in the middle."""
    frames = sorted((_ranks_and_truth(seed) for seed in range(crowds)), key=lambda frame: frame["inside"].sum())
    print(f"{np.mean([frame['inside'].mean() for frame in frames]):.1%} of the intervals in {crowds} crowds hold")
    labels = ["the interval contains the true rank", "it does not"]
    held = pl.when("inside").then(pl.lit(labels[0])).otherwise(pl.lit(labels[1]))
    frame = frames[crowds // 2].with_columns(held=held)
    base = altair.Chart(_rows(frame.select("rank", "rank_low", "rank_high", "true", "held")))
    base = base.encode(x=altair.X("rank:Q", title="estimated rank"), color=_colour("held", labels, [_BLUE, _RED]))
    bars = base.mark_rule(strokeWidth=3, opacity=0.45).encode(y=altair.Y("rank_low:Q", title="rank"), y2="rank_high:Q")
    dots = base.mark_circle(size=45, opacity=1).encode(y="true:Q")
    _style((bars + dots).properties(width=480, height=300)).save(path)


def draw_shared_errors(path: Path) -> None:
    """How often a majority of n judges is right, each of them right in 70 % of the pairs, by their correlation."""
    counts = np.arange(1, 42, 2)
    names = {"independent judges": 0.0, "correlation 0.3": 0.3, "correlation 0.6": 0.6}
    colours = [_BLUE, _GREEN, _RED]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    rows = []
    for name, correlation in names.items():
        # One shared normal error per pair; given it, the judges are independent.
        right = norm.cdf((norm.ppf(0.7) + np.sqrt(correlation) * nodes) / np.sqrt(1 - correlation))
        share = [float(weights @ binom.sf(n // 2, n, right)) for n in counts]
        rows += [(name, int(n), value) for n, value in zip(counts, share, strict=True)]
    frame = pl.DataFrame(rows, ["judges", "n", "right"], orient="row")
    y = altair.Y(
        "right:Q", title="the majority is right", axis=altair.Axis(format="%"), scale=altair.Scale(domain=[0.7, 1])
    )
    chart = (
        altair.Chart(_rows(frame)).mark_line(strokeWidth=2.5).encode(x=altair.X("n:Q", title="number of judges"), y=y)
    )
    chart = chart.encode(color=_colour("judges", list(names), colours))
    _style(chart.properties(width=480, height=260)).save(path)


def draw_first_ranking(path: Path) -> None:
    """The cities of the example, ranked: the picture of the README."""
    votes = Path(__file__).resolve().parents[1] / "examples" / "cities" / "votes.csv"
    chart = cr.rank(votes).plot(top=12)
    chart.properties(background="white").save(path)


class _Box(NamedTuple):
    """A box of the flow chart: its centre and its text, a question or the name of a model."""

    x: int
    y: int
    text: str
    is_model: bool = False

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def half(self) -> tuple[int, int]:
        return (82 if self.is_model else 112), 12 + 9 * len(self.lines)


_BOXES = {
    "start": _Box(390, 30, "What was judged?"),
    "mixed": _Box(150, 120, "Do people and language\nmodels judge (people=),\nwithout gold pairs?"),
    "jury": _Box(
        150,
        235,
        "Three or more judges: both orders\nshown, or language models, or they\nerr together and there is gold?",
    ),
    "camps": _Box(150, 345, "Do the annotators fall\ninto two camps?"),
    "named": _Box(150, 440, "Several named\nannotators?"),
    "commensurate-bt": _Box(385, 120, "commensurate-bt", True),
    "jury model": _Box(385, 235, "jury", True),
    "crowd-bt": _Box(385, 440, "crowd-bt", True),
    "bradley-terry 1": _Box(385, 345, "bradley-terry", True),
    "bradley-terry 2": _Box(150, 530, "bradley-terry", True),
    "ratings": _Box(620, 120, "Several named\nannotators?"),
    "graded-response": _Box(850, 120, "graded-response", True),
    "mean-rating": _Box(620, 215, "mean-rating", True),
    "lists": _Box(620, 345, "Several named\nannotators?"),
    "crowd-plackett-luce": _Box(850, 345, "crowd-plackett-luce", True),
    "plackett-luce": _Box(620, 440, "plackett-luce", True),
}
_ARROWS = [
    ("mixed", "commensurate-bt", "yes"),
    ("mixed", "jury", "no"),
    ("jury", "jury model", "yes"),
    ("jury", "camps", "no"),
    ("camps", "bradley-terry 1", "yes"),
    ("camps", "named", "no"),
    ("named", "crowd-bt", "yes"),
    ("named", "bradley-terry 2", "no"),
    ("ratings", "graded-response", "yes"),
    ("ratings", "mean-rating", "no"),
    ("lists", "crowd-plackett-luce", "yes"),
    ("lists", "plackett-luce", "no"),
]
_STARTS = [
    ("M278 30 H150 V80", 214, 24, "comparisons"),
    ("M502 30 H620 V89", 556, 24, "ratings"),
    ("M390 51 V72 H500 V280 H620 V314", 560, 274, "lists"),
]


def draw_choosing_a_model(path: Path) -> None:
    """The flow chart of the default model, in the order in which `default_model` asks."""
    parts = [f'<path d="{line}" class="arrow"/>' for line, *_ in _STARTS]
    parts += [f'<text x="{x}" y="{y}" class="word">{word}</text>' for _, x, y, word in _STARTS]
    for name, other, word in _ARROWS:
        box, end = _BOXES[name], _BOXES[other]
        if box.y == end.y:
            start, stop = box.x + box.half[0], end.x - end.half[0]
            parts.append(f'<path d="M{start} {box.y} H{stop - 1}" class="arrow"/>')
            parts.append(f'<text x="{(start + stop) // 2 - 3}" y="{box.y - 6}" class="word">{word}</text>')
        else:
            parts.append(f'<path d="M{box.x} {box.y + box.half[1]} V{end.y - end.half[1] - 1}" class="arrow"/>')
            middle = (box.y + box.half[1] + end.y - end.half[1]) // 2 + 3
            parts.append(f'<text x="{box.x + 16}" y="{middle}" class="word">{word}</text>')
    parts += [_box(box) for box in _BOXES.values()]
    style = (
        "text{font:13px sans-serif;text-anchor:middle;fill:#1b1b1b}.word{font-size:12px;fill:#555}"
        ".arrow{fill:none;stroke:#666;stroke-width:1.5;marker-end:url(#tip)}"
        f".question{{fill:#f3f4f6;stroke:#9aa1ab}}.model{{fill:#e6f0fb;stroke:{_BLUE}}}.name{{font-weight:600}}"
    )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    title = "Which model is the default: a flow chart"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 950 565" width="950" height="565" role="img">'
        f"<title>{title}</title><style>{style}</style>"
        f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#666"/></marker></defs>'
        f'<rect width="950" height="565" fill="white"/>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )


def _box(box: _Box) -> str:
    wide, high = box.half
    kind = "model" if box.is_model else "question"
    shape = (
        f'<rect x="{box.x - wide}" y="{box.y - high}" width="{2 * wide}" height="{2 * high}" rx="8" class="{kind}"/>'
    )
    first = box.y + 5 - 9 * (len(box.lines) - 1)
    name = ' class="name"' if box.is_model else ""
    lines = "".join(
        f'<text x="{box.x}" y="{first + 18 * n}"{name}>{escape(line)}</text>' for n, line in enumerate(box.lines)
    )
    return shape + lines


FIGURES = {
    "annotators-matter": draw_annotators_matter,
    "intervals": draw_intervals,
    "shared-errors": draw_shared_errors,
    "first-ranking": draw_first_ranking,
    "choosing-a-model": draw_choosing_a_model,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FIGURES:
        FIGURES[chosen](IMAGES / f"{chosen}.svg")
