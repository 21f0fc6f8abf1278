"""What was read, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, fold, items, join, paragraph, table
from crowdrank.reports.html.sections.section import Section, section
from crowdrank.reports.html.words import count


def dropped(findings: Findings) -> Section | None:
    if findings.imported is None:
        return None
    told, lines = findings.imported.as_dict(), findings.imported.lines()
    numbers = [(_plain(key), f"{value:,}") for key, value in _counted(told)]
    shown = table(("rows", "count"), numbers, caption="Rows of the file", numbers=(1,))
    return section(
        "dropped", "What was left out", paragraph(_summary(told)), items(lines), _malformed(told),
        fold("The numbers", shown),
    )  # fmt: skip


def _counted(told: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """All that is a number, those by reason one by one."""
    for key, value in told.items():
        if isinstance(value, int):
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}: {reason}", n) for reason, n in value.items() if isinstance(n, int))


def _summary(told: dict[str, Any]) -> str:
    left_out = int(told.get("rows_read", 0)) - int(told.get("kept", 0))
    if not left_out:
        return "Nothing: every row of the file was used."
    return (
        f"{count(left_out, 'row')} of {told['rows_read']:,} were not used." if left_out > 1 else "One row was not used."
    )


def _malformed(told: dict[str, Any]) -> Html:
    bad = told.get("malformed") or []
    if not bad:
        return Html("")
    rows = [(row.get("line") or "?", row.get("column", ""), row.get("reason", "")) for row in bad]
    unit = str(told.get("unit", "line"))
    return join(fold("Rows that could not be used", table((unit, "column", "why"), rows, caption="Rows left out")))


def _plain(key: str) -> str:
    return key.removesuffix("_count").replace("_", " ")
