"""crowdrank predict: rank new items with a learned ranking function."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli import options
from crowdrank.cli.options import parse_columns
from crowdrank.cli.output import check_table, console, print_json, print_written, spinner

if TYPE_CHECKING:
    import polars as pl

_MAX_QUERIES_SHOWN = 10


def predict(
    model: Annotated[Path, typer.Argument(help="Ranking function written by `crowdrank learn`.")],
    file: Annotated[Path, typer.Argument(help="Features of the items to rank (.csv, .parquet, LETOR …).")],
    columns: options.FeatureTable = None,
    missing_features: options.MissingFeatureCells = options.MissingFeatures.REFUSE,
    top: Annotated[int, typer.Option(help="Items to show per query.", min=1, rich_help_panel=options.OUTPUT)] = 20,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Rank items by their features, with a ranking function from `crowdrank learn`."""
    from crowdrank.io import write_table
    from crowdrank.io.feature_tables import read_features
    from crowdrank.ltr import RankingFunction
    from crowdrank.ltr.features import build_features

    check_table(out)
    function = RankingFunction.load(model)
    with spinner(f"Ranking {file.name}"):
        roles = parse_columns(columns, option="--features-column")
        frame = function.frame(build_features(read_features(file, columns=roles), missing_features.value))
    if out is not None:
        write_table(frame, out)
    if as_json:
        print_json(frame.to_dicts())
        return
    _show(frame, top, wide)
    print_written([out])


def _show(frame: pl.DataFrame, top: int, wide: bool) -> None:
    from rich.table import Table

    from crowdrank.reports import label, number_column

    screen = console(wide=wide)
    queries = frame.partition_by("query", maintain_order=True) if "query" in frame.columns else [frame]
    for query in queries[:_MAX_QUERIES_SHOWN]:
        name = label(query["query"][0]) if "query" in query.columns else None
        table = Table(title=name, title_justify="left", box=None, pad_edge=False)
        number_column(table, "rank")
        table.add_column("item")
        number_column(table, "score")
        for row in query.head(top).iter_rows(named=True):
            table.add_row(str(row["rank"]), label(row["item"]), f"{row['score']:.3f}")
        if query.height > top:
            table.add_row("", f"… and {query.height - top:,} more", style="dim")
        screen.print(table)
        screen.print()
    if (more := len(queries) - _MAX_QUERIES_SHOWN) > 0:
        screen.print(f"… and {more:,} more queries: --out writes them all.", style="dim")
