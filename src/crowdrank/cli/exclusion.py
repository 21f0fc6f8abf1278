"""What crowdrank annotators is told to leave out, and what that changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.errors import SettingError, UnknownNameError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.data import Judgments
    from crowdrank.evaluation import RankChanges, Verdicts

Words = list[str] | None
Exclude = Annotated[
    Words,
    typer.Option("--exclude", help="Show the ranking without an annotator, or without all of a verdict: reversed …"),
]
ExcludeFile = Annotated[
    Path | None, typer.Option("--exclude-file", help="A file of annotators to leave out: a column annotator.")
]

_MOST_NAMED, _MOST_FAR = 8, 3


def excluded(
    exclude: Words, file: Path | None, judgments: Judgments, judge: Callable[[], Verdicts | None]
) -> list[str]:
    """The annotators meant by name, in the file, or by a verdict; a name goes before a verdict of the same word."""
    from crowdrank.evaluation.verdicts import VERDICTS
    from crowdrank.io import read_annotators

    names = [str(label) for label in judgments.annotators]
    meant = [] if file is None else list(read_annotators(file).annotators)
    found: Verdicts | None = None
    for word in exclude or []:
        if word in names:
            meant.append(word)
        elif word in VERDICTS:
            found = found or judge()
            if found is None:
                raise SettingError("Verdicts need comparisons as they were made: name the annotators to leave out.")
            meant += [str(label) for label in found.annotators[found.verdict == word]]
        else:
            raise UnknownNameError("annotator or verdict", word, [*names, *VERDICTS])
    if not meant:
        raise SettingError("Nobody is left out: no annotator has such a verdict, or the file names none.")
    return list(dict.fromkeys(meant))


def show_moves(moves: RankChanges, headline: str, top: int) -> None:
    """Who is out, how much that changes, and the items that move furthest."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(headline)
    for line in summary(moves):
        console.print(line)
    console.print()
    frame = moves.frame()
    for query in frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]:
        _show_query(console.print, query, top)
    lost = int((~moves.still_judged).sum())
    if lost:
        whose = "1 item was" if lost == 1 else f"{lost:,} items were"
        console.print(f"Note: {whose} judged by nobody else, and can no longer be ranked.", style="yellow")


def summary(moves: RankChanges) -> list[str]:
    names = ", ".join(moves.excluded[:_MOST_NAMED]) + (", …" if len(moves.excluded) > _MOST_NAMED else "")
    whom = "1 annotator" if len(moves.excluded) == 1 else f"{len(moves.excluded):,} annotators"
    changed = f"{moves.n_moved:,} of {len(moves.still_judged):,} items change their rank"
    told = "" if moves.correlation != moves.correlation else f" (Kendall correlation {moves.correlation:.3f})"
    first = f"Without {whom} and their {moves.n_judgments:,} judgments: {names}."
    if not moves.n_moved:
        return [first, "No item changes its rank."]
    return [first, f"{changed}{told}; furthest, {_furthest(moves)}."]


def _furthest(moves: RankChanges) -> str:
    import polars as pl

    frame = moves.frame().drop_nulls("moved").sort(pl.col("moved").abs(), descending=True, maintain_order=True)
    return ", ".join(f"{row['item']} ({_places(row['moved'])})" for row in frame.head(_MOST_FAR).iter_rows(named=True))


def as_dict(moves: RankChanges) -> dict[str, object]:
    correlation = moves.correlation
    return {
        "excluded": list(moves.excluded),
        "judgments": moves.n_judgments,
        "items_moved": moves.n_moved,
        "kendall_correlation": None if correlation != correlation else correlation,
        "converged": moves.converged,
        "ranking": moves.frame().to_dicts(),
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
        table.add_row(str(row["rank"]), without, Text(row["item"]), _places(row["moved"]))
    if frame.height > 2 * top:
        table.add_row("", "", f"… and {frame.height - 2 * top:,} more", style="dim")
    show(table)
    show()


def _places(moved: int | None) -> str:
    if not moved:
        return ""
    return f"{abs(moved)} {'up' if moved > 0 else 'down'}"
