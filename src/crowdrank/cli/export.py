"""crowdrank export: write the votes of a collection as a file that `crowdrank rank` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import check_table, print_json, require_extra, spinner
from crowdrank.errors import SettingError


def export(
    database: Annotated[str, typer.Argument(help="SQLite file or postgresql:// URL of the collection.")],
    out: Annotated[Path, typer.Option(help="File to write (.csv, .tsv, .jsonl, .parquet).")],
    everything: Annotated[
        bool, typer.Option("--all", help="Include skips, withdrawn votes and votes of excluded annotators.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the votes of a collection to a file."""
    require_extra("sqlalchemy")
    check_table(out)
    from crowdrank.io import write_table
    from crowdrank.server.boards import rank_command
    from crowdrank.server.files import counted, escape_formula, to_frame
    from crowdrank.storage import Collection

    if "://" not in database and not Path(database).exists():
        raise SettingError(f"{database}: no such collection.")
    with spinner(f"Writing {out.name}"), Collection.open(database) as collection:
        rows = collection.log.vote_rows()
        table = to_frame(rows if everything else counted(rows))
        judgments = collection.log.judgments()
    if not any(table["query"]):
        table = table.drop("query")
    if out.suffix.lower() in (".csv", ".tsv"):
        import polars as pl

        text = [name for name, kind in table.schema.items() if kind == pl.String]
        table = table.with_columns(pl.col(name).map_elements(escape_formula, pl.String) for name in text)
    write_table(table, out)
    command = None if everything else rank_command(judgments, out)
    if as_json:
        print_json({"out": str(out), "votes": len(table), "board": command})
        return
    typer.echo(f"Wrote {len(table):,} votes to {out}.")
    if command is not None:
        typer.echo(f"Rank them like the leaderboard:  {command}")
