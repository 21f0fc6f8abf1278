"""crowdrank predict: new items ranked by a function that was learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.options import parse_columns
from crowdrank.cli.progress import doing
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

Words = list[str] | None

_MOST_QUERIES_SHOWN = 10


def predict(
    model: Annotated[Path, typer.Argument(help="A function that crowdrank learn kept.")],
    file: Annotated[Path, typer.Argument(help="Features of the items to rank: .csv, .parquet, LETOR …")],
    out: Annotated[Path | None, typer.Option(help="Write the whole ranking: .csv .tsv .jsonl .parquet.")] = None,
    top: Annotated[int, typer.Option(help="How many items of each query to show.", min=1)] = 20,
    columns: Annotated[
        Words, typer.Option("--features-map", help="Of the features: item=…, query=… (query= for none).")
    ] = None,
    missing_features: Annotated[str, typer.Option(help="Cells without a number: refuse, or zero.")] = "refuse",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")] = False,
) -> None:
    """Rank items by their features, with a function that was learnt before."""
    from crowdrank.io import write_table
    from crowdrank.io.feature_tables import read_features
    from crowdrank.ltr import RankingFunction
    from crowdrank.ltr.features import build_features

    if missing_features not in ("refuse", "zero"):
        raise SettingError(f"--missing-features must be refuse or zero, got {missing_features!r}.")
    function = RankingFunction.load(model)
    with doing(f"Ranking {file.name}"):
        roles = parse_columns(columns, None)
        found = build_features(read_features(file, columns=roles), missing_features)  # type: ignore[arg-type]
        frame = function.frame(found)
    if out is not None:
        write_table(frame, out)
    if as_json:
        import json

        typer.echo(json.dumps(frame.to_dicts(), ensure_ascii=False))
        return
    _show(frame, top)
    if out is not None:
        typer.echo(f"Written to {out}.")


def _show(frame: pl.DataFrame, top: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    parts = frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]
    for part in parts[:_MOST_QUERIES_SHOWN]:
        name = Text(part["query"][0]) if "query" in part.columns else None
        table = Table(title=name, title_justify="left", box=None, pad_edge=False)
        table.add_column("rank", justify="right")
        table.add_column("item", overflow="fold", max_width=48)
        table.add_column("score", justify="right")
        for row in part.head(top).iter_rows(named=True):
            table.add_row(str(row["rank"]), Text(row["item"]), f"{row['score']:.3f}")
        if part.height > top:
            table.add_row("", f"… and {part.height - top:,} more", style="dim")
        console.print(table)
        console.print()
    if (more := len(parts) - _MOST_QUERIES_SHOWN) > 0:
        console.print(f"… and {more:,} more queries: --out writes them all.", style="dim")
