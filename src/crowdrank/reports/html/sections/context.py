"""What was read, and what was left out.

How the ranking compares with a known truth.

Which queries belong together, and who is good at which.

Whose work is better.

How it was computed, and how to get the same again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    between,
    count,
    fold,
    items,
    join,
    paragraph,
    percent,
    section,
    several,
    table,
    tag,
)


def dropped(findings: Findings) -> Section | None:
    if findings.imported is None:
        return None
    told, lines = findings.imported.as_dict(), findings.imported.lines()
    numbers = [(_plain(key), f"{value:,}") for key, value in _counted(told)]
    shown = table(("rows", "count"), numbers, caption="Rows of the file", numbers=(1,))
    return section(
        "dropped",
        "What was left out",
        paragraph(_summary(told)),
        items(lines),
        _malformed(told),
        fold("The numbers", shown),
    )


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


def method(findings: Findings) -> Section:
    ranking = findings.ranking
    said = [f"The order is by the model {ranking.model}.", _about(findings), findings.why]
    if findings.rule:
        said.append(f"The judgments were made fit for it: {findings.rule}.")
    said.append(_convergence(findings))
    if findings.has_uncertainty:
        said.append(f"How sure it is was found by {ranking.uncertainty.method}.")
    settings = [(name, repr(value)) for name, value in ranking.settings.items()]
    return section(
        "method",
        "How it was computed",
        paragraph(*said),
        *_again(findings),
        fold("All settings", table(("setting", "value"), settings, caption=f"Settings of {ranking.model}")),
        _found(findings),
        paragraph(findings.source, class_="faint"),
    )


def _about(findings: Findings) -> str:
    """The first line of what the model says of itself."""
    written = (type(findings.model).__doc__ or "").strip() if findings.model is not None else ""
    first = written.splitlines()[0] if written else ""
    return f"“{first}”" if first else ""


def _convergence(findings: Findings) -> str:
    found = findings.ranking.convergence
    if not found.converged:
        return f"It stopped short after {found.steps:,} steps, {found.distance:.1e} {found.unit}: {found.remedy}."
    return f"It converged in {found.steps:,} steps." if found.steps else ""


def _again(findings: Findings) -> list[Html]:
    """The same judgments, settings and seed give the same answer."""
    return [
        join(tag("h3", f"The same again, {how}"), tag("pre", tag("code", text)))
        for how, text in findings.repeat.items()
    ]


def _found(findings: Findings) -> Html:
    ranking = findings.ranking
    rows = [(name, f"{value:.6g}") for name, value in ranking.parameters.items()]
    if ranking.log_likelihood is not None:
        rows.append(("log-likelihood", f"{ranking.log_likelihood:,.3f}"))
    if not rows:
        return Html("")
    return fold(
        "What was estimated beside the scores", table(("what", "value"), rows, caption="Estimates", numbers=(1,))
    )
