"""AlpacaEval's annotations: a preference from 1 (the first output) to 2 (the second), with all that lies between.

A preference of 1.8 is 0.8 of a vote for the second and 0.2 of one for the first, so that the share of the votes an
output wins is AlpacaEval's own win rate. Outputs were shuffled before they were shown, so the sides mean nothing.
"""

from __future__ import annotations

import polars as pl

from crowdrank.io.formats.base import Format, has, playing
from crowdrank.io.formats.records import records_of
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table

_SCHEMA = {"generator_1": pl.String, "generator_2": pl.String, "annotator": pl.String, "preference": pl.Float64}
_TIES = (0.0, 1.5)
# Less of a vote than this is none.
_LEAST = 1e-6


def _read(source: Source) -> Table:
    found = records_of(source, _SCHEMA)
    frame = found.frame.with_columns(pl.col("preference").cast(pl.Float64, strict=False).fill_nan(None))
    second = pl.col("preference") - 1
    tie = pl.col("preference").is_in(_TIES)
    fine = second.is_between(0, 1)
    first_winner = (
        pl.when(pl.col("preference").is_null())
        .then(pl.lit("skip"))
        .when(tie)
        .then(pl.lit("tie"))
        .when(~fine)
        .then(second.cast(pl.String))
    )
    graded = fine & ~tie
    whole = frame.filter((~graded).fill_null(True)).select(
        "record",
        left="generator_1",
        right="generator_2",
        annotator="annotator",
        winner=first_winner,
        weight=pl.lit(1.0),
    )
    parts = [
        frame.filter(graded & (share > _LEAST)).select(
            "record", left="generator_1", right="generator_2", annotator="annotator", winner=winner, weight=share
        )
        for winner, share in (("generator_1", 1 - second), ("generator_2", second))
    ]
    table = found.table(pl.concat([whole, *parts]).sort("record", maintain_order=True), sided=False)
    return playing(
        table, "alpaca-eval", left="left", right="right", winner="winner", annotator="annotator", weight="weight"
    )


ALPACA_EVAL = Format(
    name="alpaca-eval",
    description="AlpacaEval's annotations; a graded preference is shared out between the two as weight.",
    known_by="columns generator_1, generator_2 and preference",
    recognises=has("generator_1,generator_2,preference,output_1,output_2"),
    read=_read,
)
