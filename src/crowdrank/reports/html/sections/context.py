"""Sections on the import, gold, domains, systems, the method, and coverage: which items were compared how often."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    between,
    columns,
    count,
    enumerate_names,
    fold,
    heat_map,
    items,
    join,
    numbers,
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


# Coverage: which items were compared, and how often.

_MAX_DRAWN, _BANDS = 60, 30
"""Up to the first number, items are drawn one by one; more are grouped into the second number of bands of ranks."""
_LEAST_JUDGED = 10
_MAX_QUERIES = 200
_MAX_COMPONENTS = 20
_BINS = 12


def coverage(findings: Findings) -> Section:
    n_judgments, kind = findings.ranking.n_judgments, findings.ranking.judgment_kind
    median = f"The median item appears in {int(np.median(n_judgments)):,} {kind}"
    usual = f"{median}, the least judged in {int(n_judgments.min()):,}."
    summary = paragraph(_compared(findings), usual, _connectivity(findings))
    return section(
        "coverage",
        "Coverage",
        summary,
        _figure(findings),
        _histogram(findings),
        _components(findings),
        _least_judged(findings),
        _queries(findings),
    )


def _compared(findings: Findings) -> str:
    if findings.pairs is None:
        return "The judgments do not compare items with each other directly."
    compared, possible = len(findings.pairs.counts), _possible(findings)
    return f"{compared:,} of {possible:,} possible pairs were compared ({percent(compared / max(possible, 1), 1)})."


def _possible(findings: Findings) -> int:
    sizes = np.diff(findings.ranking.items.starts)
    return int(np.sum(sizes * (sizes - 1) // 2))


def _connectivity(findings: Findings) -> str:
    components = findings.diagnostics.disconnected_components
    if not components:
        return "All items that are ranked together are connected by judgments."
    return f"The items fall into {len(components):,} components that no judgment connects."


def _components(findings: Findings) -> Html:
    components, names = findings.diagnostics.disconnected_components, findings.ranking.items
    if not components:
        return Html("")
    entries = [f"{count(len(g), 'item')}: {enumerate_names([names.name(int(p)) for p in g], 6)}" for g in components]
    rest = f"{len(entries) - _MAX_COMPONENTS:,} more" if len(entries) > _MAX_COMPONENTS else ""
    return fold("Components", items([*entries[:_MAX_COMPONENTS], *([rest] if rest else [])]), open_=len(components) < 6)


def _least_judged(findings: Findings) -> Html:
    n_judgments, names = findings.ranking.n_judgments, findings.ranking.items
    order = np.lexsort((findings.ranking.rank, n_judgments))[:_LEAST_JUDGED]
    rows = [(names.name(int(n)), f"{n_judgments[n]:,}", f"{findings.ranking.rank[n]:,}") for n in order]
    head = ("item", findings.ranking.judgment_kind, "rank")
    return fold("Least judged items", table(head, rows, caption="Least judged items", numbers=(1, 2)))


def _histogram(findings: Findings) -> Html:
    """Histogram of the number of judgments per item."""
    n_judgments = findings.ranking.n_judgments
    low, high = int(n_judgments.min()), int(n_judgments.max())
    if high - low < 2 or len(n_judgments) < 8:
        return Html("")
    edges = np.linspace(low, high + 1, min(_BINS, high - low + 1) + 1)
    found = np.histogram(n_judgments, edges)[0]
    kind = findings.ranking.judgment_kind
    tooltips = [
        f"{count(int(n), 'item')} in {int(np.ceil(a)):,} to {int(np.ceil(b)) - 1:,} {kind}"
        for n, (a, b) in zip(found, pairwise(edges), strict=True)
    ]
    x, y = numbers(f"{kind} per item", low, high + 1), numbers("items", 0.0, float(found.max()))
    return columns(found.tolist(), tooltips, x, y, f"Number of items by number of {kind}: {'; '.join(tooltips)}.")


def _figure(findings: Findings) -> Html:
    """Heat map of comparisons in the query with most judgments, items by rank; many items are grouped by rank."""
    pairs = findings.pairs
    if pairs is None or not len(pairs):
        return Html("")
    items_ = findings.ranking.items
    query = int(np.argmax(np.bincount(items_.query[pairs.left], minlength=len(items_.queries))))
    block = items_.of_query(query)
    size = block.stop - block.start
    if size < 3:
        return Html("")
    best = findings.ranking.order[block] - block.start
    bands = size if size <= _MAX_DRAWN else _BANDS
    band = np.empty(size, np.int64)
    band[best] = np.arange(size) * bands // size
    compared = _comparison_counts(pairs, block, band, bands)
    names = _names(findings, block, band, best)
    share = np.where(compared > 0, np.log1p(compared) / np.log1p(max(compared.max(), 1)), np.nan)
    tooltips = [
        [f"{a} and {b}: {n:,.0f}" for b, n in zip(names, row, strict=True)]
        for a, row in zip(names, compared, strict=True)
    ]
    of_query = f" of {items_.queries[query]}" if len(items_.queries) > 1 else ""
    what = "Items" if size <= _MAX_DRAWN else f"{size:,} items, grouped by rank,"
    drawn = heat_map(share, names, tooltips, f"{what}{of_query} by rank, and how often each pair was compared.")
    legend = f"Darker: compared more often, up to {count(int(compared.max()), 'time')}; empty: never."
    caption = f"{what}{of_query} by rank, best first. {legend}"
    return join(drawn, tag("p", caption, class_="caption"))


def _comparison_counts(pairs: Comparisons, block: slice, band: IntArray, size: int) -> FloatArray:
    inside = np.flatnonzero((pairs.left >= block.start) & (pairs.left < block.stop))
    left, right = band[pairs.left[inside] - block.start], band[pairs.right[inside] - block.start]
    counts = np.bincount(left * size + right, minlength=size * size).reshape(size, size).astype(np.float64)
    return np.asarray(counts + counts.T - np.diag(np.diag(counts)))


def _names(findings: Findings, block: slice, band: IntArray, best: IntArray) -> list[str]:
    labels = findings.ranking.items.labels[block]
    if len(labels) <= _MAX_DRAWN:
        return [str(labels[n]) for n in best]
    first = np.searchsorted(band[best], np.arange(_BANDS + 1))
    return [f"ranks {a + 1:,}–{b:,}" for a, b in pairwise(first)]


def _queries(findings: Findings) -> Html:
    items_, pairs = findings.ranking.items, findings.pairs
    if len(items_.queries) < 2:
        return Html("")
    sizes = np.diff(items_.starts)
    n_comparisons = np.zeros(len(sizes), np.int64)
    compared = n_comparisons.copy()
    if pairs is not None:
        n_comparisons = np.bincount(items_.query[pairs.left], minlength=len(sizes))
        compared = np.bincount(items_.query[pairs.counts.first], minlength=len(sizes))
    share = compared / np.maximum(sizes * (sizes - 1) // 2, 1)
    rows = [
        (items_.queries[n], f"{sizes[n]:,}", f"{n_comparisons[n]:,}", percent(float(share[n])))
        for n in np.argsort(n_comparisons, kind="stable")[:_MAX_QUERIES]
    ]
    cut = f" (the first {_MAX_QUERIES:,})" if len(sizes) > _MAX_QUERIES else ""
    head = ("query", "items", "comparisons", "pairs compared")
    return fold(f"Queries, least compared first{cut}", table(head, rows, caption="Queries", numbers=(1, 2, 3)))
