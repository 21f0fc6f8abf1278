"""Annotation tools: Prodigy's compare, Argilla's flattened records, and Potato's pairwise annotations."""

from __future__ import annotations

from typing import Any

import polars as pl

from crowdrank.errors import FormatError
from crowdrank.io.column_roles import RoleMatcher
from crowdrank.io.formats.base import Format, assign_roles, load_records
from crowdrank.io.source_table import SourceTable, table_from_frame
from crowdrank.io.sources import Source

# Prodigy's compare: outputs of two systems A and B. `mapping` says which was on the accept side, shown second.

_SYSTEMS, _SIDES = ("A", "B"), ("accept", "reject")
_PRODIGY_TEXT = dict.fromkeys(("answer", "_annotator_id", "_session_id", "_timestamp"), pl.String)
_PRODIGY_SCHEMA = {**_PRODIGY_TEXT, "mapping": pl.Struct(dict.fromkeys((*_SYSTEMS, *_SIDES), pl.String))}


def _recognises_prodigy(source: Source) -> bool:
    return any("answer" in r and isinstance(r.get("mapping"), dict) and {*_SIDES} <= r.keys() for r in source.records)


def _read_prodigy(source: Source) -> SourceTable:
    found = load_records(source, _PRODIGY_SCHEMA)
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
    recognises=_recognises_prodigy,
    read=_read_prodigy,
)


# Argilla's flattened records: for each question, lists of responses, of their users and of their status.
#
# A ranking is a list of options, best first; a label names the better of two fields. Only submitted responses are read.

_ARGILLA = "argilla"
_ENDS = (".responses", ".responses.users", ".responses.status")


def _questions(source: Source) -> list[str]:
    present = set(source.columns)
    return [c.removesuffix(_ENDS[0]) for c in source.columns if c.endswith(_ENDS[0]) and c + ".users" in present]


def _read_argilla(source: Source) -> SourceTable:
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
    return assign_roles(table, _ARGILLA, order="answer", annotator="annotator", query="id" if within else "no query?")


def _pairs(table: SourceTable, fields: list[str]) -> SourceTable:
    shown = table_from_frame(table.load(fields, 1), table.name)
    sides = RoleMatcher(shown, {}).pair(("left", "right")) or {}
    return assign_roles(table, _ARGILLA, winner="answer", annotator="annotator", **sides)


ARGILLA = Format(
    name=_ARGILLA,
    description="Argilla's records, flattened: rankings or labels of pairs; only submitted responses are read.",
    known_by="keys that end in .responses, .responses.users and .responses.status",
    recognises=lambda source: bool(_questions(source)),
    read=_read_argilla,
)


# Potato's pairwise annotations, one per line: {"preference": {"selection": "A"}}, or with {"scale_value": "-2"}.

_POTATO = "potato"
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


def _read_potato(source: Source) -> SourceTable:
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
    return assign_roles(found.table(frame), _POTATO, left="left", right="right", winner="winner", annotator=who)


def _entry(listed: str | None, index: int) -> pl.Expr:
    if listed is None:
        return pl.lit(None, pl.String)
    return pl.col(listed).list.get(index, null_on_oob=True)


POTATO = Format(
    name=_POTATO,
    description="Potato's pairwise annotations, by selection or on a scale, of which only the sign is read.",
    known_by="objects that hold an object with selection or scale_value",
    recognises=lambda source: bool(_schemas(source)),
    read=_read_potato,
)
