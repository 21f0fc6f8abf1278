"""Sections on the import, gold, domains, systems, and the method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    between,
    count,
    enumerate_names,
    fold,
    items,
    join,
    paragraph,
    percent,
    section,
    table,
    tag,
)


def import_report(findings: Findings) -> Section | None:
    if findings.import_report is None:
        return None
    counts, lines = findings.import_report.as_dict(), findings.import_report.lines()
    numbers = [(_plain(key), f"{value:,}") for key, value in _numbers(counts)]
    shown = table(("rows", "count"), numbers, caption="Rows of the file", numbers=(1,))
    return section(
        "dropped",
        "Rows left out",
        paragraph(_summary(counts)),
        items(lines),
        _malformed(counts),
        fold("The numbers", shown),
    )


def _numbers(counts: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """All numbers, those by reason one by one."""
    for key, value in counts.items():
        if isinstance(value, int):
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}: {reason}", n) for reason, n in value.items() if isinstance(n, int))


def _summary(counts: dict[str, Any]) -> str:
    left_out = int(counts.get("rows_read", 0)) - int(counts.get("kept", 0))
    if not left_out:
        return "None: every row of the file was used."
    return (
        f"{count(left_out, 'row')} of {counts['rows_read']:,} were not used."
        if left_out > 1
        else "One row was not used."
    )


def _malformed(counts: dict[str, Any]) -> Html:
    bad = counts.get("malformed") or []
    if not bad:
        return Html("")
    rows = [(row.get("line") or "?", row.get("column", ""), row.get("reason", "")) for row in bad]
    unit = str(counts.get("unit", "line"))
    return join(fold("Rows that could not be used", table((unit, "column", "reason"), rows, caption="Rows left out")))


def _plain(key: str) -> str:
    return key.removesuffix("_count").replace("_", " ")


def gold(findings: Findings) -> Section | None:
    evaluation = findings.evaluation
    if evaluation is None:
        return None
    several_queries = any(measure.queries > 1 for measure in evaluation.measures)
    rows = []
    for measure in evaluation.measures:
        row = [measure.metric.replace("_", " "), f"{measure.value:.3f}"]
        rows.append([*row, f"{measure.std_error:.3f}", str(measure.queries)] if several_queries else row)
    head = ["metric", "value", *(["error", "queries"] if several_queries else [])]
    accuracy = next((m.value for m in evaluation.measures if m.metric == "accuracy"), None)
    summary = (
        "" if accuracy is None else f"{percent(accuracy, 1)} of the pairs with a known order are ordered correctly."
    )
    numbers = table(head, rows, caption="Against gold", numbers=range(1, len(head)))
    return section("gold", "Against gold", paragraph(summary), fold("All metrics", numbers, open_=not summary))


_MAX_ROWS = 500


def domains(findings: Findings) -> Section | None:
    if not findings.ranking.has_domains:
        return None
    found = findings.ranking.domains
    used = [int(size) for size in found.sizes if size]
    sizes = enumerate_names([f"{size:,}" for size in used], 8)
    summary = f"The queries belong to {count(len(used), 'domain')}, with {sizes} queries."
    people, queries = found.to_polars(), found.queries_to_polars()
    parts = []
    if people.height:
        head = ["annotator", *(name.replace("_", " ") for name in people.columns[1:])]
        rows = [[name, *map(_number, values)] for name, *values in people.head(_MAX_ROWS).iter_rows()]
        shown = table(head, rows, caption="Quality by domain", numbers=range(1, len(head)))
        parts.append(
            fold("Quality by domain: probability to choose the better of two items", shown, open_=len(rows) < 30)
        )
    rows = [[q, _number(d), str(n), _number(p)] for q, d, _, _, n, p in queries.head(_MAX_ROWS).iter_rows()]
    shown = table(("query", "difficulty", "domain", "probability"), rows, caption="Queries", numbers=(1, 2, 3))
    return section("domains", "Domains", paragraph(summary), *parts, fold("Queries, hardest first", shown))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.2f}"


def systems(findings: Findings) -> Section | None:
    found = findings.systems
    if found is None:
        return None
    rows = [
        (name, f"{mean:.2f}", "" if low != low else between(low, high))
        for name, mean, low, high in found.to_polars().iter_rows()
    ]
    summary = "Probability that an item of one system beats an item of another, mean over queries."
    scope = "The intervals are for queries like these." if found.resampled else ""
    shown = table(("system", "beats the others", "interval"), rows, caption="Systems", numbers=(1, 2))
    return section("systems", "Systems", paragraph(summary, scope), shown)


def method(findings: Findings) -> Section:
    ranking = findings.ranking
    summary = [f"The model is {ranking.model}.", _about(findings), findings.model_reason]
    if findings.conversion:
        summary.append(f"The judgments were converted: {findings.conversion}.")
    summary.append(ranking.convergence.describe())
    if findings.has_uncertainty:
        summary.append(f"Uncertainty: {ranking.uncertainty.method}.")
    settings = [(name, repr(value)) for name, value in ranking.settings.items()]
    return section(
        "method",
        "Method",
        paragraph(*summary),
        *_reproduce(findings),
        fold("All settings", table(("setting", "value"), settings, caption=f"Settings of {ranking.model}")),
        _parameters(findings),
        paragraph(findings.source, class_="faint"),
    )


def _about(findings: Findings) -> str:
    """The first line of the model's docstring."""
    written = (type(findings.model).__doc__ or "").strip() if findings.model is not None else ""
    first = written.splitlines()[0] if written else ""
    return f"“{first}”" if first else ""


def _reproduce(findings: Findings) -> list[Html]:
    """Code that gives the same result: the same judgments, settings and seed give the same answer."""
    return [
        join(tag("h3", f"Reproduce {where}"), tag("pre", tag("code", text)))
        for where, text in findings.reproduce.items()
    ]


def _parameters(findings: Findings) -> Html:
    ranking = findings.ranking
    rows = [(name, f"{value:.6g}") for name, value in ranking.parameters.items()]
    if ranking.log_likelihood is not None:
        rows.append(("log-likelihood", f"{ranking.log_likelihood:,.3f}"))
    if not rows:
        return Html("")
    return fold("Other estimates", table(("parameter", "value"), rows, caption="Estimates", numbers=(1,)))
