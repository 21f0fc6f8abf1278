"""What crowdrank rank is told of hidden domains, and what it draws of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.errors import DataError, SettingError

if TYPE_CHECKING:
    from crowdrank.judgments import Judgments

Words = list[str] | None
DomainCount = Annotated[
    str | None, typer.Option("--domains", help="How many hidden domains the queries have: auto, or a number (tpp).")
]
HeatMap = Annotated[
    Path | None, typer.Option("--heat-map", help="Draw who is good in which domain: .html .svg .png (tpp).")
]


def with_domains(
    model: str, judgments: Judgments, settings: Words, domains: str | None, heat_map: Path | None
) -> Words:
    """The settings of --set, and --domains as one more; what model or judgments have no use for is refused."""
    from crowdrank import models

    able = [name for name, kind in models.REGISTRY.items() if "domains" in kind.__dataclass_fields__]
    for option, value in (("--domains", domains), ("--heat-map", heat_map)):
        if value is not None and model not in able:
            raise SettingError(f"{option} needs a model that learns domains ({', '.join(able)}), got {model}.")
    if heat_map is not None and judgments.annotator is None:
        raise DataError("--heat-map shows annotators, but the judgments name none: --map annotator=COLUMN says who.")
    if domains is None:
        return settings
    if domains != "auto" and not domains.isdecimal():
        raise SettingError(f"--domains must be auto or a whole number, got {domains!r}.")
    return [*(settings or []), f"domains={domains}"]
