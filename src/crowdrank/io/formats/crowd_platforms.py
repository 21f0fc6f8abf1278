"""A batch of results from Mechanical Turk. What Input and Answer columns are called is up to whoever wrote the page:
they are known by their names without the prefix, or named with --column.

Toloka's assignments: INPUT, OUTPUT and GOLDEN fields under names of the project's own.

Figure Eight (CrowdFlower, Appen): full reports, and aggregated ones that no longer say who answered.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.io.formats.base import Format, filled, find, has, need, truths, with_times, words
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed

_MTURK_PREFIXES = ("Input.", "Answer.")
_ANSWERS = "Answer.taskAnswers"
_SAMPLE = 200
_DATES, _ZONES = "%a %b %d %H:%M:%S %z %Y", {"PST": "-0800", "PDT": "-0700", "UTC": "+0000", "GMT": "+0000"}


def _read_mturk(source: Source) -> Table:
    table = with_times(_with_answers(source.table), find(source.table, "SubmitTime"), _DATES, _ZONES)
    status = need(table, "AssignmentStatus", "mturk")
    rejected = (words(table.load([status], None)[status]) == "rejected").to_numpy()
    short = {c: _short(c, prefix) for c in table.columns for prefix in _MTURK_PREFIXES if c.startswith(prefix)}
    turned = find(table, "Input.swapped")
    swapped = None if turned is None else truths(table, turned)
    return replace(table, short=short, swapped=swapped, set_aside={"rejected": rejected})


def _short(column: str, prefix: str) -> str:
    return column.removeprefix(prefix).removesuffix(".label")


def _with_answers(table: Table) -> Table:
    """With a column for each answer of the JSON that crowd-html elements leave."""
    if _ANSWERS not in table.columns:
        return table
    text = table.load([_ANSWERS], None)[_ANSWERS]
    fields = _fields(text.drop_nulls().head(_SAMPLE).to_list())
    if not fields:
        return table
    kind = pl.Struct({name: pl.Struct(dict.fromkeys(keys, pl.String)) for name, keys in fields.items()})
    said = text.str.strip_chars("[] ").str.json_decode(kind)
    found = {f"Answer.{name}": _chosen(said.struct.field(name), keys) for name, keys in fields.items()}
    fresh = {name: column for name, column in found.items() if name not in table.columns}
    return with_computed(table, pl.DataFrame(fresh)) if fresh else table


def _fields(texts: list[str]) -> dict[str, list[str]]:
    """The answers that are objects, and the keys of each: {"choice": {"label": "A"}}, {"better": {"a": true, …}}."""
    found: dict[str, dict[str, None]] = {}
    for text in texts:
        try:
            answers = json.loads(text)
        except ValueError:
            continue
        for answer in answers if isinstance(answers, list) else [answers]:
            for name, value in answer.items() if isinstance(answer, dict) else ():
                if isinstance(value, dict):
                    found.setdefault(name, {}).update(dict.fromkeys(value))
    return {name: list(keys) for name, keys in found.items() if keys}


def _chosen(answer: pl.Series, keys: list[str]) -> pl.Series:
    """The label; of boxes to tick, the one that is."""
    if "label" in keys:
        return answer.struct.field("label")
    ticked = [pl.when(answer.struct.field(key) == "true").then(pl.lit(key)) for key in keys]
    return pl.select(pl.coalesce(ticked)).to_series()


MTURK = Format(
    name="mturk",
    description="A batch of results of Mechanical Turk; assignments that were rejected are set aside.",
    known_by="columns HITId, AssignmentId, WorkerId and AssignmentStatus",
    recognises=has("HITId,AssignmentId,WorkerId,AssignmentStatus"),
    read=_read_mturk,
)


_TOLOKA_PREFIXES = ("INPUT:", "OUTPUT:", "ASSIGNMENT:")
_TIMES = {"ASSIGNMENT:submitted": "submitted_at"}


def _recognises_toloka(source: Source) -> bool:
    return all(any(column.startswith(prefix) for column in source.columns) for prefix in _TOLOKA_PREFIXES)


def _read_toloka(source: Source) -> Table:
    table = source.table
    short = {c: c.partition(":")[2] for c in table.columns if c.startswith(_TOLOKA_PREFIXES)} | _TIMES
    golden = [column for column in table.columns if column.startswith("GOLDEN:")]
    gold = filled(table, golden) if golden else np.zeros(table.rows, bool)
    status = find(table, "ASSIGNMENT:status")
    said = words(table.load([status], None)[status]).to_numpy() if status else np.full(table.rows, "approved")
    aside = {
        "gold": gold,
        "rejected": said == "rejected",
        "not submitted": np.isin(said, ("active", "skipped", "expired")),
    }
    return replace(table, short={c: s for c, s in short.items() if c in table.columns}, set_aside=aside)


TOLOKA = Format(
    name="toloka",
    description="Toloka's assignments; control tasks and what was rejected or never submitted are set aside.",
    known_by="columns that begin with INPUT:, OUTPUT: and ASSIGNMENT:",
    recognises=_recognises_toloka,
    read=_read_toloka,
)


_OWN = {"_unit_id", "_golden"}
_FULL, _AGGREGATED = {"_worker_id", "_tainted"}, {"_unit_state", "_trusted_judgments"}


def _recognises_appen(source: Source) -> bool:
    there = set(source.columns)
    return there >= _OWN and bool(there & (_FULL | _AGGREGATED))


def _read_appen(source: Source) -> Table:
    table = with_times(source.table, find(source.table, "_created_at"), "%m/%d/%Y %H:%M:%S")
    aside = {"gold": truths(table, find(table, "_golden")), "tainted": truths(table, find(table, "_tainted"))}
    roles = {"annotator": find(table, "_worker_id") or "", "time": find(table, "_created_at|_last_judgment_at") or ""}
    return replace(table, set_aside=aside, roles=roles)


APPEN = Format(
    name="appen",
    description="Reports of Figure Eight (CrowdFlower, Appen); gold units and tainted judgments are set aside.",
    known_by="columns _unit_id and _golden, with _worker_id and _tainted or, aggregated, _trusted_judgments",
    recognises=_recognises_appen,
    read=_read_appen,
)
