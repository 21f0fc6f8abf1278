"""Calibration of the model, and disagreement between annotators."""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.evaluation import Calibration, Disagreement, PositionBias
from crowdrank.evaluation import disagreement as count_disagreement
from crowdrank.evaluation import position_bias as estimate_position_bias
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Point,
    Section,
    between,
    count,
    diagonal,
    enumerate_names,
    fold,
    heat_map,
    join,
    paragraph,
    percent,
    percentages,
    scatter,
    section,
    stacked,
    table,
    tag,
)
from crowdrank.results import bias_effects, covariate_effects

_Z_95 = 1.96


def calibration(findings: Findings) -> Section | None:
    found, title = findings.calibration, "Calibration"
    if findings.model is None:
        return None
    if isinstance(found, str):
        return section("calibration", title, paragraph(found))
    frame = found.to_polars()
    points = [
        Point(row["predicted"], row["observed"], "dot", _tooltip(row), low=row["low"], high=row["high"])
        for row in frame.iter_rows(named=True)
    ]
    bottom = min(0.5, 0.1 * int(10 * min(frame["low"].to_list())))
    x, y = percentages("predicted probability", 0.5, 1.0), percentages("observed", bottom, 1.0)
    even = diagonal() if bottom == 0.5 else _line(bottom)
    drawn = scatter(
        points, x, y, f"Predicted against observed: {'; '.join(map(_tooltip, frame.iter_rows(named=True)))}.", even
    )
    caption = "Judgments binned by predicted probability, with 95 % intervals. The dashed line is perfect calibration."
    rows = [
        (
            f"{percent(r['from'])} to {percent(r['to'])}",
            f"{r['judgments']:,}",
            percent(r["predicted"], 1),
            percent(r["observed"], 1),
            between(100 * r["low"], 100 * r["high"], 1) + " %",
        )
        for r in frame.iter_rows(named=True)
    ]
    head = ("predicted probability", "judgments", "predicted", "observed", "95 % interval")
    numbers = table(head, rows, caption="Predicted and observed", numbers=(1, 2, 3, 4))
    return section(
        "calibration",
        title,
        paragraph(*_summary(found)),
        drawn,
        tag("p", caption, class_="caption"),
        fold("The numbers", numbers),
    )


def _summary(found: Calibration) -> list[str]:
    gap, margin = found.predicted - found.observed, _Z_95 * found.std_error
    first = (
        f"The model predicted {percent(found.observed, 1)} of {len(found):,} held-out judgments correctly "
        f"(expected {percent(found.predicted, 1)})."
    )
    if abs(gap) <= margin:
        return [first, "It is well calibrated."]
    degree = "slightly " if abs(gap) < 0.03 else ""
    return [first, f"It is {degree}{'overconfident' if gap > 0 else 'underconfident'}."]


def _line(bottom: float) -> object:
    """The diagonal from probability ½ to 1 if the axis begins below ½."""
    start = 100 * (1 - (0.5 - bottom) / (1 - bottom))
    return tag("line", x1="0%", y1=f"{start:.2f}%", x2="100%", y2="0%", class_="even")


def _tooltip(row: dict[str, float]) -> str:
    return f"{percent(row['predicted'])} predicted, {percent(row['observed'])} observed in {row['judgments']:,.0f}"


_MIN_SHARED = 5
"""Smallest number of shared pairs from which two annotators are compared."""
_SIGNIFICANCE = 0.05
_MAX_DRAWN, _LISTED, _MAX_LISTED = 30, 5, 50


def disagreement(findings: Findings) -> Section | None:
    title, given = "Disagreement between annotators", findings.judgments
    if given.annotator is None or len(given.annotators) < 2 or findings.pairs is None:
        return None
    found = count_disagreement(findings.pairs)
    frame = found.to_polars(_MIN_SHARED)
    if not frame.height:
        few = f"No two annotators decided {_MIN_SHARED} of the same pairs, so disagreement cannot be measured."
        return section("disagreement", title, paragraph(few))
    mean = sum(frame["opposite"].to_list()) / sum(frame["shared"].to_list())
    against = frame.filter(frame["p"] < _SIGNIFICANCE)
    significant = f"{against.height:,} pairs of annotators clearly disagree more often than they agree."
    if against.height == 1:
        significant = "One pair of annotators clearly disagrees more often than it agrees."
    summary = paragraph(
        f"On the same pair of items, two annotators gave opposite answers {percent(mean)} of the time.",
        significant if against.height else "No two annotators clearly disagree more often than they agree.",
        _looked_at(found, findings),
    )
    rows = [
        (a, b, f"{opposite:,} of {shared:,}", percent(share), between(100 * low, 100 * high, 0) + " %")
        for a, b, shared, opposite, share, low, high, _ in frame.head(_MAX_LISTED).iter_rows()
    ]
    head = ("annotator", "and", "opposite answers", "share", "95 % interval")
    first = table(head, rows[:_LISTED], caption="Largest disagreement", numbers=(2, 3, 4))
    more = fold("More", table(head, rows[_LISTED:], caption="Disagreement, continued", numbers=(2, 3, 4)))
    return section(
        "disagreement", title, summary, _disagreement_figure(found), first, more if len(rows) > _LISTED else ""
    )


def _looked_at(found: Disagreement, findings: Findings) -> str:
    people = len(findings.judgments.annotators)
    fewer = len(found.annotators) < people
    return f"(Only the {len(found.annotators):,} annotators with most judgments, of {people:,}.)" if fewer else ""


def _disagreement_figure(found: Disagreement) -> Html:
    """Heat map of the annotators with most judgments, similar ones side by side."""
    size = min(_MAX_DRAWN, len(found.annotators))
    share = np.where(found.shared[:size, :size] >= _MIN_SHARED, found.share[:size, :size], np.nan)
    present = np.flatnonzero(~np.isnan(share).all(axis=1))
    if len(present) < 3:
        return Html("")
    order = present[_by_similarity(share[np.ix_(present, present)])]
    cells, names = 1 - 2 * share[np.ix_(order, order)], [str(name) for name in found.annotators[order]]
    tooltips = [
        [
            f"{names[i]} and {names[j]}: {found.opposite[a, b]:,} of {found.shared[a, b]:,} opposite"
            for j, b in enumerate(order)
        ]
        for i, a in enumerate(order)
    ]
    drawn = heat_map(
        cells,
        names,
        tooltips,
        f"Agreement of {len(names)} annotators with each other; the table has the largest values.",
    )
    caption = (
        f"The {len(names):,} with most judgments, sorted by similarity. Empty: fewer than {_MIN_SHARED} shared pairs."
    )
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


def _by_similarity(share: FloatArray) -> IntArray:
    """Order by the leading eigenvector of agreement, so that groups become visible."""
    agreement = np.nan_to_num(0.5 - share)
    np.fill_diagonal(agreement, 0.5)
    return np.argsort(np.linalg.eigh(agreement)[1][:, -1], kind="stable")


# Position bias, and effects of other features.

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
    return section("position", title, summary, _position_figure(found), _numbers(found), *_effects(findings))


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


def _position_figure(found: PositionBias) -> Html:
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
