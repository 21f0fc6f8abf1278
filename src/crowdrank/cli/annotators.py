"""crowdrank annotators: who to believe."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.progress import doing
from crowdrank.cli.settings import parse_columns, parse_settings
from crowdrank.errors import CrowdrankWarning, SettingError

Words = list[str] | None


def annotators(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet of judgments that name their annotators.")],
    model: Annotated[str, typer.Option(help="Which model: one that weighs annotators.")] = "crowd-bt",
    query: Annotated[str | None, typer.Option(help="The column that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table: .csv .tsv .jsonl .parquet.")] = None,
    top: Annotated[int, typer.Option(help="How many of the best and of the worst to show.", min=1)] = 10,
    settings: Annotated[Words, typer.Option("--set", help="A setting of the model: quality_prior=2,1 …")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Say how far each annotator can be believed, with an interval."""
    from crowdrank import models
    from crowdrank.files import read_with_report, write_table
    from crowdrank.models.reading import as_read_by

    chosen = models.by_name(model)
    if not getattr(chosen, "weighs_annotators", False):
        known = [name for name, kind in models.REGISTRY.items() if getattr(kind, "weighs_annotators", False)]
        raise SettingError(f"{model} believes all annotators alike: use one of {', '.join(known)}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        with doing(f"Reading {file.name}"):
            judgments, _ = read_with_report(file, columns=parse_columns(columns, query))
        fitting = chosen(**parse_settings(chosen, settings, None))
        with doing("Weighing the annotators"):
            frame = fitting.fit(as_read_by(fitting, judgments)[0]).annotators.frame()
    if out is not None:
        write_table(frame, out)
    if as_json:
        import json

        typer.echo(json.dumps(frame.to_dicts(), ensure_ascii=False))
        return
    from rich.console import Console

    from crowdrank.reports import annotators_table, facts

    console = Console(highlight=False, markup=False)
    console.print(f"{facts(judgments)}. Weighed by {model}.\n")
    console.print(annotators_table(frame, top))
    if out is not None:
        console.print(f"Written to {out}.", soft_wrap=True)
