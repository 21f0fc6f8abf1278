"""Potato's pairwise annotations, one per line: {"preference": {"selection": "A"}}, or with {"scale_value": "-2"}."""

from __future__ import annotations

from typing import Any

import polars as pl

from crowdrank.io.formats.base import Format, assign_roles
from crowdrank.io.formats.records import load_records
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source

_NAME = "potato"
_INSIDE = ("annotations", "label_annotations", "")
_ANNOTATOR_KEYS = ("user_id", "user", "annotator", "annotator_id", "username", "worker_id")
_ANSWER = {"selection": pl.String, "scale_value": pl.String}


def _schemas(source: Source) -> list[tuple[str, str]]:
    """Return where answers are: the key that holds them ("" for the object itself), and the name of the schema."""
    found: dict[tuple[str, str], None] = {}
    for record in source.records:
        for inside in _INSIDE:
            answers = record.get(inside) if inside else record
            for name, value in answers.items() if isinstance(answers, dict) else ():
                if isinstance(value, dict) and _ANSWER.keys() & value.keys():
                    found[inside, name] = None
    return list(found)


def _items(source: Source) -> str | None:
    """Return the key of a list of at least two texts."""
    for record in source.records:
        for name, value in record.items():
            if isinstance(value, list) and len(value) > 1 and all(isinstance(entry, str) for entry in value):
                return name
    return None


def _read(source: Source) -> SourceTable:
    inside, name = _schemas(source)[0] if _schemas(source) else ("", "preference")
    listed = _items(source)
    answer = pl.Struct(_ANSWER)
    schema: dict[str, Any] = dict.fromkeys((*_ANNOTATOR_KEYS, "left", "right"), pl.String)
    schema |= {inside: pl.Struct({name: answer})} if inside else {name: answer}
    if listed:
        schema[listed] = pl.List(pl.String)
    found = load_records(source, schema)
    answered = (pl.col(inside).struct.field(name) if inside else pl.col(name)).struct
    scale = answered.field("scale_value").cast(pl.Float64, strict=False)
    side = (
        pl.when(scale < 0)
        .then(pl.lit("left"))
        .when(scale > 0)
        .then(pl.lit("right"))
        .when(scale == 0)
        .then(pl.lit("tie"))
    )
    word = answered.field("selection").str.strip_chars()
    winner = pl.when(word == "A").then(pl.lit("left")).when(word == "B").then(pl.lit("right")).otherwise(word)
    frame = found.frame.select(
        "record",
        annotator=pl.coalesce(_ANNOTATOR_KEYS),
        left=pl.coalesce("left", _entry(listed, 0)),
        right=pl.coalesce("right", _entry(listed, 1)),
        winner=pl.coalesce(winner, side),
    )
    who = "annotator" if frame["annotator"].null_count() < frame.height else "nobody?"
    return assign_roles(found.table(frame), _NAME, left="left", right="right", winner="winner", annotator=who)


def _entry(listed: str | None, index: int) -> pl.Expr:
    if listed is None:
        return pl.lit(None, pl.String)
    return pl.col(listed).list.get(index, null_on_oob=True)


POTATO = Format(
    name=_NAME,
    description="Potato's pairwise annotations, by selection or on a scale, of which only the sign is read.",
    known_by="objects that hold an object with selection or scale_value",
    recognises=lambda source: bool(_schemas(source)),
    read=_read,
)
