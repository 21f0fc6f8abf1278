"""`write` and `write_table`: judgments and tables to files."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.errors import FormatError
from crowdrank.io.formats.registry import get_format, list_formats
from crowdrank.io.table_formats import write_html, write_latex, write_markdown, write_workbook

if TYPE_CHECKING:
    from crowdrank.io.formats.base import Writer

_Writers = dict[str, Callable[[pl.DataFrame, Path], object]]
_DATA_WRITERS: _Writers = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
    ".ndjson": lambda frame, path: frame.write_ndjson(path),
    ".json": lambda frame, path: frame.write_json(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}
_DOCUMENT_WRITERS: _Writers = {
    ".md": write_markdown,
    ".tex": write_latex,
    ".html": write_html,
    ".xlsx": write_workbook,
}
_TABLE_WRITERS: _Writers = {**_DATA_WRITERS, **_DOCUMENT_WRITERS}
SUFFIXES = tuple(_TABLE_WRITERS)
DATA_SUFFIXES = tuple(_DATA_WRITERS)
"""The suffixes of tables that are read back as they were; tables for documents round their numbers."""
# The suffixes of formats that other programs read as tables.
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")

_KINDS = {Comparisons: "comparisons", Ratings: "ratings", Rankings: "rankings"}
_CONVERSION_RULES = {
    ("ratings", "comparisons"): "of two items that one annotator graded, the better grade wins and equal grades tie",
    ("rankings", "comparisons"): "every two items of a list, except those tied on its last place",
    ("comparisons", "rankings"): "each annotator's items by wins minus losses",
    ("ratings", "rankings"): "each annotator's items by grade",
    ("comparisons", "ratings"): "1 for the winner, 0 for the loser, ½ each for a tie",
    ("rankings", "ratings"): "the share of the other items that are below it",
}


def write(judgments: Judgments, path: str | PathLike[str], format: str = "tidy") -> list[str]:  # noqa: A002
    """Write judgments to a file.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments. They are converted if the format holds another kind.
    path : path
        The file. Its suffix must be one of the format.
    format : str, default "tidy"
        A format that can be written; ``crowdrank.io.list_formats()`` lists them.

    Returns
    -------
    list of str
        Sentences about conversions and omissions.

    Raises
    ------
    FormatError
        If the format cannot be written or cannot hold these judgments, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> votes = Comparisons.of(["x", "y"], ["y", "z"], ["x", "tie"], annotator=["ann", "bob"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(votes, Path(folder) / "votes.csv", "crowd-kit")
    ['1 tie was left out: crowd-kit has none.']
    """
    target, writer = Path(path), _writer(format)
    if target.suffix.lower() not in writer.suffixes:
        known = ", ".join(suffix or "nothing" for suffix in writer.suffixes)
        raise FormatError(
            f"{target.name}: {format} files end in {known}, got {target.suffix!r}.", remedy="Rename the file."
        )
    kind = _KINDS[type(judgments)]
    notes = []
    if kind not in writer.kinds:
        wanted = writer.kinds[0]
        notes.append(f"{kind.capitalize()} were converted to {wanted}: {_CONVERSION_RULES[kind, wanted]}.")
        judgments = _convert(judgments, wanted)
        if not len(judgments):
            raise FormatError(f"{target.name}: nothing is left to write. {notes[0]}")
    notes += writer.write(judgments, target)
    n_both_bad = judgments.n_both_bad if isinstance(judgments, Comparisons) else 0
    if n_both_bad and "both_bad" not in writer.optional_columns:
        notes.append(f"{n_both_bad:,} answers that both items are bad are plain ties in {format}.")
    if lost := [name for name in _optional_columns(judgments) if name not in writer.optional_columns]:
        notes.append(f"Left out, because {format} has no column for it: {', '.join(lost)}.")
    return notes


def _convert(judgments: Judgments, kind: str) -> Judgments:
    if isinstance(judgments, Rankings) and kind == "comparisons":
        return judgments.to_comparisons(ties="above_last")
    if isinstance(judgments, Ratings) and kind == "comparisons":
        return judgments.to_comparisons(ties="keep")
    converted: Judgments = getattr(judgments, f"to_{kind}")()
    return converted


def _optional_columns(judgments: Judgments) -> list[str]:
    """Return the optional columns that these judgments have."""
    names = ("annotator", "weight", "time", "duration")
    present = [name for name in names if getattr(judgments, name, None) is not None]
    queries = ["query"] if judgments.items.has_queries else []
    return present + queries + (["features"] if getattr(judgments, "features", None) else [])


def _writer(name: str) -> Writer:
    found = get_format(name).writer
    if found is None:
        known = ", ".join(known.name for known in list_formats() if known.writer is not None)
        raise FormatError(f"{name} can be read but not written.", remedy=f"Formats that can be written: {known}.")
    return found


def write_table(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table.

    Parameters
    ----------
    frame : polars.DataFrame
        The table.
    path : path
        The file; its suffix is .csv, .tsv, .jsonl (.ndjson), .json, .parquet, .xlsx, .md, .tex (booktabs) or .html.

    Raises
    ------
    FormatError
        If the suffix is another, or the file cannot be written.
    """
    target = Path(path)
    write_frame = _TABLE_WRITERS.get(target.suffix.lower())
    if write_frame is None:
        raise FormatError(f"{target.name}: tables are written as {', '.join(SUFFIXES)}, got {target.suffix!r}.")
    guard_write(target, lambda: write_frame(frame, target))


def write_lines(lines: pl.Series, path: Path) -> None:
    """Write lines of text."""
    guard_write(path, lambda: path.write_text("\n".join(lines.to_list()) + "\n", encoding="utf-8"))


def guard_write(target: Path, write: Callable[[], object]) -> None:
    """Run a function that writes a file, and raise a `FormatError` if it fails."""
    try:
        write()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{target}: cannot be written ({reason}).") from error
