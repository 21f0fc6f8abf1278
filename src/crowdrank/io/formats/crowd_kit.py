"""crowd-kit: worker, left, right, label; the label is one of the two items, and there are no ties."""

from __future__ import annotations

from pathlib import Path

from crowdrank.data import Comparisons
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, Writer, optional, reads_columns, renamed_frame, without_ties
from crowdrank.io.writer import TABLE_SUFFIXES, write_table


def _write(votes: Comparisons, path: Path) -> list[str]:
    if votes.annotator is None:
        raise FormatError(
            f"{path.name}: crowd-kit needs a worker in every row, and these judgments have no annotators."
        )
    kept, notes = without_ties(votes, "crowd-kit")
    names = {"annotator": "worker", "left": "left", "right": "right", "winner": "label"}
    write_table(renamed_frame(kept, names), path)
    return notes


CROWD_KIT = Format(
    name="crowd-kit",
    description="crowd-kit's frames of comparisons: worker, left, right and the label of the better one.",
    known_by="columns worker, left, right and label, and no winner",
    read=reads_columns(
        "crowd-kit", annotator="worker", left="left", right="right", winner="label", query="query?", weight="weight?"
    ),
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight"), _write),
)
