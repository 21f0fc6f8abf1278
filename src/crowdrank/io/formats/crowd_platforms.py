"""Crowdsourcing platforms: Mechanical Turk's results, Toloka's assignments, and reports of Figure Eight (Appen).

Each project names its own input and output columns, so they are matched by their names without the platform's prefix.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl

from crowdrank.io.formats.base import (
    Format,
    find_optional,
    find_required,
    parse_times,
    rows_with_values,
    true_rows,
    words,
)
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source

_MTURK_PREFIXES = ("Input.", "Answer.")
_ANSWERS = "Answer.taskAnswers"
_SAMPLE = 200
_DATES, _ZONES = "%a %b %d %H:%M:%S %z %Y", {"PST": "-0800", "PDT": "-0700", "UTC": "+0000", "GMT": "+0000"}


def _read_mturk(source: Source) -> SourceTable:
    table = parse_times(
        _with_ticked(_with_answers(source.table)), find_optional(source.table, "SubmitTime"), _DATES, _ZONES
    )
    status = find_required(table, "AssignmentStatus", "mturk")
    rejected = (words(table.load([status], None)[status]) == "rejected").to_numpy()
    short_names = {c: _short(c, prefix) for c in table.columns for prefix in _MTURK_PREFIXES if c.startswith(prefix)}
    column = find_optional(table, "Input.swapped")
    swapped = None if column is None else true_rows(table, column)
    return replace(table, short_names=short_names, shown_swapped=swapped, set_aside={"rejected": rejected})


def _short(column: str, prefix: str) -> str:
    return column.removeprefix(prefix).removesuffix(".label")


def _with_answers(table: SourceTable) -> SourceTable:
    """Add a column for each answer in the JSON that crowd-html elements produce."""
    if _ANSWERS not in table.columns:
        return table
    text = table.load([_ANSWERS], None)[_ANSWERS]
    fields = _fields(text.drop_nulls().head(_SAMPLE).to_list())
    if not fields:
        return table
    kind = pl.Struct({name: pl.Struct(dict.fromkeys(keys, pl.String)) for name, keys in fields.items()})
    answers = text.str.strip_chars("[] ").str.json_decode(kind)
    found = {f"Answer.{name}": _chosen(answers.struct.field(name), keys) for name, keys in fields.items()}
    fresh = {name: column for name, column in found.items() if name not in table.columns}
    return with_columns_computed(table, pl.DataFrame(fresh)) if fresh else table


def _with_ticked(table: SourceTable) -> SourceTable:
    """Add a column for each question whose choices are columns of true and false: Answer.better.a, Answer.better.b."""
    choices: dict[str, dict[str, str]] = {}
    for column in table.columns:
        question, _, choice = column.rpartition(".")
        if question.startswith("Answer.") and choice not in ("", "label"):
            choices.setdefault(question, {})[column] = choice
    found, ticked = {}, set[str]()
    for question, columns in choices.items():
        frame = table.load(list(columns), None)
        if question not in table.columns and len(columns) > 1 and all(map(_is_ticked, frame.iter_columns())):
            said = [pl.when(words(frame[c]) == "true").then(pl.lit(choice)) for c, choice in columns.items()]
            found[question] = pl.select(pl.coalesce(said)).to_series()
            ticked |= columns.keys()
    if not found:
        return table
    changed = with_columns_computed(table, pl.DataFrame(found))
    # The columns of true and false would be taken for the two sides.
    return replace(changed, columns=tuple(column for column in changed.columns if column not in ticked))


def _is_ticked(column: pl.Series) -> bool:
    return {*words(column).unique()} <= {"true", "false", ""}


def _fields(texts: list[str]) -> dict[str, list[str]]:
    """Return the answers that are objects and their keys: {"choice": {"label": "A"}}, {"better": {"a": true, …}}."""
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
    """Return the label, or the name of the box that is ticked."""
    if "label" in keys:
        return answer.struct.field("label")
    ticked = [pl.when(answer.struct.field(key) == "true").then(pl.lit(key)) for key in keys]
    return pl.select(pl.coalesce(ticked)).to_series()


MTURK = Format(
    name="mturk",
    description="Results of Mechanical Turk; rejected assignments are set aside.",
    known_by="columns HITId, AssignmentId, WorkerId and AssignmentStatus",
    read=_read_mturk,
)


_TOLOKA_PREFIXES = ("INPUT:", "OUTPUT:", "ASSIGNMENT:")
_TIMES = {"ASSIGNMENT:submitted": "submitted_at"}


def _read_toloka(source: Source) -> SourceTable:
    table = source.table
    short_names = {c: c.partition(":")[2] for c in table.columns if c.startswith(_TOLOKA_PREFIXES)} | _TIMES
    golden = [column for column in table.columns if column.startswith("GOLDEN:")]
    gold = rows_with_values(table, golden) if golden else np.zeros(table.rows, bool)
    status = find_optional(table, "ASSIGNMENT:status")
    state = words(table.load([status], None)[status]).to_numpy() if status else np.full(table.rows, "approved")
    aside = {
        "gold": gold,
        "rejected": state == "rejected",
        "not submitted": np.isin(state, ("active", "skipped", "expired")),
    }
    return replace(table, short_names={c: s for c, s in short_names.items() if c in table.columns}, set_aside=aside)


TOLOKA = Format(
    name="toloka",
    description="Toloka's assignments; control tasks, rejected and unsubmitted assignments are set aside.",
    known_by="columns that begin with INPUT:, OUTPUT: and ASSIGNMENT:",
    read=_read_toloka,
)


_OWN = {"_unit_id", "_golden"}
_FULL, _AGGREGATED = {"_worker_id", "_tainted"}, {"_unit_state", "_trusted_judgments"}


def _recognises_appen(source: Source) -> bool:
    present = set(source.columns)
    return present >= _OWN and bool(present & (_FULL | _AGGREGATED))


def _read_appen(source: Source) -> SourceTable:
    table = parse_times(source.table, find_optional(source.table, "_created_at"), "%m/%d/%Y %H:%M:%S")
    aside = {
        "gold": true_rows(table, find_optional(table, "_golden")),
        "tainted": true_rows(table, find_optional(table, "_tainted")),
    }
    roles = {
        "annotator": find_optional(table, "_worker_id") or "",
        "time": find_optional(table, "_created_at|_last_judgment_at") or "",
    }
    return replace(table, set_aside=aside, roles=roles)


APPEN = Format(
    name="appen",
    description="Reports of Figure Eight (CrowdFlower, Appen); gold units and tainted judgments are set aside.",
    known_by="columns _unit_id and _golden, with _worker_id and _tainted or, aggregated, _trusted_judgments",
    recognises=_recognises_appen,
    read=_read_appen,
)
