"""One row a judgment, a header, columns called by their role or a synonym of it; what crowdrank itself writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.files.formats.format import Format, Writer, held
from crowdrank.files.writing import SUFFIXES, write_table
from crowdrank.judgments import Rankings


def _write(judgments: Any, path: Path) -> list[str]:
    frame = judgments.to_frame()
    if isinstance(judgments, Rankings) and judgments.weight is not None:
        frame = frame.with_columns(weight=pl.Series(judgments.weight[judgments.list_of_row]))
    write_table(frame, path)
    return []


TIDY = Format(
    name="tidy",
    description="One row a judgment; columns such as annotator, left, right, winner, or synonyms of these.",
    known_by="nothing else: what no other format knows is read by the names of its columns",
    recognises=lambda source: True,
    read=lambda source: source.table,
    writer=Writer(
        ("comparisons", "ratings", "rankings"), SUFFIXES, held("annotator query weight time duration features"), _write
    ),
)
