"""Prodigy's compare: outputs of two systems A and B. `mapping` says which was on the accept side, shown second."""

from __future__ import annotations

import polars as pl

from crowdrank.io.formats.base import Format, assign_roles
from crowdrank.io.formats.records import load_records
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source

_SYSTEMS, _SIDES = ("A", "B"), ("accept", "reject")
_TEXT = dict.fromkeys(("answer", "_annotator_id", "_session_id", "_timestamp"), pl.String)
_SCHEMA = {**_TEXT, "mapping": pl.Struct(dict.fromkeys((*_SYSTEMS, *_SIDES), pl.String))}


def _recognises(source: Source) -> bool:
    return any("answer" in r and isinstance(r.get("mapping"), dict) and {*_SIDES} <= r.keys() for r in source.records)


def _read(source: Source) -> SourceTable:
    found = load_records(source, _SCHEMA)
    accepted, rejected = _system("accept", "reject"), _system("reject", "accept")
    # The mapping may go from sides to systems or from systems to sides.
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
    present = {name: name if frame[name].null_count() < frame.height else "none?" for name in ("annotator", "time")}
    return assign_roles(found.table(frame), "prodigy", left="left", right="right", winner="winner", **present)


def _system(side: str, other: str) -> pl.Expr:
    """Return the system on a side."""
    mapping = pl.col("mapping").struct
    named = [pl.when(mapping.field(system) == side).then(pl.lit(system)) for system in _SYSTEMS]
    by_exclusion = [pl.when(mapping.field(system) == other).then(pl.lit(rest)) for system, rest in ("AB", "BA")]
    return pl.coalesce(mapping.field(side), *named, *by_exclusion)


PRODIGY = Format(
    name="prodigy",
    description="Prodigy's compare: two systems A and B, whose sides are restored from the mapping.",
    known_by="objects with accept, reject, mapping and answer",
    recognises=_recognises,
    read=_read,
)
