"""The overall of several leaderboards, and how categories or criteria differ."""

from __future__ import annotations

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, Section, paragraph, percent, section, table
from crowdrank.reports.html.sections.ranking import ranked_items
from crowdrank.results import category_differences, criterion_correlations
from crowdrank.results.categories import DEVIATION

_MAX_DIFFERENCES = 40


def overall(findings: Findings) -> Section | None:
    """The ranking over all categories or criteria; None if there is none."""
    ranking = findings.ranking.overall
    if ranking is None:
        return None
    frame = ranking.to_polars(findings.level, findings.show_uncertainty)
    parts = [ranked_items(findings, frame, "")]
    if findings.has_uncertainty:
        by_category = DEVIATION in findings.ranking.item_parameters
        parts.append(_differences(findings) if by_category else _correlations(findings))
    return section("overall", "Overall", *parts)


def _differences(findings: Findings) -> Html:
    found = category_differences(findings.ranking, findings.level)
    sure = found.filter(found["sure"]).head(_MAX_DIFFERENCES)
    if not sure.height:
        return paragraph("No item surely differs between categories.")
    digits = 0 if float(sure["std_error"].max()) > 1 else 2  # type: ignore[arg-type]
    rows = [
        (category, item, f"{difference:+.{digits}f}", f"± {error:.{digits}f}", rank, "" if above is None else above)
        for category, item, difference, error, _, rank, above in sure.iter_rows()
    ]
    heads = ("category", "item", "difference", "error", "rank", "overall rank")
    return table(heads, rows, caption="Items that surely differ from their overall score", numbers=(2, 3, 4, 5))


def _correlations(findings: Findings) -> Html:
    found = criterion_correlations(findings.ranking, findings.level)
    rows = [
        (
            first,
            second,
            "" if value != value else f"{value:+.2f}",
            "" if value != value else f"{low:+.2f} to {high:+.2f}",
        )
        for first, second, value, low, high, _ in found.iter_rows()
    ]
    heads = ("criterion", "and", "correlation", f"between ({percent(findings.level)})")
    return table(heads, rows, caption="Correlations of true scores by two criteria", numbers=(2, 3))
