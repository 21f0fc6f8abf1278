"""crowdrank backup: copy the database of a collection while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import print_json, require_extra, spinner
from crowdrank.errors import SettingError


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
