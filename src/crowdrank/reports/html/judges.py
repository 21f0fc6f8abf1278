"""The audit of a jury as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.evaluation import JudgeAudit
from crowdrank.evaluation.judge_audit import REFERENCES
from crowdrank.reports.html.markup import (
    Html,
    Point,
    Section,
    count,
    heat_map,
    items,
    join,
    paragraph,
    percent,
    percentages,
    scatter,
    section,
    table,
    tag,
)
from crowdrank.reports.html.markup import level as level_line
from crowdrank.reports.html.page import whole_page, write_page

_MAX_HEAT_MAP = 80


def write_judges_report(audit: JudgeAudit, path: str | PathLike[str], title: str = "Audit of judges") -> None:
    """Write the audit of a jury as one self-contained page.

    Parameters
    ----------
    audit : JudgeAudit
        The audit.
    path : path
        File to write, .html.
    title : str, default "Audit of judges"
        Heading of the page.
    """
    made = [_judges(audit), _sides(audit), _biases(audit), _shared_errors(audit), _juries(audit), _method(audit)]
    sections = [found for found in made if found is not None]
    footer = tag("footer", tag("p", "Made with crowdrank."))
    write_page(whole_page(title, _header(audit, title), sections, footer), path)


def _header(audit: JudgeAudit, title: str) -> Html:
    facts = [("judges", len(audit.judges)), ("pairs", audit.n_pairs), ("with a reference", audit.n_reference)]
    tiles = tag("dl", *(tag("div", tag("dt", name), tag("dd", f"{number:,}")) for name, number in facts))
    best = audit.table.row(0, named=True)
    answer = ""
    if best["agreement"] is not None:
        answer = (
            f"{best['annotator']} agrees most with {REFERENCES[audit.reference]}: on {percent(best['agreement'])} of "
            f"{count(best['pairs'], 'pair')}."
        )
    notes = tag("aside", tag("h2", "Notes"), items(audit.notes()), aria_label="Notes") if audit.notes() else ""
    return tag("header", tag("h1", title), paragraph(answer, class_="answer"), tiles, notes)


def _judges(audit: JudgeAudit) -> Section:
    frame = audit.table
    shown = {
        "agreement": "agreement",
        "kappa": "κ",
        "agreement_humans": "with humans",
        "kappa_humans": "κ with humans",
        "flips": "flips",
        "left": "left",
        "price_per_correct": "per correct",
    }
    columns = [name for name in shown if name in frame.columns and frame[name].null_count() < len(frame)]
    rows = [
        [_name(row), f"{row['votes']:,}", *(_cell(row, name) for name in columns)]
        for row in frame.iter_rows(named=True)
    ]
    head = ["judge", "votes", *(shown[name] for name in columns)]
    alphas = [
        f"Krippendorff's α of {name}: {found.value:.2f} ({found.low:.2f} to {found.high:.2f})."
        for name, found in audit.alpha.items()
    ]
    price = "Per correct: price of a correct answer." if "price_per_correct" in columns else ""
    return section(
        "judges",
        "Judges",
        paragraph(f"Agreement is with {REFERENCES[audit.reference]}; a tie is half right.", *alphas, price),
        table(head, rows, caption="Judges, the best first", numbers=range(1, len(head))),
    )


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    if f"{name}_low" not in row:
        return f"{value:.3g}"
    if name in ("flips", "left"):  # the intervals of these would make the table wider than the page
        return percent(value)
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if name.startswith("kappa"):
        return f"{value:.2f} ({low:.2f} to {high:.2f})" if low is not None else f"{value:.2f}"
    return f"{percent(value)} ({100 * low:.0f} to {100 * high:.0f})"


def _name(row: Mapping[str, Any]) -> Html:
    """The name of a judge, on one line, with kind and family in its tooltip."""
    about = ", ".join(row[name] for name in ("kind", "family") if row[name])
    return tag("span", row["annotator"], title=about or None, style="white-space:nowrap;overflow-wrap:normal")


def _sides(audit: JudgeAudit) -> Section | None:
    rows = [
        row for row in audit.table.iter_rows(named=True) if row["left"] is not None and row["agreement"] is not None
    ]
    if not rows:
        return None
    x, y = percentages("agreement"), percentages("votes for the left")
    points = [
        Point(
            row["agreement"],
            row["left"],
            "dot",
            f"{row['annotator']}: {percent(row['left'])} of decided votes for the left, agreement "
            f"{percent(row['agreement'])}",
            row["annotator"],
            row["left_low"],
            row["left_high"],
        )
        for row in rows
    ]
    text = (
        "A judge without a preference for a side chooses the left in half of the votes, if sides are random or both "
        "orders are asked. Lines are intervals."
    )
    figure = scatter(points, x, y, "Side bias and agreement of each judge", level_line(0.5, y, "no preference"))
    return section("sides", "Sides", paragraph(text), figure)


def _biases(audit: JudgeAudit) -> Section | None:
    if not len(audit.biases):
        return None
    rows = [
        [row["annotator"], row["bias"], f"{row['effect']:.2f} ({row['low']:.2f} to {row['high']:.2f})"]
        for row in audit.biases.iter_rows(named=True)
    ]
    text = (
        "What influences a judge besides the items, as log odds: the left side, each unit of a feature, and being of "
        "the judge's own family, compared with the humans or else with judges of other families. 0 is no bias."
    )
    return section(
        "biases", "Biases", paragraph(text), table(["judge", "bias", "effect"], rows, caption="Biases", numbers=[2])
    )


def _shared_errors(audit: JudgeAudit) -> Section | None:
    if not np.isfinite(audit.n_effective):
        return None
    shown = _arranged(audit)
    cells = audit.correlation[np.ix_(shown, shown)]
    names = [audit.judges[n] for n in shown]
    tooltips = [[f"{a} and {b}: {cells[i, j]:.2f}" for j, b in enumerate(names)] for i, a in enumerate(names)]
    text = (
        f"The errors of these {count(len(audit.compared), 'judge')} carry as much independent information as those of "
        f"{audit.n_effective:.1f} judges who err on their own."
    )
    key = paragraph(
        tag("span", "", class_="key more"), " err together ", tag("span", "", class_="key less"), " err apart"
    )
    figure = heat_map(cells, names, tooltips, "Correlation of the errors of every two judges")
    return section("errors", "Who errs with whom", paragraph(text), key, figure)


def _arranged(audit: JudgeAudit) -> IntArray:
    """The judges with most votes, those who err together side by side: by the leading eigenvector of correlations."""
    votes = dict(zip(audit.table["annotator"], audit.table["votes"], strict=True))
    order = sorted(audit.compared, key=lambda n: -votes[audit.judges[n]])[:_MAX_HEAT_MAP]
    chosen = np.array(sorted(order))
    matrix = np.nan_to_num(audit.correlation[np.ix_(chosen, chosen)])
    leading = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, -1]
    # The sign of an eigenvector is arbitrary: the largest entry is made positive.
    leading = leading * np.sign(leading[np.argmax(np.abs(leading))])
    return np.asarray(chosen[np.argsort(-leading, kind="stable")])


def _juries(audit: JudgeAudit) -> Section | None:
    if not audit.juries:
        return None
    priced = all(np.isfinite(jury.price) for jury in audit.juries)
    rows = [
        [
            len(jury.members),
            join(audit.judges[jury.members[-1]], tag("strong", " (recommended)") if jury == audit.recommended else ""),
            f"{percent(jury.accuracy, 1)} ± {100 * jury.std_error:.1f}",
            *([f"{jury.price:.3g}"] if priced else []),
        ]
        for jury in audit.juries
    ]
    text = (
        "Juries that decide by majority. Each row adds one judge to the row above. The accuracy is that of juries "
        "chosen in the same way on other pairs, so that it is not flattered by the choice."
    )
    head = ["members", "judge added", "accuracy", *(["price of a question"] if priced else [])]
    return section("juries", "Which jury", paragraph(text), table(head, rows, caption="Juries", numbers=[0, 2, 3]))


def _method(audit: JudgeAudit) -> Section:
    entries = [
        "Agreement: share of pairs decided as the reference, with Wilson's interval. Both orders of a pair are one "
        "answer; two contradicting answers are a tie.",
        "κ and α: agreement beyond chance, with bootstrap intervals over pairs. Which item counts as the first is "
        "arbitrary, so both sides count as equally frequent by chance.",
        "Flips: of the pairs that a judge decided in both orders, those decided for a side rather than an item.",
        "Effective number of judges: the participation ratio of the correlations of errors, without the part that is "
        "due to few pairs.",
        f"Intervals cover {percent(audit.level)}.",
    ]
    return section("method", "Method", items(entries))
