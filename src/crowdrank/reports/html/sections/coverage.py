"""Coverage: which items were compared, and how often."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
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
    components = findings.health.disconnected_components
    if not components:
        return "All items that are ranked together are connected by judgments."
    return f"The items fall into {len(components):,} components that no judgment connects."


def _components(findings: Findings) -> Html:
    components, names = findings.health.disconnected_components, findings.ranking.items
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
