"""What crowdrank rank is told of the measure whose expected value is to be largest."""

from __future__ import annotations

from typing import Annotated

import typer

from crowdrank.errors import SettingError

Words = list[str] | None
MeasureName = Annotated[
    str | None, typer.Option("--measure", help="Whose expected value is to be largest: ndcg or rbp (crowd-agg).")
]


def with_measure(model: str, settings: Words, measure: str | None) -> Words:
    """The settings of --set, and --measure as one more; refused for models that maximise none."""
    from crowdrank import models

    if measure is None:
        return settings
    able = [name for name, kind in models.REGISTRY.items() if "measure" in kind.__dataclass_fields__]
    if model not in able:
        raise SettingError(f"--measure needs a model that maximises one ({', '.join(able)}), got {model}.")
    if measure not in ("ndcg", "rbp"):
        raise SettingError(f"--measure must be ndcg or rbp, got {measure!r}.")
    return [*(settings or []), f"measure={measure}"]
