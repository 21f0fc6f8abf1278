"""Whose work is better."""

from __future__ import annotations

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import paragraph, table
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import between


def systems(findings: Findings) -> Section | None:
    found = findings.systems
    if found is None:
        return None
    rows = [
        (name, f"{chance:.2f}", "" if low != low else between(low, high))
        for name, chance, low, high in found.frame().iter_rows()
    ]
    said = "The chance that an item of one system beats an item of another, mean over queries."
    like = "The intervals are for queries like these." if found.resampled else ""
    shown = table(("system", "beats the others", "likely between"), rows, caption="Systems", numbers=(1, 2))
    return section("systems", "Whose work is better", paragraph(said, like), shown)
