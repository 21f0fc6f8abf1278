"""Judgments out, in a format that others read."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.errors import FormatError
from crowdrank.io.formats import FORMATS, Writer, by_name

_KINDS = {Comparisons: "comparisons", Ratings: "ratings", Rankings: "rankings"}
_RULES = {
    ("ratings", "comparisons"): "of two items one annotator graded, the better grade wins",
    ("rankings", "comparisons"): "every two items of a list, ties dropped",
    ("comparisons", "rankings"): "each annotator's items by wins less losses",
    ("ratings", "rankings"): "each annotator's items by grade",
    ("comparisons", "ratings"): "1 for the winner, 0 for the loser, ½ each for a tie",
    ("rankings", "ratings"): "the share of the others an item was put above",
}


def write(judgments: Judgments, path: str | PathLike[str], format: str = "tidy") -> list[str]:  # noqa: A002
    """Write judgments as one of `crowdrank formats`; returns sentences on what was changed or could not be held.

    >>> import tempfile
    >>> votes = Comparisons.of(["x", "y"], ["y", "z"], ["x", "tie"], annotator=["ann", "bob"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(votes, Path(folder) / "votes.csv", "crowd-kit")
    ['1 tie was left out: crowd-kit has none.']
    """
    target, writer = Path(path), _writer(format)
    if target.suffix.lower() not in writer.suffixes:
        known = ", ".join(suffix or "nothing" for suffix in writer.suffixes)
        raise FormatError(f"{target.name}: {format} files end in {known}, got {target.suffix!r}.")
    kind = _KINDS[type(judgments)]
    said = []
    if kind not in writer.kinds:
        wanted = writer.kinds[0]
        said.append(f"{kind.capitalize()} were made {wanted}: {_RULES[kind, wanted]}.")
        judgments = getattr(judgments, f"to_{wanted}")()
        if not len(judgments):
            raise FormatError(f"{target.name}: nothing is left to write: {said[0]}")
    said += writer.write(judgments, target)
    if lost := [name for name in _beside(judgments) if name not in writer.holds]:
        said.append(f"Left out, because {format} does not hold it: {', '.join(lost)}.")
    return said


def _beside(judgments: Judgments) -> list[str]:
    """What there is beside the judgments themselves."""
    names = ("annotator", "weight", "time", "duration")
    there = [name for name in names if getattr(judgments, name, None) is not None]
    queries = ["query"] if judgments.items.has_queries else []
    return there + queries + (["features"] if getattr(judgments, "features", None) else [])


def _writer(name: str) -> Writer:
    found = by_name(name).writer
    if found is None:
        known = ", ".join(known.name for known in FORMATS if known.writer is not None)
        raise FormatError(f"{name} is read and not written; what can be written: {known}.")
    return found
