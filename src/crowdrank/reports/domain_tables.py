"""Domains for a terminal: what they are made of, who is at home in them, and which queries are hard."""

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

_TOLD = ("expert", "reversed", "random")
_MOST_DOMAINS = 10
_MOST_NAMES = 5
_MOST_EXTREMES = 3
_LONGEST_NAME = 24


def domains_report(domains: Domains) -> RenderableType:
    """How many domains there are, who is who in them, and the hardest and easiest queries; a few names of each."""
    parts: list[RenderableType] = [Text(_headline(domains)), Padding(_table(domains), (1, 0))]
    if len(domains.annotators):
        verdicts = f"Expert: a quality of {EXPERT_QUALITY} or more; random: below {RANDOM_QUALITY}, or perhaps a coin; "
        parts.append(Text(f"{verdicts}reversed: surely below a half.", style="dim"))
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
    there = [n for n in np.argsort(-domains.sizes, kind="stable") if domains.sizes[n]]
    for n in there[:_MOST_DOMAINS]:
        head = [f"{n + 1}", f"{domains.sizes[n]:,}", _few(_members(domains, n))]
        said = [(word, names) for word in _TOLD if (names := _called(domains, n, word))] or [("", [])]
        for word, names in said:
            table.add_row(*map(Text, (*head, word, _few(names))[: len(table.columns)]))
            head = ["", "", ""]
    if len(there) > _MOST_DOMAINS:
        table.add_row("", "", Text(f"… and {len(there) - _MOST_DOMAINS:,} more domains"), style="dim")
    return table


def _members(domains: Domains, n: int) -> list[Any]:
    """The queries of a domain, the surest first."""
    order = np.argsort(-domains.membership[:, n], kind="stable")
    return list(domains.queries[order[domains.domain[order] == n + 1]])


def _called(domains: Domains, n: int, word: str) -> list[Any]:
    """The annotators of whom a domain's verdict is this, the farthest from a coin first."""
    order = np.argsort(-np.abs(domains.expertise[0][:, n]), kind="stable")
    return list(domains.annotators[order[domains.verdict[order, n] == word]])


def _extremes(domains: Domains) -> str:
    frame = domains.queries_frame()
    each = min(_MOST_EXTREMES, frame.height // 2)
    if not each:
        return ""
    rows = [f"{_short(query)} ({difficulty:.2f})" for query, difficulty in frame.select("query", "difficulty").rows()]
    return f"Hardest: {', '.join(rows[:each])}; easiest: {', '.join(rows[: -each - 1 : -1])}. The mean is 1."


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(_short(name) for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … and {len(names) - _MOST_NAMES:,} more"


def _short(name: Any) -> str:
    text = str(name)
    if len(text) <= _LONGEST_NAME:
        return text
    kept = _LONGEST_NAME // 2
    return f"{text[:kept]}…{text[1 - kept :]}"  # long names are as apt to differ at their end
