"""crowd-kit: worker, left, right, label; the label is one of the two, and there are no ties."""

from __future__ import annotations

from pathlib import Path

from crowdrank.data import Comparisons
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, Writer, decided, declared, has, held, labelled
from crowdrank.io.writer import TABLES, write_table


def _write(votes: Comparisons, path: Path) -> list[str]:
    if votes.annotator is None:
        raise FormatError(f"{path.name}: crowd-kit names a worker in every row, and here nobody is named.")
    kept, lost = decided(votes, "crowd-kit")
    names = {"annotator": "worker", "left": "left", "right": "right", "winner": "label"}
    write_table(labelled(kept, names), path)
    return lost


CROWD_KIT = Format(
    name="crowd-kit",
    description="crowd-kit's frames of comparisons: worker, left, right and the label of the better one.",
    known_by="columns worker, left, right and label, and no winner",
    recognises=has("worker,left,right,label", without="winner"),
    read=declared(
        "crowd-kit", annotator="worker", left="left", right="right", winner="label", query="query?", weight="weight?"
    ),
    writer=Writer(("comparisons",), TABLES, held("annotator query weight"), _write),
)
