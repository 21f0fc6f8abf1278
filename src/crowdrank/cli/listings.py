"""crowdrank models and formats: lists of the models and of the file formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crowdrank.cli.options import Json
from crowdrank.cli.output import as_commands, console, print_json

Compile = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Compile the models that sample and store the result, so that their first fit does not wait for it.",
    ),
]


def models(as_json: Json = False, compile_first: Compile = False) -> None:
    """List the models and the kinds of judgments that each reads."""
    if compile_first:
        _compile_samplers(as_json)
        return
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


def _compile_samplers(as_json: bool) -> None:
    """Fit every model that compiles whatever the size of the data to a few judgments; Numba stores what it compiles."""
    import time
    import warnings

    from crowdrank.models import TPP, TRM, BayesianCrowdBT
    from crowdrank.models.selection import convert_for

    judgments = _few_comparisons()
    shortest: list[Any] = [
        BayesianCrowdBT(chains=2, draws=10, warmup=8, max_sweeps=40),
        TPP(domains=2, draws=10, max_sweeps=10),
        TRM(chains=2, draws=10, warmup=0),
    ]
    seconds: dict[str, float] = {}
    for model in shortest:
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chains this short do not converge
            name = model.fit(convert_for(model, judgments)[0]).model
        seconds[name] = round(time.perf_counter() - begun, 1)
        if not as_json:
            print(f"{name}: {seconds[name]} s", flush=True)
    if as_json:
        print_json({"seconds": seconds})


def _few_comparisons() -> Any:
    """Comparisons of three items in each of two queries by two annotators, who agree but once."""
    from crowdrank.data import Comparisons

    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    rows = [(query, who, *pair) for query in ("1", "2") for who in ("ann", "bob") for pair in pairs]
    query, who, left, right = zip(*rows, strict=True)
    return Comparisons.of(left, right, [*left[:-1], right[-1]], annotator=who, query=query)


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
