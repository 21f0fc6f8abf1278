"""crowdrank models: what there is."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, settings included.")] = False,
) -> None:
    """List the models: what each reads, and one line on it."""
    from crowdrank.models import REGISTRY
    from crowdrank.models.conversion import kinds_read

    rows = [
        (name, ", ".join(kind.__name__.lower() for kind in kinds_read(model)), (model.__doc__ or "").splitlines()[0])
        for name, model in REGISTRY.items()
    ]
    if as_json:
        import json
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
        typer.echo(json.dumps(described, indent=2))
        return
    from rich.console import Console

    from crowdrank.reports import models_table

    console = Console()
    console.print(models_table(rows))
    console.print("\nUse one with: crowdrank rank FILE --model NAME --set setting=value", highlight=False)
