"""Whether the model is as sure as it should be."""

from __future__ import annotations

from crowdrank.evaluation.calibration import Calibration
from crowdrank.reports.html.axes import shares
from crowdrank.reports.html.figures import Point, diagonal, scatter
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import fold, paragraph, table, tag
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import between, percent

_SURE = 1.96


def calibrated(findings: Findings) -> Section | None:
    found, title = findings.calibration, "As sure as it should be?"
    if findings.model is None:
        return None
    if isinstance(found, str):
        return section("calibration", title, paragraph(found))
    frame = found.frame()
    points = [
        Point(row["foretold"], row["observed"], "dot", _hint(row), low=row["low"], high=row["high"])
        for row in frame.iter_rows(named=True)
    ]
    bottom = min(0.5, 0.1 * int(10 * min(frame["low"].to_list())))
    x, y = shares("chance the model gave to its favourite", 0.5, 1.0), shares("favourite won", bottom, 1.0)
    even = diagonal() if bottom == 0.5 else _line(bottom)
    drawn = scatter(
        points, x, y, f"Foretold against observed: {'; '.join(map(_hint, frame.iter_rows(named=True)))}.", even
    )
    caption = (
        "Judgments of like chance together, with 95 % intervals. On the dashed line, chances are as they should be."
    )
    rows = [
        (f"{percent(r['from'])} to {percent(r['to'])}", f"{r['judgments']:,}", percent(r["foretold"], 1),
         percent(r["observed"], 1), between(100 * r["low"], 100 * r["high"], 1) + " %")
        for r in frame.iter_rows(named=True)
    ]  # fmt: skip
    head = ("chance given", "judgments", "foretold", "observed", "likely between")
    numbers = table(head, rows, caption="Foretold and observed", numbers=(1, 2, 3, 4))
    return section(
        "calibration", title, paragraph(*_said(found)), drawn, tag("p", caption, class_="caption"),
        fold("The numbers", numbers),
    )  # fmt: skip


def _said(found: Calibration) -> list[str]:
    gap, sure = found.foretold - found.observed, _SURE * found.std_error
    first = (
        f"On {len(found):,} judgments held out of the fit, the model's favourite won {percent(found.observed, 1)} of "
        f"the time, and it had expected {percent(found.foretold, 1)}."
    )
    if abs(gap) <= sure:
        return [first, "It is as sure as it should be."]
    degree = "a little " if abs(gap) < 0.03 else ""
    return [first, f"It is {degree}{'too sure of itself' if gap > 0 else 'surer than it admits'}."]


def _line(bottom: float) -> object:
    """From even chances to certainty, where the axis begins below one half."""
    start = 100 * (1 - (0.5 - bottom) / (1 - bottom))
    return tag("line", x1="0%", y1=f"{start:.2f}%", x2="100%", y2="0%", class_="even")


def _hint(row: dict[str, float]) -> str:
    return f"{percent(row['foretold'])} foretold, {percent(row['observed'])} observed in {row['judgments']:,.0f}"
