"""crowdrank convert: one format in, another out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.options import parse_columns
from crowdrank.cli.progress import doing

Words = list[str] | None


def convert(
    file: Annotated[Path, typer.Argument(help="Judgments in any format that is known.")],
    out: Annotated[Path, typer.Argument(help="Where they go.")],
    to: Annotated[str, typer.Option(help="The format to write (see `crowdrank formats`).")] = "tidy",
    format_name: Annotated[
        str | None, typer.Option("--format", help="The format to read, if not to be guessed.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The column that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    kind: Annotated[str | None, typer.Option(help="What the rows are: comparisons, ratings or rankings.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8: latin-1 …")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the file if any row must be dropped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the import report as JSON.")] = False,
) -> None:
    """Write the judgments of a file in another format."""
    from crowdrank.io import read_with_report, write

    with doing(f"Reading {file.name}"):
        judgments, report = read_with_report(
            file, kind=kind, columns=parse_columns(columns, query), format=format_name, encoding=encoding, strict=strict
        )
    with doing(f"Writing {out.name}"):
        said = write(judgments, out, to)
    if as_json:
        import json

        told = {"import": report.as_dict(), "written": str(out), "format": to, "notes": said}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    for line in (*report.lines(), *said):
        typer.echo(line)
    typer.echo(f"Written to {out} as {to}.")
