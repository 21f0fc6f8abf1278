"""How the ranking compares with a known truth."""

from __future__ import annotations

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import fold, paragraph, table
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import percent


def against_gold(findings: Findings) -> Section | None:
    grade = findings.grade
    if grade is None:
        return None
    several = any(measure.queries > 1 for measure in grade.measures)
    rows = []
    for measure in grade.measures:
        row = [measure.metric.replace("_", " "), f"{measure.value:.3f}"]
        rows.append([*row, f"{measure.std_error:.3f}", str(measure.queries)] if several else row)
    head = ["measure", "value", *(["error", "queries"] if several else [])]
    right = next((m.value for m in grade.measures if m.metric == "accuracy"), None)
    said = "" if right is None else f"Of the pairs whose true order is known, {percent(right, 1)} are ordered rightly."
    numbers = table(head, rows, caption="Against gold", numbers=range(1, len(head)))
    return section("gold", "Against what is known", paragraph(said), fold("The numbers", numbers, open_=not said))
