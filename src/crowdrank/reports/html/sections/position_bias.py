"""Whether the side of the screen, or another feature, sways the answers."""

from __future__ import annotations

import numpy as np

from crowdrank.data import Comparisons
from crowdrank.evaluation.position_bias import Sides, sides
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, Section, count, fold, paragraph, percent, section, several, table
from crowdrank.reports.html.svg import stacked
from crowdrank.results import sways

_SURE = 1.96
_SMALL = 0.01
"""A pull that is certain, but too small to matter."""


def position(findings: Findings) -> Section | None:
    given, title = findings.judgments, "Left or right"
    if not isinstance(given, Comparisons):
        return None
    if not given.positions_known:
        unknown = "The file names winners and losers only: whether the side of the screen mattered cannot be known."
        return section("position", title, paragraph(unknown), _swayed(findings))
    found = sides(given)
    said = paragraph(_pull(found), _leaning(findings))
    return section("position", title, said, _figure(found), _numbers(found), _swayed(findings))


def _pull(found: Sides) -> str:
    if not found.known:
        return (
            f"Whether the side mattered cannot be told: {found.both_ways:,} of {count(found.pairs, 'pair')} were shown "
            "both ways round, and where a pair is shown in one order only, the left item may simply be the better one."
        )
    pull, sure = found.chosen - 0.5, abs(found.chosen - 0.5) > _SURE * found.std_error
    side = "left" if pull > 0 else "right"
    measured = f"shown the same pair both ways round, annotators chose {side} {percent(0.5 + abs(pull), 1)} of the time"
    if not sure:
        return f"No pull to a side was found: {measured}, which chance alone may do."
    if abs(pull) < _SMALL:
        return f"There is a pull to the {side}, but hardly any: {measured}."
    return f"There is a pull to the {side}: {measured}, where half would be even."


def _leaning(findings: Findings) -> str:
    found = findings.verdicts
    if found is None:
        return ""
    who = [str(name) for name in found.annotators[found.verdict == "one-sided"]]
    if not who:
        return "No annotator leans to a side beyond doubt."
    return f"{count(len(who), 'annotator')} lean{'s' if len(who) == 1 else ''} to a side: {several(who, 8)}."


def _figure(found: Sides) -> Html:
    whole = max(1, found.left + found.ties + found.right)
    parts = [
        ("left", found.left / whole, "more"),
        ("tie", found.ties / whole, "tie"),
        ("right", found.right / whole, "less"),
    ]
    named = [(f"{name} {percent(share)}", share, kind) for name, share, kind in parts]
    return stacked(named, f"Answers: {', '.join(name for name, share, _ in named if share)}.")


def _numbers(found: Sides) -> Html:
    rows = [("left", f"{found.left:,}"), ("tie", f"{found.ties:,}"), ("right", f"{found.right:,}")]
    rows += [("pairs shown", f"{found.pairs:,}"), ("pairs shown both ways round", f"{found.both_ways:,}")]
    if not np.isnan(found.chosen):
        rows.append(("left, of items as good as each other", f"{found.chosen:.3f} ± {found.std_error:.3f}"))
    return fold("The numbers", table(("answers", "count"), rows, caption="Answers by side", numbers=(1,)))


def _swayed(findings: Findings) -> Html:
    found = sways(findings.ranking) if findings.has_uncertainty else []
    if not found:
        return Html("")
    rows = [(s.feature, f"{s.unit:.3g}", f"{s.sway:+.3f}", f"{s.low:+.3f} to {s.high:+.3f}") for s in found]
    head = ("feature", "a difference of", "sway to the left", "likely between")
    return table(head, rows, caption="How far features move an average annotator", numbers=(1, 2, 3))
