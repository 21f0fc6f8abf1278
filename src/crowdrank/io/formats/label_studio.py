"""Label Studio: JSON (tasks with their annotations), and CSV or JSON_MIN (one annotation per row).

In JSON, left is the first of the two names in `to_name`. A cancelled annotation is a skip, a ground truth is gold.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crowdrank.data import LEFT, TIE, Comparisons
from crowdrank.io.builders import is_outcome_word
from crowdrank.io.column_roles import columns_error, named_sides
from crowdrank.io.formats.base import (
    Format,
    Records,
    Writer,
    as_list,
    as_object,
    assign_roles,
    find_optional,
    is_true,
    load_records,
    optional,
    words,
)
from crowdrank.io.rows import parse_numbers
from crowdrank.io.source_table import SourceTable
from crowdrank.io.sources import Source
from crowdrank.io.writer import guard_write

_NAME = "label-studio"
_TYPES = ("pairwise", "choices", "ranker")
_SCALARS = ("was_cancelled", "ground_truth", "created_at", "lead_time")


def _recognises(source: Source) -> bool:
    return any("annotations" in record and isinstance(record.get("data"), dict) for record in source.records)


def _schema(records: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Return the schema of the fields that are read. The annotator is an id, or an object with an id."""
    data = dict.fromkeys((name for record in records for name in as_object(record.get("data"))), pl.String)
    annotations = [as_object(a) for record in records for a in as_list(record.get("annotations"))]
    values = [as_object(as_object(r).get("value")) for a in annotations for r in as_list(a.get("result"))]
    ranked = [value["ranker"] for value in values if "ranker" in value]
    order = pl.List(pl.String)
    buckets = dict.fromkeys(name for held in ranked if isinstance(held, dict) for name in held)
    value: dict[str, Any] = {
        "selected": pl.String,
        "choices": order,
        "ranker": pl.Struct(dict.fromkeys(buckets, order)) if buckets else order,
    }
    person = any(isinstance(a.get("completed_by"), dict) for a in annotations)
    annotation: dict[str, Any] = {
        "completed_by": pl.Struct({"id": pl.String}) if person else pl.String,
        **dict.fromkeys(_SCALARS, pl.String),
        "result": pl.List(pl.Struct({"type": pl.String, "to_name": pl.String, "value": pl.Struct(value)})),
    }
    return {"data": pl.Struct(data), "annotations": pl.List(pl.Struct(annotation))}


def _read_json(source: Source) -> SourceTable:
    found = load_records(source, _schema(source.records))
    said = found.explode_lists("annotations")
    said = said.with_columns(said["annotations"].struct.unnest()).drop("annotations")
    answer = pl.col("result").list.filter(pl.element().struct.field("type").is_in(_TYPES)).list.first().struct
    said = said.with_columns(to_name=answer.field("to_name"), value=answer.field("value"))
    who = said["completed_by"]
    said = said.with_columns(
        annotator=who.struct.field("id") if who.dtype == pl.Struct else who,
        time="created_at",
        duration=pl.Series(parse_numbers(said["lead_time"])),
        **{name: pl.col("value").struct.field(name) for name in ("selected", "choices", "ranker")},
    )
    return _lists(found, said) if said["ranker"].null_count() < said.height else _pairs(found, said)


def _lists(found: Records, said: pl.DataFrame) -> SourceTable:
    aside = {"gold": is_true(said["ground_truth"]), "cancelled": is_true(said["was_cancelled"])}
    frame = said.select("record", "annotator").with_columns(_order(said["ranker"]).alias("order"))
    return assign_roles(found.table(frame, set_aside=aside), _NAME, order="order", annotator="annotator")


def _order(ranked: pl.Series) -> pl.Series:
    """Return lists of items, or of buckets from best to worst; the bucket "_" holds items that were not ranked."""
    if ranked.dtype != pl.Struct:
        return ranked
    buckets = [field.name for field in ranked.dtype.fields if field.name != "_"]  # type: ignore[attr-defined]
    if buckets == ["rank"]:
        return ranked.struct.field("rank")
    # concat_list would flatten plain lists, so each bucket is wrapped in a struct.
    held = (pl.concat_list(pl.struct(tied=pl.lit(ranked).struct.field(name))) for name in buckets)
    places = pl.concat_list(*held).list.eval(pl.element().struct.field("tied").drop_nulls())
    return ranked.to_frame().select(places.alias("order")).to_series()


def _pairs(found: Records, said: pl.DataFrame) -> SourceTable:
    data = said["data"]
    fields = [field.name for field in data.dtype.fields]  # type: ignore[attr-defined]
    cancelled = pl.Series(is_true(said["was_cancelled"])) | (said["result"].list.len() == 0).fill_null(False)
    chosen = pl.coalesce("selected", pl.col("choices").list.first())
    taken = {"record", "annotator", "time", "duration", "left", "right", "winner"}
    frame = said.select(
        "record",
        "annotator",
        "time",
        "duration",
        left=_side(0, said, fields),
        right=_side(1, said, fields),
        winner=pl.when(cancelled).then(pl.lit("skip")).otherwise(chosen),
        **{name: data.struct.field(name) for name in fields if name not in taken},
    )
    return assign_roles(
        found.table(frame, set_aside={"gold": is_true(said["ground_truth"])}),
        _NAME,
        left="left",
        right="right",
        winner="winner",
        annotator="annotator?",
        time="time?",
        duration="duration?",
        query="query?",
    )


def _side(place: int, said: pl.DataFrame, fields: list[str]) -> pl.Expr:
    """Return the data that `to_name` shows on a side; answers without `to_name` use the most common one."""
    names = said["to_name"].str.split(",").list.get(place, null_on_oob=True).str.strip_chars()
    usual = names.drop_nulls().mode().sort()
    asked = names.fill_null(usual[0]) if len(usual) else names
    shown = (pl.when(asked == name).then(pl.col("data").struct.field(name)) for name in fields)
    # A name that is not a field of the data is itself an item.
    return pl.coalesce(*shown, pl.when(~asked.is_in(fields)).then(asked))


def _write(votes: Comparisons, path: Path) -> list[str]:
    tie, left = pl.lit(pl.Series(votes.outcome == TIE)), pl.lit(pl.Series(votes.outcome == LEFT))
    frame = votes.to_polars()
    none = pl.lit(None, pl.String)
    time = pl.from_epoch((pl.col("time") * 1e6).cast(pl.Int64), "us").dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")
    value = pl.struct(
        selected=pl.when(~tie).then(pl.when(left).then(pl.lit("left")).otherwise(pl.lit("right"))),
        choices=pl.when(tie).then(pl.concat_list(pl.col("winner"))),  # "tie" or "both_bad"
    )
    result = pl.struct(
        from_name=pl.lit("better"),
        to_name=pl.lit("left,right"),
        value=value,
        type=pl.when(tie).then(pl.lit("choices")).otherwise(pl.lit("pairwise")),
    )
    annotation = pl.struct(
        id=pl.int_range(1, pl.len() + 1),
        completed_by="annotator" if votes.annotator is not None else none,
        result=pl.concat_list(result),
        was_cancelled=pl.lit(False),
        ground_truth=pl.lit(False),
        created_at=none if votes.time is None else time,
        lead_time=none if votes.duration is None else "duration",
    )
    data = pl.struct([name for name in ("query", "left", "right") if name in frame.columns])
    tasks = frame.select(id=pl.int_range(1, pl.len() + 1), data=data, annotations=pl.concat_list(annotation))
    guard_write(path, lambda: tasks.write_json(path))
    return []


LABEL_STUDIO = Format(
    name=_NAME,
    description="Label Studio's JSON: tasks with pairwise annotations (ties are choices) or rankers.",
    known_by="objects with data and annotations",
    recognises=_recognises,
    read=_read_json,
    writer=Writer(("comparisons",), (".json",), optional("annotator query time duration both_bad"), _write),
)


_OWN = ("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at")


def _read_min(source: Source) -> SourceTable:
    table = source.table
    roles = {
        "annotator": find_optional(table, "annotator") or "",
        "duration": find_optional(table, "lead_time") or "",
        "time": find_optional(table, "created_at") or "",
        "winner": _answer(table),
    }
    return replace(table, roles=roles)


def _answer(table: SourceTable) -> str:
    """Find the column of answers by its content, because it has the name of a control."""
    sample, own = table.sample, {find_optional(table, name) for name in _OWN}
    own |= {*named_sides(table).values()}  # items may be called A and B
    for column in table.columns:
        if column in own or sample[column].dtype.is_nested():
            continue
        answers = [word for word in words(sample[column]).unique() if word]
        if answers and all(is_outcome_word(word) for word in answers):
            return column
    problem = f"{table.name}: no column contains answers such as left and right."
    raise columns_error(problem, "Name it:", {"winner": "COLUMN"})


LABEL_STUDIO_MIN = Format(
    name="label-studio-min",
    description="Label Studio's CSV or JSON_MIN: the task's data, the answer (left or right), annotator, lead_time.",
    known_by="columns annotation_id, annotator, lead_time and updated_at",
    read=_read_min,
)
