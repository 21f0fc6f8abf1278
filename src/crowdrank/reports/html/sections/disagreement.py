"""Who disagrees with whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdrank.evaluation.disagreement import Disagreement, disagreement
from crowdrank.reports.html.figures import heat_map
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, fold, join, paragraph, table, tag
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import between, count, percent

Matrix = npt.NDArray[np.float64]

_FEWEST = 5
"""Pairs of items two annotators must both have decided to be compared."""
_SURE = 0.05
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
    against = frame.filter(frame["p"] < _SURE)
    surely = f"{count(against.height, 'pair')} of annotators surely contradict each other more often than not."
    if against.height == 1:
        surely = "One pair of annotators surely contradict each other more often than not."
    said = paragraph(
        f"Asked about the same two items, two annotators gave opposite answers {percent(mean)} of the time.",
        surely if against.height else "No two surely contradict each other more often than not.",
        _looked_at(found, findings),
    )  # fmt: skip
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
        [f"{names[i]} and {names[j]}: {found.opposite[a, b]:,} of {found.shared[a, b]:,} opposite"
         for j, b in enumerate(order)]
        for i, a in enumerate(order)
    ]  # fmt: skip
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


def _alike(share: Matrix) -> npt.NDArray[np.int64]:
    """By the direction in which agreement varies most, so that groups show."""
    agreement = np.nan_to_num(0.5 - share)
    np.fill_diagonal(agreement, 0.5)
    return np.argsort(np.linalg.eigh(agreement)[1][:, -1], kind="stable")
