"""Who was compared with whom, and how often."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
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
from crowdrank.reports.html.svg import columns, heat_map, numbers

_DRAWN, _BANDS = 60, 30
"""Items that are drawn one by one, at most; how many bands there are of more."""
_LEAST = 10
_MOST_QUERIES = 200
_MOST_ISLANDS = 20
_COLUMNS = 12


def coverage(findings: Findings) -> Section:
    judged, word = findings.ranking.judged, findings.ranking.counted_in
    usual = f"An item appears in {int(np.median(judged)):,} {word} (the median), the least in {int(judged.min()):,}."
    said = paragraph(_compared(findings), usual, _hanging_together(findings))
    return section(
        "coverage",
        "Who was compared with whom",
        said,
        _figure(findings),
        _histogram(findings),
        _islands(findings),
        _least_seen(findings),
        _queries(findings),
    )


def _compared(findings: Findings) -> str:
    if findings.pairs is None:
        return "The judgments do not compare items with each other directly."
    met, possible = len(findings.pairs.counts), _possible(findings)
    return f"{met:,} of {possible:,} possible pairs of items were compared ({percent(met / max(possible, 1), 1)})."


def _possible(findings: Findings) -> int:
    sizes = np.diff(findings.ranking.items.starts)
    return int(np.sum(sizes * (sizes - 1) // 2))


def _hanging_together(findings: Findings) -> str:
    islands = findings.health.disconnected_components
    if not islands:
        return "Chains of judgments join all items that are ranked together."
    return f"{count(len(islands), 'island')} of items stand apart: no judgment joins them."


def _islands(findings: Findings) -> Html:
    islands, names = findings.health.disconnected_components, findings.ranking.items
    if not islands:
        return Html("")
    entries = [f"{count(len(g), 'item')}: {several([names.name(int(p)) for p in g], 6)}" for g in islands]
    rest = f"{len(entries) - _MOST_ISLANDS:,} more" if len(entries) > _MOST_ISLANDS else ""
    return fold("The islands", items([*entries[:_MOST_ISLANDS], *([rest] if rest else [])]), open_=len(islands) < 6)


def _least_seen(findings: Findings) -> Html:
    judged, names = findings.ranking.judged, findings.ranking.items
    order = np.lexsort((findings.ranking.rank, judged))[:_LEAST]
    rows = [(names.name(int(n)), f"{judged[n]:,}", f"{findings.ranking.rank[n]:,}") for n in order]
    head = ("item", findings.ranking.counted_in, "rank")
    return fold("Least seen items", table(head, rows, caption="Items seen least", numbers=(1, 2)))


def _histogram(findings: Findings) -> Html:
    """How evenly the judgments fell on the items."""
    judged = findings.ranking.judged
    low, high = int(judged.min()), int(judged.max())
    if high - low < 2 or len(judged) < 8:
        return Html("")
    edges = np.linspace(low, high + 1, min(_COLUMNS, high - low + 1) + 1)
    found = np.histogram(judged, edges)[0]
    word = findings.ranking.counted_in
    hints = [
        f"{count(int(n), 'item')} in {int(np.ceil(a)):,} to {int(np.ceil(b)) - 1:,} {word}"
        for n, (a, b) in zip(found, pairwise(edges), strict=True)
    ]
    x, y = numbers(f"{word} an item appears in", low, high + 1), numbers("items", 0.0, float(found.max()))
    return columns(found.tolist(), hints, x, y, f"How many items appear in how many {word}: {'; '.join(hints)}.")


def _figure(findings: Findings) -> Html:
    """The query with most judgments, its items by rank; where they are many, neighbours in rank together."""
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
    bands = size if size <= _DRAWN else _BANDS
    band = np.empty(size, np.int64)
    band[best] = np.arange(size) * bands // size
    met = _met(pairs, block, band, bands)
    names = _names(findings, block, band, best)
    share = np.where(met > 0, np.log1p(met) / np.log1p(max(met.max(), 1)), np.nan)
    hints = [
        [f"{a} and {b}: {n:,.0f}" for b, n in zip(names, row, strict=True)] for a, row in zip(names, met, strict=True)
    ]
    of_query = f" of {items_.queries[query]}" if len(items_.queries) > 1 else ""
    what = "Items" if size <= _DRAWN else f"{size:,} items, neighbours in rank taken together,"
    drawn = heat_map(share, names, hints, f"{what}{of_query} by rank, and how often each two were compared.")
    often = f"The stronger the colour, the more often compared, up to {count(int(met.max()), 'time')}; empty: never."
    caption = f"{what}{of_query} by rank, best first. {often}"
    return join(drawn, tag("p", caption, class_="caption"))


def _met(pairs: Comparisons, block: slice, band: IntArray, size: int) -> FloatArray:
    inside = np.flatnonzero((pairs.left >= block.start) & (pairs.left < block.stop))
    left, right = band[pairs.left[inside] - block.start], band[pairs.right[inside] - block.start]
    met = np.bincount(left * size + right, minlength=size * size).reshape(size, size).astype(np.float64)
    return np.asarray(met + met.T - np.diag(np.diag(met)))


def _names(findings: Findings, block: slice, band: IntArray, best: IntArray) -> list[str]:
    labels = findings.ranking.items.labels[block]
    if len(labels) <= _DRAWN:
        return [str(labels[n]) for n in best]
    first = np.searchsorted(band[best], np.arange(_BANDS + 1))
    return [f"ranks {a + 1:,}–{b:,}" for a, b in pairwise(first)]


def _queries(findings: Findings) -> Html:
    items_, pairs = findings.ranking.items, findings.pairs
    if len(items_.queries) < 2:
        return Html("")
    sizes = np.diff(items_.starts)
    of_query = np.zeros(len(sizes), np.int64)
    met = of_query.copy()
    if pairs is not None:
        of_query = np.bincount(items_.query[pairs.left], minlength=len(sizes))
        met = np.bincount(items_.query[pairs.counts.first], minlength=len(sizes))
    share = met / np.maximum(sizes * (sizes - 1) // 2, 1)
    rows = [
        (items_.queries[n], f"{sizes[n]:,}", f"{of_query[n]:,}", percent(float(share[n])))
        for n in np.argsort(of_query, kind="stable")[:_MOST_QUERIES]
    ]
    cut = f" (the first {_MOST_QUERIES:,})" if len(sizes) > _MOST_QUERIES else ""
    head = ("query", "items", "comparisons", "pairs compared")
    return fold(f"Query by query, least compared first{cut}", table(head, rows, caption="Queries", numbers=(1, 2, 3)))
