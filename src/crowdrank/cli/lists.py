"""What crowdrank rank is told of lists that leave items out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.errors import DataError, SettingError

if TYPE_CHECKING:
    from crowdrank.judgments import Judgments

Missing = Annotated[
    str | None,
    typer.Option("--missing", help="What a list that leaves an item out says of it: unknown (nothing), or worse."),
]


def made_whole(judgments: Judgments, missing: str | None) -> tuple[Judgments, str]:
    """The lists with what they leave out at their ends, if it is to count as worse; and the rule ("" if none)."""
    from crowdrank.judgments import Rankings

    if missing is None:
        return judgments, ""
    if missing not in ("unknown", "worse"):
        raise SettingError(f"--missing must be unknown or worse, got {missing!r}.")
    if not isinstance(judgments, Rankings):
        kind = type(judgments).__name__.lower()
        raise DataError(f"--missing is about items that lists leave out, but these judgments are {kind}.")
    if missing == "unknown":
        return judgments, ""
    return judgments.with_missing_last(), "items that a list leaves out count as worse than those it names"
