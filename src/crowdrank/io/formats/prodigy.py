"""Prodigy's compare: the outputs A and B of two systems, one on each of the sides accept and reject, which is hidden in
`mapping`. The one to accept is shown second.
"""

from __future__ import annotations

import polars as pl

from crowdrank.io.formats.base import Format, playing
from crowdrank.io.formats.records import records_of
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table

_SYSTEMS, _SIDES = ("A", "B"), ("accept", "reject")
_TEXT = dict.fromkeys(("answer", "_annotator_id", "_session_id", "_timestamp"), pl.String)
_SCHEMA = {**_TEXT, "mapping": pl.Struct(dict.fromkeys((*_SYSTEMS, *_SIDES), pl.String))}


def _recognises(source: Source) -> bool:
    return any("answer" in r and isinstance(r.get("mapping"), dict) and {*_SIDES} <= r.keys() for r in source.records)


def _read(source: Source) -> Table:
    found = records_of(source, _SCHEMA)
    accepted, rejected = _behind("accept", "reject"), _behind("reject", "accept")
    # Whether the mapping says what a system is, or who a side is, both ways are read.
    frame = found.frame.select(
        "record",
        annotator=pl.coalesce("_annotator_id", "_session_id"),
        time="_timestamp",
        left=rejected,
        right=accepted,
        winner=pl.col("answer").replace_strict(
            {"accept": "right", "reject": "left", "ignore": "skip"}, default=pl.col("answer")
        ),
    )
    there = {name: name if frame[name].null_count() < frame.height else "none?" for name in ("annotator", "time")}
    return playing(found.table(frame), "prodigy", left="left", right="right", winner="winner", **there)


def _behind(side: str, other: str) -> pl.Expr:
    """The system on a side."""
    mapping = pl.col("mapping").struct
    named = [pl.when(mapping.field(system) == side).then(pl.lit(system)) for system in _SYSTEMS]
    left_over = [pl.when(mapping.field(system) == other).then(pl.lit(rest)) for system, rest in ("AB", "BA")]
    return pl.coalesce(mapping.field(side), *named, *left_over)


PRODIGY = Format(
    name="prodigy",
    description="Prodigy's compare: two systems A and B, their sides taken back from the mapping.",
    known_by="objects with accept, reject, mapping and answer",
    recognises=_recognises,
    read=_read,
)
