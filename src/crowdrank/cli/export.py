"""crowdrank export: the votes of a collection as a file that `crowdrank rank` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.progress import needed
from crowdrank.errors import SettingError


def export(
    database: Annotated[str, typer.Argument(help="The file of a collection, or postgresql://…")],
    out: Annotated[Path, typer.Option(help="Where to write the votes: .csv .tsv .jsonl .parquet.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Also what does not count: skips, votes taken back or of excluded annotators.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines: what was written.")] = False,
) -> None:
    """Write the votes of a collection; ranked, they give its board."""
    needed("sqlalchemy")
    from crowdrank.io import write_table
    from crowdrank.server.boards import rank_command
    from crowdrank.server.exports import counted, escape_formula, to_frame
    from crowdrank.storage import Collection

    if "://" not in database and not Path(database).exists():
        raise SettingError(f"There is no collection {database}.")
    with Collection.open(database) as collection:
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
        typer.echo(json.dumps({"out": str(out), "votes": len(table), "board": command}, ensure_ascii=False))
        return
    typer.echo(f"{len(table):,} votes are in {out}.")
    if command is not None:
        typer.echo(f"Their board:  {command}")
