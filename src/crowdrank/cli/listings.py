"""crowdrank models and formats: lists of the models and of the file formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import as_commands, console, print_json


def models(as_json: Json = False) -> None:
    """List the models and the kinds of judgments that each reads."""
    from crowdrank.models import REGISTRY
    from crowdrank.models.selection import kinds_read

    rows = [
        (name, ", ".join(kind.__name__.lower() for kind in kinds_read(model)), (model.__doc__ or "").splitlines()[0])
        for name, model in REGISTRY.items()
    ]
    if as_json:
        from dataclasses import fields

        described = [
            {
                "model": name,
                "reads": reads.split(", "),
                "about": line,
                "settings": {f.name: f.default for f in fields(REGISTRY[name])},
            }
            for name, reads, line in rows
        ]
        print_json(described, indent=2)
        return
    from rich.console import Console

    from crowdrank.reports import models_table

    console = Console()
    console.print(models_table(rows))
    console.print("\nUse one with: crowdrank rank FILE --model NAME --set setting=value", highlight=False)


def formats(
    explain: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show how a file is read, and what its columns might be.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the file formats: how each is recognised, and whether it can be written."""
    if explain is not None:
        from crowdrank.io import explain as explain_source

        typer.echo(as_commands(explain_source(explain)))
        return
    from crowdrank.io import list_formats

    rows = [
        {
            "format": known.name,
            "about": known.description,
            "known_by": known.known_by,
            "writes": [] if known.writer is None else list(known.writer.kinds),
            "suffixes": [] if known.writer is None else list(known.writer.suffixes),
        }
        for known in list_formats()
    ]
    if as_json:
        print_json(rows, indent=2)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_lines=False)
    for heading in ("format", "written", "recognised by"):
        table.add_column(heading, no_wrap=heading != "recognised by")
    for row in rows:
        table.add_row(str(row["format"]), "yes" if row["writes"] else "", str(row["known_by"]))
    screen = console()
    screen.print(table)
    screen.print("\nIf a format is not recognised: crowdrank rank FILE --format NAME")
    screen.print("To convert a file: crowdrank convert IN OUT --to NAME")
