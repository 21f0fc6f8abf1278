"""crowdrank convert: write judgments in another file format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli import options
from crowdrank.cli.options import parse_columns
from crowdrank.cli.output import print_json, spinner, with_flags


def convert(
    files: options.JudgmentFiles,
    out: Annotated[Path, typer.Argument(help="File to write.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Format to write (see `crowdrank formats`).",
            autocompletion=options.complete_format,
            rich_help_panel=options.OUTPUT,
        ),
    ] = "tidy",
    columns: options.Columns = None,
    query: options.Query = None,
    kind: options.KindOfRows = None,
    format_name: options.FormatName = None,
    encoding: options.Encoding = None,
    header: options.Header = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Convert judgments from one file format to another."""
    from crowdrank.io import read_with_report, write

    with spinner(f"Reading {files[0].name}"):
        judgments, report = read_with_report(
            options.source_of(files),
            kind=kind,
            columns=parse_columns(columns, query),
            format=format_name,
            encoding=encoding,
            header=header,
            strict=strict,
        )
    with spinner(f"Writing {out.name}"):
        notes = write(judgments, out, to)
    if as_json:
        print_json({"import": report.as_dict(), "written": str(out), "format": to, "notes": notes})
        return
    for line in (*report.lines(), *notes):
        typer.echo(with_flags(line))
    typer.echo(f"Written to {out} as {to}.")
