"""Argilla's flattened records: for each question, lists of responses, of their users and of their status.

A ranking is a list of options, best first; a label names the better of two fields. Only submitted responses are read.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, assign_roles
from crowdrank.io.formats.records import load_records
from crowdrank.io.role_matching import RoleMatcher
from crowdrank.io.source_table import SourceTable, table_from_frame
from crowdrank.io.sources import Source

_NAME = "argilla"
_ENDS = (".responses", ".responses.users", ".responses.status")


def _questions(source: Source) -> list[str]:
    present = set(source.columns)
    return [c.removesuffix(_ENDS[0]) for c in source.columns if c.endswith(_ENDS[0]) and c + ".users" in present]


def _read(source: Source) -> SourceTable:
    question, ranked = _question(source)
    responses, users, status = (question + end for end in _ENDS)
    answer = pl.List(pl.String) if ranked else pl.String
    own = {responses: pl.List(answer), users: pl.List(pl.String), status: pl.List(pl.String)}
    taken = ("answer", "annotator", "status")
    plain = [c for c in source.columns if "." not in c and c not in taken]
    fields = [c for c in plain if not isinstance(_value(source, c), dict | list)]
    found = load_records(source, {**dict.fromkeys(fields, pl.String), **own})
    frame = found.explode_lists(*own).rename({responses: "answer", users: "annotator", status: "status"})
    status_words = frame["status"].fill_null("submitted").str.to_lowercase()
    aside = {
        "discarded": (status_words == "discarded").to_numpy(),
        "draft": status_words.is_in(("draft", "pending")).to_numpy(),
    }
    return (_lists if ranked else _pairs)(found.table(frame, set_aside=aside), fields)


def _value(source: Source, column: str) -> Any:
    return next((r[column] for r in source.records if r.get(column) is not None), None)


def _question(source: Source) -> tuple[str, bool]:
    """Return the first question with rankings, else the first with labels; and whether it has rankings."""
    labelled = []
    for question in _questions(source):
        answers = _value(source, question + ".responses") or source.table.sample[question + ".responses"].drop_nulls()
        first = next((a for a in _flat(answers) if a is not None), None)
        if isinstance(first, list) or (hasattr(first, "dtype") and not isinstance(first, str)):
            return question, True
        if isinstance(first, str):
            labelled.append(question)
    if not labelled:
        raise FormatError(f"{source.name}: no question has rankings or labels as responses.")
    return labelled[0], False


def _flat(answers: Any) -> list[Any]:
    return [a for entry in answers for a in (entry if isinstance(entry, pl.Series) else [entry])]


def _lists(table: SourceTable, fields: list[str]) -> SourceTable:
    """Options that are fields of the record are items of that record only; others are items everywhere."""
    options = table.load(["answer"], 1)["answer"].explode().drop_nulls()
    within = bool(options.is_in(fields).all()) and "id" in table.columns
    return assign_roles(table, _NAME, order="answer", annotator="annotator", query="id" if within else "no query?")


def _pairs(table: SourceTable, fields: list[str]) -> SourceTable:
    shown = table_from_frame(table.load(fields, 1), table.name)
    sides = RoleMatcher(shown, {}).pair(("left", "right")) or {}
    return assign_roles(table, _NAME, winner="answer", annotator="annotator", **sides)


ARGILLA = Format(
    name=_NAME,
    description="Argilla's records, flattened: rankings or labels of pairs; only submitted responses are read.",
    known_by="keys that end in .responses, .responses.users and .responses.status",
    recognises=lambda source: bool(_questions(source)),
    read=_read,
)
