"""Which model crowdrank rank takes: the one named, the usual one, or with --model auto the one that suits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crowdrank.cli.progress import counting

if TYPE_CHECKING:
    from crowdrank.cli.about_items import AboutItems
    from crowdrank.judgments import Judgments

AUTO = "auto"


def named(
    model: str | None, judgments: Judgments, about: AboutItems, features: tuple[str, ...], seed: int | None
) -> tuple[str, str]:
    """The name of the model, and why it was taken ("" unless it was chosen by comparing)."""
    from crowdrank.models.reading import default_for

    usual = default_for(judgments, chances=about.system is not None)
    if model != AUTO:
        return model or usual, ""
    from crowdrank.errors import DataError
    from crowdrank.evaluation import compare_models

    known = _with_features(judgments, about, features)
    try:
        with counting("Comparing models") as tell:
            found = compare_models(
                known, features=features or None, quick=True, seed=seed or 0, on_progress=tell
            ).recommendation
    except DataError as error:
        return usual, f"{usual} is the usual model; no others were compared: {error}"
    return found.model, found.why


def _with_features(judgments: Judgments, about: AboutItems, features: tuple[str, ...]) -> Judgments:
    """Only those that were asked for: other columns were read for other ends."""
    from crowdrank.judgments import Comparisons

    if not isinstance(judgments, Comparisons):
        return judgments
    return about.add_to(judgments) if features else replace(judgments, features={})
