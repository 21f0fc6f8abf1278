"""MT-bench's judge: each pair is judged twice, the second time with the sides exchanged."""

from __future__ import annotations

import polars as pl

from crowdrank.files.formats.columns import has, playing
from crowdrank.files.formats.format import Format
from crowdrank.files.formats.nested import records_of
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table

_TEXT = ("model_1", "model_2", "g1_winner", "g2_winner")


def _read(source: Source) -> Table:
    listed = any(isinstance(record.get("judge"), list) for record in source.records)
    schema = {**dict.fromkeys(_TEXT, pl.String), "judge": pl.List(pl.String) if listed else pl.String}
    found = records_of(source, {**schema, "tstamp": pl.Float64})
    judge = pl.col("judge").list.join(" ") if found.frame["judge"].dtype == pl.List else pl.col("judge")
    frame = pl.concat(
        found.frame.select(
            "record", annotator=judge, left=pl.col(left), right=pl.col(right), winner=_winner(game), time="tstamp"
        )
        for game, left, right in ((1, "model_1", "model_2"), (2, "model_2", "model_1"))
    )
    table = found.table(frame)
    return playing(table, "mt-bench", annotator="annotator", left="left", right="right", winner="winner", time="time")


def _winner(game: int) -> pl.Expr:
    """By name, as the second game calls them in the order of the first; a judge who made an error said nothing."""
    said = pl.col(f"g{game}_winner").str.strip_chars().str.to_lowercase()
    return (
        pl.when(said == "model_1").then(pl.col("model_1"))
        .when(said == "model_2").then(pl.col("model_2"))
        .when(said == "error").then(pl.lit("skip"))
        .otherwise(said)
    )  # fmt: skip


MT_BENCH = Format(
    name="mt-bench",
    description="Judgments of MT-bench's judge: two votes a line, the second with the sides exchanged.",
    known_by="columns model_1, model_2, g1_winner and g2_winner",
    recognises=has("model_1,model_2,g1_winner,g2_winner"),
    read=_read,
)
