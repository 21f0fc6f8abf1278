"""crowdrank export, backup and migrate: the votes of a collection as a file, and copies of its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import check_table, print_json, require_extra, spinner
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.data import AnnotatorDetails


def export(
    database: Annotated[str, typer.Argument(help="SQLite file or postgresql:// URL of the collection.")],
    out: Annotated[Path, typer.Option(help="File to write (.csv, .tsv, .jsonl, .parquet).")],
    everything: Annotated[
        bool, typer.Option("--all", help="Include skips, withdrawn votes and votes of excluded annotators.")
    ] = False,
    criterion: Annotated[
        str | None, typer.Option(help="Write the answers to this criterion instead of those to the main question.")
    ] = None,
    people_out: Annotated[
        Path | None,
        typer.Option(help="File to write with the annotators: annotator, kind (human or llm), family."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the votes of a collection to a file."""
    require_extra("sqlalchemy")
    check_table(out)
    check_table(people_out)
    from crowdrank.io import write_table
    from crowdrank.server.boards import rank_command
    from crowdrank.server.files import counted, escape_formula, to_frame
    from crowdrank.server.records import models_among
    from crowdrank.storage import Collection, task_type

    if "://" not in database and not Path(database).exists():
        raise SettingError(f"{database}: no such collection.")
    with spinner(f"Writing {out.name}"), Collection.open(database) as collection:
        rows = collection.log.vote_rows()
        kind = task_type(collection.log.task()).kind
        table = to_frame(rows if everything else counted(rows, criterion), kind)
        judgments = collection.log.judgments(criterion=criterion)
        annotators = list(collection.annotators.all().values())
    if criterion is not None and not everything and not len(table):
        raise SettingError(f"There are no answers to the criterion {criterion!r}.")
    table = table.drop(name for name in ("query", "criterion", "comment") if not any(table[name]))
    if out.suffix.lower() in (".csv", ".tsv"):
        import polars as pl

        text = [name for name, kind in table.schema.items() if kind == pl.String]
        table = table.with_columns(pl.col(name).map_elements(escape_formula, pl.String) for name in text)
    write_table(table, out)
    models = models_among(annotators)
    if people_out is not None:
        write_table(_people_table([one.name for one in annotators], models), people_out)
    command = None if everything else rank_command(judgments, out, models, people_out)
    if as_json:
        print_json({"out": str(out), "votes": table["seq"].n_unique(), "board": command})
        return
    typer.echo(f"Wrote {table['seq'].n_unique():,} votes to {out}.")
    if command is not None:
        typer.echo(f"Rank them like the leaderboard:  {command}")
        if models and people_out is None:
            typer.echo("The leaderboard tells people from language models: add --people-out people.csv.")


def _people_table(names: Sequence[str], models: Mapping[str, AnnotatorDetails]) -> pl.DataFrame:
    """A table that `--people` reads."""
    import polars as pl

    return pl.DataFrame(
        {
            "annotator": list(names),
            "kind": ["llm" if name in models else "human" for name in names],
            "family": pl.Series([models[name].family if name in models else None for name in names], dtype=pl.String),
        }
    )


def migrate(
    source: Annotated[str, typer.Argument(help="SQLite file or postgresql:// URL of the collection.")],
    target: Annotated[str, typer.Argument(help="New SQLite file, or URL of an empty PostgreSQL database.")],
    as_json: Json = False,
) -> None:
    """Copy a collection from SQLite to PostgreSQL, or back.

    Every row of both is compared. Stop the server of the collection first.
    """
    require_extra("sqlalchemy")
    from crowdrank.storage.transfer import transfer

    with spinner("Copying the collection"):
        rows = transfer(source, target)
    if as_json:
        print_json({"rows": rows, "equal": True})
        return
    typer.echo(f"Copied {rows:,} log entries. Both databases are equal; all links keep working.")


def backup(
    database: Annotated[Path, typer.Argument(help="SQLite file of the collection.")],
    out: Annotated[Path, typer.Option(help="File to write. An existing file is replaced once the copy is complete.")],
    as_json: Json = False,
) -> None:
    """Copy a collection, whether or not it is being served."""
    require_extra("sqlalchemy")
    from crowdrank.storage import Collection

    if "://" not in str(database) and not database.exists():
        raise SettingError(f"{database}: no such collection.")
    with spinner(f"Copying {database.name}"), Collection.open(database) as collection:
        collection.backup(out)
        rows = collection.log.head()
    if as_json:
        print_json({"out": str(out), "rows": rows})
        return
    typer.echo(f"Copied {rows:,} log entries to {out}.")
