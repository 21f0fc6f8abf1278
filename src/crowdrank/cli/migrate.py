"""crowdrank migrate: copy a collection from SQLite to PostgreSQL, or back."""

from __future__ import annotations

from typing import Annotated

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import print_json, require_extra, spinner


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
