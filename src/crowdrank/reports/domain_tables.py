"""Domains for the terminal: their queries, their experts, and the hardest queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from crowdrank.results import Domains
from crowdrank.results.domains import EXPERT_QUALITY, RANDOM_QUALITY

_VERDICTS_SHOWN = ("expert", "reversed", "random")
_MAX_DOMAINS = 10
_MAX_NAMES = 5
_MAX_EXTREMES = 3
_MAX_NAME_LENGTH = 24


def domains_report(domains: Domains) -> RenderableType:
    """Return a table of the domains with their queries and notable annotators, and the hardest and easiest queries."""
    parts: list[RenderableType] = [Text(_headline(domains)), Padding(_table(domains), (1, 0))]
    if len(domains.annotators):
        rules = (
            f"Expert: quality of at least {EXPERT_QUALITY}; random: below {RANDOM_QUALITY} or not clearly above 0.5; "
        )
        parts.append(Text(f"{rules}reversed: clearly below 0.5.", style="dim"))
    if extremes := _extremes(domains):
        parts.append(Text(extremes))
    return Group(*parts)


def _headline(domains: Domains) -> str:
    count, queries = np.count_nonzero(domains.sizes), len(domains.queries)
    kinds = "1 domain" if count == 1 else f"{count:,} domains"
    return f"{kinds} of {queries:,} quer{'y' if queries == 1 else 'ies'}."


def _table(domains: Domains) -> Table:
    """The largest domains first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("domain", justify="right")
    table.add_column("queries", justify="right")
    table.add_column("such as", overflow="fold")
    if len(domains.annotators):
        table.add_column("verdict")
        table.add_column("annotators", overflow="fold")
    used = [n for n in np.argsort(-domains.sizes, kind="stable") if domains.sizes[n]]
    for n in used[:_MAX_DOMAINS]:
        head = [f"{n + 1}", f"{domains.sizes[n]:,}", _few(_members(domains, n))]
        rows = [(word, names) for word in _VERDICTS_SHOWN if (names := _with_verdict(domains, n, word))] or [("", [])]
        for word, names in rows:
            table.add_row(*map(Text, (*head, word, _few(names))[: len(table.columns)]))
            head = ["", "", ""]
    if len(used) > _MAX_DOMAINS:
        table.add_row("", "", Text(f"… and {len(used) - _MAX_DOMAINS:,} more domains"), style="dim")
    return table


def _members(domains: Domains, n: int) -> list[Any]:
    """The queries of a domain, most probable members first."""
    order = np.argsort(-domains.membership[:, n], kind="stable")
    return list(domains.queries[order[domains.domain[order] == n + 1]])


def _with_verdict(domains: Domains, n: int, verdict: str) -> list[Any]:
    """The annotators with this verdict in a domain, largest |τ| first."""
    order = np.argsort(-np.abs(domains.expertise[0][:, n]), kind="stable")
    return list(domains.annotators[order[domains.verdict[order, n] == verdict]])


def _extremes(domains: Domains) -> str:
    frame = domains.queries_to_polars()
    each = min(_MAX_EXTREMES, frame.height // 2)
    if not each:
        return ""
    rows = [f"{_short(query)} ({difficulty:.2f})" for query, difficulty in frame.select("query", "difficulty").rows()]
    return f"Hardest: {', '.join(rows[:each])}; easiest: {', '.join(rows[: -each - 1 : -1])}. The mean is 1."


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(_short(name) for name in names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown}, … and {len(names) - _MAX_NAMES:,} more"


def _short(name: Any) -> str:
    text = str(name)
    if len(text) <= _MAX_NAME_LENGTH:
        return text
    kept = _MAX_NAME_LENGTH // 2
    return f"{text[:kept]}…{text[1 - kept :]}"  # long names often differ only at the end
