"""Position bias, and effects of other features."""

from __future__ import annotations

import numpy as np

from crowdrank.data import Comparisons
from crowdrank.evaluation import PositionBias
from crowdrank.evaluation import position_bias as estimate_position_bias
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    count,
    enumerate_names,
    fold,
    paragraph,
    percent,
    section,
    table,
)
from crowdrank.reports.html.svg import stacked
from crowdrank.results import bias_effects, covariate_effects

_Z_95 = 1.96
_SMALL_BIAS = 0.01
"""A smaller bias than this does not matter, however significant."""


def position(findings: Findings) -> Section | None:
    given, title = findings.judgments, "Position bias"
    if not isinstance(given, Comparisons):
        return None
    if not given.positions_known:
        unknown = "The file names only winners and losers, so position bias cannot be measured."
        return section("position", title, paragraph(unknown), *_effects(findings))
    found = estimate_position_bias(given)
    summary = paragraph(_bias(found), _one_sided(findings))
    return section("position", title, summary, _figure(found), _numbers(found), *_effects(findings))


def _bias(found: PositionBias) -> str:
    if not found.is_identified:
        return (
            f"Position bias cannot be measured: only {found.pairs_in_both_orders:,} of {count(found.pairs, 'pair')} "
            "were shown in both orders. In a single order, the left item may simply be the better one."
        )
    bias, significant = found.left_share - 0.5, abs(found.left_share - 0.5) > _Z_95 * found.std_error
    side = "left" if bias > 0 else "right"
    measured = f"for pairs shown in both orders, annotators chose {side} {percent(0.5 + abs(bias), 1)} of the time"
    if not significant:
        return f"No position bias was found: {measured}, which may be chance."
    if abs(bias) < _SMALL_BIAS:
        return f"There is a very small bias to the {side}: {measured}."
    return f"There is a bias to the {side}: {measured}; without bias it would be half."


def _one_sided(findings: Findings) -> str:
    found = findings.verdicts
    if found is None:
        return ""
    who = [str(name) for name in found.annotators[found.verdict == "one-sided"]]
    if not who:
        return "No annotator clearly prefers a side."
    verb = "prefers" if len(who) == 1 else "prefer"
    return f"{count(len(who), 'annotator')} clearly {verb} a side: {enumerate_names(who, 8)}."


def _figure(found: PositionBias) -> Html:
    whole = max(1, found.left + found.ties + found.right)
    parts = [
        ("left", found.left / whole, "more"),
        ("tie", found.ties / whole, "tie"),
        ("right", found.right / whole, "less"),
    ]
    named = [(f"{name} {percent(share)}", share, kind) for name, share, kind in parts]
    return stacked(named, f"Answers: {', '.join(name for name, share, _ in named if share)}.")


def _numbers(found: PositionBias) -> Html:
    rows = [("left", f"{found.left:,}"), ("tie", f"{found.ties:,}"), ("right", f"{found.right:,}")]
    rows += [("pairs shown", f"{found.pairs:,}"), ("pairs shown in both orders", f"{found.pairs_in_both_orders:,}")]
    if not np.isnan(found.left_share):
        rows.append(("left, for equally good items", f"{found.left_share:.3f} ± {found.std_error:.3f}"))
    return fold("The numbers", table(("answers", "count"), rows, caption="Answers by side", numbers=(1,)))


def _effects(findings: Findings) -> tuple[Html, Html]:
    return _feature_effects(findings), _covariates(findings)


def _feature_effects(findings: Findings) -> Html:
    found = bias_effects(findings.ranking) if findings.has_uncertainty else []
    if not found:
        return Html("")
    rows = [(e.feature, f"{e.unit:.3g}", f"{e.effect:+.3f}", f"{e.low:+.3f} to {e.high:+.3f}") for e in found]
    head = ("feature", "for a difference of", "effect on left", "95 % interval")
    return table(head, rows, caption="Effects of features on an average annotator", numbers=(1, 2, 3))


def _covariates(findings: Findings) -> Html:
    if not (found := covariate_effects(findings.ranking, findings.level)):
        return Html("")
    rows = [
        (e.feature, f"{e.effect:+.3g}", f"{e.low:+.3g} to {e.high:+.3g}", f"{e.unit:.3g}", percent(e.probability))
        for e in found
    ]
    head = ("covariate", "coefficient", f"{findings.level:.0%} interval", "typical difference", "wins with it")
    return table(head, rows, caption="Effects that were removed from the scores", numbers=(1, 2, 3, 4))
