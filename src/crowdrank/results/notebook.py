"""A ranking as an HTML table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from crowdrank.results.ranking import Ranking

_MAX_ROWS = 20
_MAX_QUERIES = 3


def ranking_html(ranking: Ranking) -> str:
    """Return the best items of the first queries as tables, with the notes below."""
    frame, items = ranking.to_polars(), ranking.items
    parts = [f"<p><b>{escape(ranking.model)}</b>: {len(items):,} items</p>"]
    for code, query in enumerate(items.queries[:_MAX_QUERIES]):
        caption = str(query) if items.has_queries else ""
        parts.append(_table(frame[items.of_query(code)], caption))
    if (more := len(items.queries) - _MAX_QUERIES) > 0:
        parts.append(f"<p>… and {more:,} more queries</p>")
    if ranking.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in ranking.notes) + "</ul>")
    return "<div>" + "".join(parts) + "</div>"


def _table(frame: pl.DataFrame, caption: str) -> str:
    has_uncertainty = "std_error" in frame.columns
    head = ["rank", "item", "score"] + ["± error", "rank interval", "group"] * has_uncertainty
    rows = [_cells(row, has_uncertainty) for row in frame.head(_MAX_ROWS).iter_rows(named=True)]
    if frame.height > _MAX_ROWS:
        rows.append(["", f"… and {frame.height - _MAX_ROWS:,} more"] + [""] * (len(head) - 2))
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: dict[str, Any], has_uncertainty: bool) -> list[str]:
    cells = [str(row["rank"]), str(row["item"]), f"{row['score']:.3g}"]
    if has_uncertainty:
        low, high = row["rank_low"], row["rank_high"]
        interval = f"{low}–{high}" if low < high else str(low)
        cells += [f"{row['std_error']:.2g}", interval, str(row["group"])]
    return cells
