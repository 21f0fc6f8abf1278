"""crowdrank annotators --exclude: the ranking without some annotators beside the ranking with all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.options import INPUT
from crowdrank.cli.output import console
from crowdrank.errors import SettingError, UnknownNameError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.data import Judgments
    from crowdrank.evaluation import RankChanges, Verdicts

Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Show the ranking without an annotator, or without all of a verdict, e.g. reversed. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
ExcludeFile = Annotated[
    Path | None, typer.Option(help="File of annotators to exclude, in a column annotator.", rich_help_panel=INPUT)
]

_MAX_NAMES, _MAX_ITEMS = 8, 3


def excluded_annotators(
    exclude: list[str] | None, file: Path | None, judgments: Judgments, judge: Callable[[], Verdicts | None]
) -> list[str]:
    """Annotators given by name, in a file or by a verdict. A name takes precedence over a verdict of the same word."""
    from crowdrank.evaluation.verdicts import VERDICTS
    from crowdrank.io import read_annotators

    names = [str(label) for label in judgments.annotators]
    chosen = [] if file is None else list(read_annotators(file).annotators)
    found: Verdicts | None = None
    for word in exclude or []:
        if word in names:
            chosen.append(word)
        elif word in VERDICTS:
            found = found or judge()
            if found is None:
                raise SettingError("Verdicts need comparisons, not lists or ratings: name the annotators to exclude.")
            chosen += [str(label) for label in found.annotators[found.verdict == word]]
        else:
            raise UnknownNameError("annotator or verdict", word, [*names, *VERDICTS])
    if not chosen:
        raise SettingError("No annotator to exclude: none has this verdict, or the file names none.")
    return list(dict.fromkeys(chosen))


def show_rank_changes(changes: RankChanges, headline: str, top: int) -> None:
    """Print who is excluded, how much that changes, and the items that move furthest."""
    screen = console()
    screen.print(headline)
    for line in _summary(changes):
        screen.print(line)
    screen.print()
    frame = changes.to_polars()
    for query in frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]:
        _show_query(screen.print, query, top)
    if lost := int((~changes.still_judged).sum()):
        items = "1 item was" if lost == 1 else f"{lost:,} items were"
        screen.print(f"Note: {items} judged by nobody else and cannot be ranked without them.", style="yellow")


def _summary(changes: RankChanges) -> list[str]:
    names = ", ".join(changes.excluded[:_MAX_NAMES]) + (", …" if len(changes.excluded) > _MAX_NAMES else "")
    count = "1 annotator" if len(changes.excluded) == 1 else f"{len(changes.excluded):,} annotators"
    changed = f"{changes.n_moved:,} of {len(changes.still_judged):,} items change rank"
    correlation = (
        "" if changes.correlation != changes.correlation else f" (Kendall correlation {changes.correlation:.3f})"
    )
    first = f"Without {count} and their {changes.n_judgments:,} judgments: {names}."
    if not changes.n_moved:
        return [first, "No item changes rank."]
    return [first, f"{changed}{correlation}; furthest, {_furthest(changes)}."]


def _furthest(changes: RankChanges) -> str:
    import polars as pl

    frame = changes.to_polars().drop_nulls("moved").sort(pl.col("moved").abs(), descending=True, maintain_order=True)
    return ", ".join(
        f"{row['item']} ({_positions(row['moved'])})" for row in frame.head(_MAX_ITEMS).iter_rows(named=True)
    )


def as_dict(changes: RankChanges) -> dict[str, object]:
    correlation = changes.correlation
    return {
        "excluded": list(changes.excluded),
        "judgments": changes.n_judgments,
        "items_moved": changes.n_moved,
        "kendall_correlation": None if correlation != correlation else correlation,
        "converged": changes.converged,
        "ranking": changes.frame().to_dicts(),
    }


def _show_query(show: Callable[..., None], frame: pl.DataFrame, top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    title = Text(frame["query"][0]) if "query" in frame.columns else None
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("without", justify="right")
    table.add_column("item", overflow="fold", max_width=48)
    table.add_column("moved", justify="right")
    for row in frame.head(2 * top).iter_rows(named=True):
        without = "" if row["rank_without"] is None else str(row["rank_without"])
        table.add_row(str(row["rank"]), without, Text(row["item"]), _positions(row["moved"]))
    if frame.height > 2 * top:
        table.add_row("", "", f"… and {frame.height - 2 * top:,} more", style="dim")
    show(table)
    show()


def _positions(moved: int | None) -> str:
    if not moved:
        return ""
    return f"{abs(moved)} {'up' if moved > 0 else 'down'}"
