"""Which queries belong together, and who is good at which."""

from __future__ import annotations

from typing import Any

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import fold, paragraph, table
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import count, several

_MOST_ROWS = 500


def domains(findings: Findings) -> Section | None:
    if findings.ranking.chart is None:
        return None
    found = findings.ranking.domains
    used = [int(size) for size in found.sizes if size]
    said = (
        f"The queries are of {count(len(used), 'domain')}, with {several([f'{size:,}' for size in used], 8)} queries."
    )
    people, queries = found.table(), found.queries_frame()
    parts = []
    if people.height:
        head = ["annotator", *(name.replace("_", " ") for name in people.columns[1:])]
        rows = [[name, *map(_number, values)] for name, *values in people.head(_MOST_ROWS).iter_rows()]
        shown = table(head, rows, caption="Quality by domain", numbers=range(1, len(head)))
        parts.append(
            fold("Who is good at what: the chance to name the better of two items", shown, open_=len(rows) < 30)
        )
    rows = [[q, _number(d), str(n), _number(p)] for q, d, _, _, n, p in queries.head(_MOST_ROWS).iter_rows()]
    shown = table(("query", "difficulty", "domain", "probability"), rows, caption="Queries", numbers=(1, 2, 3))
    return section("domains", "Who knows what", paragraph(said), *parts, fold("Queries, hardest first", shown))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.2f}"
