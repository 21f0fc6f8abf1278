"""Tables for the terminal that belong to leaderboards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.table import Table

from crowdrank.reports.terminal import label, number_column

if TYPE_CHECKING:
    from crowdrank.results import CovariateEffect


def covariates_table(effects: Iterable[CovariateEffect], level: float = 0.95) -> Table:
    """Return a table of the coefficients of covariates, which were removed from the scores."""
    table = Table(box=None, pad_edge=False)
    table.add_column("covariate")
    for head in ("coefficient", f"between ({level:.0%})", "typical difference", "wins with it"):
        number_column(table, head)
    for effect in effects:
        digits = max(2, 1 - int(np.floor(np.log10(max(effect.std_error, 1e-12)))))
        coefficient, low, high = (f"{value:+.{digits}f}" for value in (effect.effect, effect.low, effect.high))
        table.add_row(
            label(effect.feature), coefficient, f"{low} to {high}", f"{effect.unit:.3g}", f"{effect.probability:.0%}"
        )
    return table


def rank_changes_table(changes: pl.DataFrame, top: int) -> Table:
    """Return a table of the items whose rank changes by the control of covariates, best first."""
    changed = changes.filter(pl.col("change") != 0)
    table = Table(box=None, pad_edge=False)
    if "query" in changed.columns:
        table.add_column("query")
    table.add_column("item")
    for head in ("rank", "without control", "change"):
        number_column(table, head)
    for row in changed.head(top).iter_rows():
        *names, rank, without, change = row
        table.add_row(*map(label, names), str(rank), str(without), f"{change:+d}")
    if changed.height > top:
        table.add_row(label(f"… and {changed.height - top:,} more"), style="dim")
    return table


def provisional_table(rows: Sequence[Mapping[str, Any]], top: int) -> Table:
    """Return a table of items without rank: item, score, error and number of judgments."""
    table = Table(box=None, pad_edge=False)
    names = {"query", "item"}
    heads = [name for name in rows[0] if name not in names]
    for name in rows[0]:
        if name in names:
            table.add_column(name)
    for head in heads:
        number_column(table, "± error" if head == "std_error" else head)
    spread = max(row["score"] for row in rows) - min(row["score"] for row in rows)
    digits = 0 if spread > 20 or abs(rows[0]["score"]) > 200 else 2
    for row in rows[:top]:
        labels = [label(row[name]) for name in row if name in names]
        numbers = [f"{row[head]:,}" if isinstance(row[head], int) else f"{row[head]:.{digits}f}" for head in heads]
        table.add_row(*labels, *numbers)
    if len(rows) > top:
        table.add_row(label(f"… and {len(rows) - top:,} more"), style="dim")
    return table


def drift_table(changes: pl.DataFrame, periods: Sequence[str], level: float, top: int) -> Table:
    """Return a table of the change of each item from the first period to the last, largest first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("item")
    for head in (periods[0], periods[-1], "change", f"between ({level:.0%})", "p"):
        number_column(table, head)
    spread = max(float(changes["last"].max() - changes["last"].min()), 0.0)  # type: ignore[operator, arg-type]
    digits = 0 if spread > 20 else 2
    for row in changes.head(top).to_dicts():
        first, last, change, low, high = (row[key] for key in ("first", "last", "change", "low", "high"))
        interval = f"{low:+.{digits}f} to {high:+.{digits}f}"
        numbers = (f"{first:.{digits}f}", f"{last:.{digits}f}", f"{change:+.{digits}f}", interval)
        table.add_row(label(row["item"]), *numbers, f"{row['p_value']:.3f}")
    if changes.height > top:
        table.add_row(label(f"… and {changes.height - top:,} more"), style="dim")
    return table


def misfit_table(frame: pl.DataFrame, top: int) -> Table:
    """Return a table of the items or judges with the largest infit."""
    table = Table(box=None, pad_edge=False)
    name, *heads = frame.columns
    table.add_column(name)
    for head in heads:
        number_column(table, head)
    for who, infit, outfit, count in frame.head(top).iter_rows():
        table.add_row(label(who), f"{infit:.2f}", f"{outfit:.2f}", f"{count:,}")
    if frame.height > top:
        table.add_row(label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def differences_table(frame: pl.DataFrame, top: int) -> Table:
    """Return a table of items that differ between categories, largest difference first."""
    table = Table(box=None, pad_edge=False)
    for head in ("category", "item"):
        table.add_column(head)
    for head in ("difference", "± error", "rank", "overall rank"):
        number_column(table, head)
    digits = 0 if frame["std_error"].max() > 1 else 2  # type: ignore[operator]
    for category, item, difference, error, _, rank, overall in frame.head(top).iter_rows():
        numbers = (
            f"{difference:+.{digits}f}",
            f"{error:.{digits}f}",
            str(rank),
            "" if overall is None else str(overall),
        )
        table.add_row(label(category), label(item), *numbers)
    if frame.height > top:
        table.add_row(label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def correlations_table(frame: pl.DataFrame, level: float = 0.95) -> Table:
    """Return a table of the correlations of criteria."""
    table = Table(box=None, pad_edge=False)
    for head in ("criterion", "and"):
        table.add_column(head)
    for head in ("correlation", f"between ({level:.0%})", "items"):
        number_column(table, head)
    for first, second, value, low, high, count in frame.iter_rows():
        known = value == value
        between = f"{low:+.2f} to {high:+.2f}" if known else "unknown"
        table.add_row(label(first), label(second), f"{value:+.2f}" if known else "", between, f"{count:,}")
    return table
