"""A batch of results from Mechanical Turk. What Input and Answer columns are called is up to whoever wrote the page:
they are known by their names without the prefix, or named with --map.
"""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from crowdrank.files.formats.columns import find, has, need, truths, with_times, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table, with_computed

_PREFIXES = ("Input.", "Answer.")
_ANSWERS = "Answer.taskAnswers"
_SAMPLE = 200
_DATES, _ZONES = "%a %b %d %H:%M:%S %z %Y", {"PST": "-0800", "PDT": "-0700", "UTC": "+0000", "GMT": "+0000"}


def _read(source: Source) -> Table:
    table = with_times(_with_answers(source.table), find(source.table, "SubmitTime"), _DATES, _ZONES)
    status = need(table, "AssignmentStatus", "mturk")
    rejected = (words(table.load([status], None)[status]) == "rejected").to_numpy()
    short = {c: _short(c, prefix) for c in table.columns for prefix in _PREFIXES if c.startswith(prefix)}
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
    read=_read,
)
