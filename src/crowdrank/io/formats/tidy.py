"""crowdrank's own formats: the log of a collection, and tidy tables with one row per judgment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data import Rankings
from crowdrank.io.formats.base import Format, Writer, assign_roles, find_optional, optional, true_rows, words
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source
from crowdrank.io.writer import DATA_SUFFIXES, write_table


def _read(source: Source) -> SourceTable:
    table = assign_roles(
        source.table,
        "crowdrank",
        annotator="annotator",
        left="left",
        right="right",
        winner="winner",
        query="query|context?",
        time="answered_at|time?",
        duration="response_ms|duration?",
        weight="weight?",
    )
    valid = find_optional(table, "valid")
    invalid = np.zeros(table.rows, bool)
    if valid is not None:
        invalid = words(table.load([valid], None)[valid]).is_in(("false", "0", "no", "f")).to_numpy()
    return replace(
        table, set_aside={"gold": true_rows(table, find_optional(table, "is_gold")), "marked invalid": invalid}
    )


CROWDRANK = Format(
    name="crowdrank",
    description="The log of a collection: annotator, left, right, winner, answered_at, response_ms, is_gold, valid.",
    known_by="columns annotator, left, right and winner, with two of answered_at, response_ms, is_gold and valid",
    read=_read,
)


def _write(judgments: Any, path: Path) -> list[str]:
    frame = judgments.to_polars()
    if isinstance(judgments, Rankings) and judgments.weight is not None:
        frame = frame.with_columns(weight=pl.Series(judgments.weight[judgments.list_of_row]))
    write_table(frame, path)
    return []


TIDY = Format(
    name="tidy",
    description="One row per judgment; columns such as annotator, left, right, winner, or synonyms of these.",
    known_by="everything that no other format recognises; columns are matched by their names",
    read=lambda source: source.table,
    writer=Writer(
        ("comparisons", "ratings", "rankings"),
        DATA_SUFFIXES,
        optional("annotator query weight time duration both_bad features"),
        _write,
    ),
)
