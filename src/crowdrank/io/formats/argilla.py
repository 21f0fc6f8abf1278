"""Argilla's records, flattened: for each question a list of responses, of who gave them, and of their status.

A ranking is a list of options, best first; a label names the better of two fields. Only what was submitted counts.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, playing
from crowdrank.io.formats.records import records_of
from crowdrank.io.role_matching import Search
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, table_of

_NAME = "argilla"
_ENDS = (".responses", ".responses.users", ".responses.status")


def _questions(source: Source) -> list[str]:
    there = set(source.columns)
    return [c.removesuffix(_ENDS[0]) for c in source.columns if c.endswith(_ENDS[0]) and c + ".users" in there]


def _read(source: Source) -> Table:
    question, ranked = _question(source)
    responses, users, status = (question + end for end in _ENDS)
    answer = pl.List(pl.String) if ranked else pl.String
    own = {responses: pl.List(answer), users: pl.List(pl.String), status: pl.List(pl.String)}
    taken = ("answer", "annotator", "status")
    plain = [c for c in source.columns if "." not in c and c not in taken]
    fields = [c for c in plain if not isinstance(_value(source, c), dict | list)]
    found = records_of(source, {**dict.fromkeys(fields, pl.String), **own})
    frame = found.one_each(*own).rename({responses: "answer", users: "annotator", status: "status"})
    said = frame["status"].fill_null("submitted").str.to_lowercase()
    aside = {"discarded": (said == "discarded").to_numpy(), "draft": said.is_in(("draft", "pending")).to_numpy()}
    return (_lists if ranked else _pairs)(found.table(frame, set_aside=aside), fields)


def _value(source: Source, column: str) -> Any:
    return next((r[column] for r in source.records if r.get(column) is not None), None)


def _question(source: Source) -> tuple[str, bool]:
    """The first question that is a ranking, else the first that is a word; and whether it is a ranking."""
    words = []
    for question in _questions(source):
        answers = _value(source, question + ".responses") or source.table.sample[question + ".responses"].drop_nulls()
        first = next((a for a in _flat(answers) if a is not None), None)
        if isinstance(first, list) or (hasattr(first, "dtype") and not isinstance(first, str)):
            return question, True
        if isinstance(first, str):
            words.append(question)
    if not words:
        raise FormatError(f"{source.name}: no question has rankings or labels among its responses.")
    return words[0], False


def _flat(answers: Any) -> list[Any]:
    return [a for entry in answers for a in (entry if isinstance(entry, pl.Series) else [entry])]


def _lists(table: Table, fields: list[str]) -> Table:
    """Options that are fields of the record mean something within it alone; others are items everywhere."""
    options = table.load(["answer"], 1)["answer"].explode().drop_nulls()
    within = bool(options.is_in(fields).all()) and "id" in table.columns
    return playing(table, _NAME, order="answer", annotator="annotator", query="id" if within else "no query?")


def _pairs(table: Table, fields: list[str]) -> Table:
    asked = table_of(table.load(fields, 1), table.name)
    sides = Search(asked, {}).pair(("left", "right")) or {}
    return playing(table, _NAME, winner="answer", annotator="annotator", **sides)


ARGILLA = Format(
    name=_NAME,
    description="Argilla's records, flattened: rankings or labels of pairs; only submitted responses count.",
    known_by="keys that end in .responses, .responses.users and .responses.status",
    recognises=lambda source: bool(_questions(source)),
    read=_read,
)
