"""crowdrank backup: a copy of a collection, while it is being written to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.progress import needed
from crowdrank.errors import SettingError


def backup(
    database: Annotated[Path, typer.Argument(help="The file of a collection.")],
    out: Annotated[Path, typer.Option(help="Where to write the copy; a file there is replaced once it is whole.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines: what was written.")] = False,
) -> None:
    """Copy a collection as it is at one moment, whether or not it is being served."""
    needed("sqlalchemy")
    from crowdrank.storage import Collection

    if "://" not in str(database) and not database.exists():
        raise SettingError(f"There is no collection {database}.")
    with Collection.open(database) as collection:
        collection.backup(out)
        rows = collection.log.head()
    if as_json:
        typer.echo(json.dumps({"out": str(out), "rows": rows}, ensure_ascii=False))
        return
    typer.echo(f"{out} holds the collection up to row {rows:,} of its log.")
