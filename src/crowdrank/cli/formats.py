"""crowdrank formats: whose files can be read, and whose can be written."""

from __future__ import annotations

from typing import Annotated

import typer


def formats(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the formats: what each is, what it is recognised by, and whether it can be written."""
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
        import json

        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_lines=False)
    for heading in ("format", "written", "recognised by"):
        table.add_column(heading, no_wrap=heading != "recognised by")
    for row in rows:
        table.add_row(str(row["format"]), "yes" if row["writes"] else "", str(row["known_by"]))
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print("\nName one where guessing is wrong: crowdrank rank FILE --format NAME")
    console.print("Go from one to another: crowdrank convert IN OUT --to NAME")
