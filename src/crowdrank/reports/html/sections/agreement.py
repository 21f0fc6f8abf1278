"""Whether the model is as sure as it should be.

Who disagrees with whom.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.evaluation.calibration import Calibration
from crowdrank.evaluation.disagreement import Disagreement, disagreement
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    between,
    count,
    fold,
    join,
    paragraph,
    percent,
    section,
    table,
    tag,
)
from crowdrank.reports.html.svg import Point, diagonal, heat_map, scatter, shares

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
        (
            f"{percent(r['from'])} to {percent(r['to'])}",
            f"{r['judgments']:,}",
            percent(r["foretold"], 1),
            percent(r["observed"], 1),
            between(100 * r["low"], 100 * r["high"], 1) + " %",
        )
        for r in frame.iter_rows(named=True)
    ]
    head = ("chance given", "judgments", "foretold", "observed", "likely between")
    numbers = table(head, rows, caption="Foretold and observed", numbers=(1, 2, 3, 4))
    return section(
        "calibration",
        title,
        paragraph(*_said(found)),
        drawn,
        tag("p", caption, class_="caption"),
        fold("The numbers", numbers),
    )


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


_FEWEST = 5
"""Pairs of items two annotators must both have decided to be compared."""
_SURE_DISAGREEMENT = 0.05
_DRAWN, _LISTED, _LISTED_BEHIND = 30, 5, 50


def disagreements(findings: Findings) -> Section | None:
    title, given = "Who disagrees with whom", findings.judgments
    if given.annotator is None or len(given.annotators) < 2 or findings.pairs is None:
        return None
    found = disagreement(findings.pairs)
    frame = found.frame(_FEWEST)
    if not frame.height:
        few = f"No two annotators decided {_FEWEST} of the same pairs, so it cannot be said who disagrees with whom."
        return section("disagreement", title, paragraph(few))
    mean = sum(frame["opposite"].to_list()) / sum(frame["shared"].to_list())
    against = frame.filter(frame["p"] < _SURE_DISAGREEMENT)
    surely = f"{count(against.height, 'pair')} of annotators surely contradict each other more often than not."
    if against.height == 1:
        surely = "One pair of annotators surely contradict each other more often than not."
    said = paragraph(
        f"Asked about the same two items, two annotators gave opposite answers {percent(mean)} of the time.",
        surely if against.height else "No two surely contradict each other more often than not.",
        _looked_at(found, findings),
    )
    rows = [
        (a, b, f"{opposite:,} of {shared:,}", percent(share), between(100 * low, 100 * high, 0) + " %")
        for a, b, shared, opposite, share, low, high, _ in frame.head(_LISTED_BEHIND).iter_rows()
    ]
    head = ("annotator", "and", "opposite answers", "share", "likely between")
    first = table(head, rows[:_LISTED], caption="Those who disagree most", numbers=(2, 3, 4))
    more = fold("More of them", table(head, rows[_LISTED:], caption="Who disagrees, continued", numbers=(2, 3, 4)))
    return section("disagreement", title, said, _figure(found), first, more if len(rows) > _LISTED else "")


def _looked_at(found: Disagreement, findings: Findings) -> str:
    people = len(findings.judgments.annotators)
    fewer = len(found.annotators) < people
    return f"(Of the {len(found.annotators):,} who judged most, of {people:,}.)" if fewer else ""


def _figure(found: Disagreement) -> Html:
    """Those who judged most, like minds side by side."""
    size = min(_DRAWN, len(found.annotators))
    share = np.where(found.shared[:size, :size] >= _FEWEST, found.share[:size, :size], np.nan)
    present = np.flatnonzero(~np.isnan(share).all(axis=1))
    if len(present) < 3:
        return Html("")
    order = present[_alike(share[np.ix_(present, present)])]
    cells, names = 1 - 2 * share[np.ix_(order, order)], [str(name) for name in found.annotators[order]]
    hints = [
        [
            f"{names[i]} and {names[j]}: {found.opposite[a, b]:,} of {found.shared[a, b]:,} opposite"
            for j, b in enumerate(order)
        ]
        for i, a in enumerate(order)
    ]
    drawn = heat_map(
        cells, names, hints, f"Agreement of {len(names)} annotators with each other; the table has the most marked."
    )
    caption = f"The {len(names):,} who judged most, like minds side by side. Empty: fewer than {_FEWEST} pairs shared."
    key = tag(
        "p",
        tag("span", class_="key more"),
        "they agree ",
        tag("span", class_="key less"),
        "they disagree. ",
        caption,
        class_="caption",
    )
    return join(drawn, key)


def _alike(share: FloatArray) -> IntArray:
    """By the direction in which agreement varies most, so that groups show."""
    agreement = np.nan_to_num(0.5 - share)
    np.fill_diagonal(agreement, 0.5)
    return np.argsort(np.linalg.eigh(agreement)[1][:, -1], kind="stable")
