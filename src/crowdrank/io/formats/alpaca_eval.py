"""AlpacaEval's annotations: a preference from 1 (the first output) to 2 (the second).

A preference of 1.8 becomes 0.8 of a vote for the second output and 0.2 of a vote for the first, so that shares of
votes are AlpacaEval's win rates. Outputs were shuffled before they were shown, so their positions are unknown.
"""

from __future__ import annotations

import polars as pl

from crowdrank.io.formats.base import Format, assign_roles
from crowdrank.io.formats.records import load_records
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source

_SCHEMA = {"generator_1": pl.String, "generator_2": pl.String, "annotator": pl.String, "preference": pl.Float64}
_TIES = (0.0, 1.5)
# Smaller parts of a vote are dropped.
_MIN_PART = 1e-6


def _read(source: Source) -> SourceTable:
    found = load_records(source, _SCHEMA)
    frame = found.frame.with_columns(pl.col("preference").cast(pl.Float64, strict=False).fill_nan(None))
    second = pl.col("preference") - 1
    tie = pl.col("preference").is_in(_TIES)
    in_range = second.is_between(0, 1)
    first_winner = (
        pl.when(pl.col("preference").is_null())
        .then(pl.lit("skip"))
        .when(tie)
        .then(pl.lit("tie"))
        .when(~in_range)
        .then(second.cast(pl.String))
    )
    graded = in_range & ~tie
    whole = frame.filter((~graded).fill_null(True)).select(
        "record",
        left="generator_1",
        right="generator_2",
        annotator="annotator",
        winner=first_winner,
        weight=pl.lit(1.0),
    )
    parts = [
        frame.filter(graded & (share > _MIN_PART)).select(
            "record", left="generator_1", right="generator_2", annotator="annotator", winner=winner, weight=share
        )
        for winner, share in (("generator_1", 1 - second), ("generator_2", second))
    ]
    table = found.table(pl.concat([whole, *parts]).sort("record", maintain_order=True), positions_known=False)
    return assign_roles(
        table, "alpaca-eval", left="left", right="right", winner="winner", annotator="annotator", weight="weight"
    )


ALPACA_EVAL = Format(
    name="alpaca-eval",
    description="AlpacaEval's annotations; a graded preference is split between the two outputs as weights.",
    known_by="columns generator_1, generator_2, preference, output_1 and output_2",
    read=_read,
)
