"""crowdrank models: the models and their settings."""

from __future__ import annotations

from crowdrank.cli.options import Json
from crowdrank.cli.output import print_json


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
