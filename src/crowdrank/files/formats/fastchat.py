"""FastChat's own log of an arena: one event a line; only four kinds of event are votes."""

from __future__ import annotations

import numpy as np
import polars as pl

from crowdrank.files.formats.columns import playing
from crowdrank.files.formats.format import Format
from crowdrank.files.formats.nested import records_of
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table

_VOTES = {"leftvote": "left", "rightvote": "right", "tievote": "tie", "bothbad_vote": "tie"}
_SCHEMA = {
    "tstamp": pl.Float64,
    "type": pl.String,
    "models": pl.List(pl.String),
    "states": pl.List(pl.Struct({"model_name": pl.String})),
    "ip": pl.String,
}


def _recognises(source: Source) -> bool:
    return any({"tstamp", "type", "models"} <= record.keys() for record in source.records)


def _read(source: Source) -> Table:
    found = records_of(source, _SCHEMA)
    first_seen = pl.col("record").min().over("ip")
    frame = found.frame.select(
        "record",
        # An address is nobody's name to keep: voters are numbered as they come.
        annotator=pl.when(pl.col("ip").is_not_null()).then(pl.lit("voter ") + first_seen.rank("dense").cast(pl.String)),
        left=_model(0),
        right=_model(1),
        winner=pl.col("type").replace_strict(_VOTES, default=None),
        time=pl.col("tstamp"),
    )
    other = frame["winner"].is_null().to_numpy() & ~np.isin(frame["record"].to_numpy(), list(found.broken))
    table = found.table(frame, set_aside={"no vote": other})
    who = "annotator" if frame["annotator"].null_count() < frame.height else "no ip?"
    return playing(table, "fastchat", annotator=who, left="left", right="right", winner="winner", time="time")


def _model(side: int) -> pl.Expr:
    """The name that was shown, or the one behind it where the two were anonymous."""
    shown = pl.col("models").list.get(side, null_on_oob=True)
    hidden = pl.col("states").list.get(side, null_on_oob=True).struct.field("model_name")
    return pl.when(shown.str.len_chars() > 0).then(shown).otherwise(hidden)


FASTCHAT = Format(
    name="fastchat",
    description="FastChat's log of an arena, one event a line; voters are numbered, their addresses are not kept.",
    known_by="objects with tstamp, type and models",
    recognises=_recognises,
    read=_read,
)
