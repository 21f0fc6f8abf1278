"""Label Studio's CSV and JSON_MIN: one annotation a row, the task's data and the answer side by side."""

from __future__ import annotations

from dataclasses import replace

from crowdrank.errors import FormatError
from crowdrank.files.formats.columns import find, has, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table
from crowdrank.files.winners import is_word

_OWN = ("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at")


def _read(source: Source) -> Table:
    table = source.table
    roles = {
        "annotator": find(table, "annotator") or "", "duration": find(table, "lead_time") or "",
        "time": find(table, "created_at") or "", "winner": _answer(table),
    }  # fmt: skip
    return replace(table, roles=roles)


def _answer(table: Table) -> str:
    """The column of the answers goes by the name of a control, so it is known by what it holds."""
    sample, own = table.sample, {find(table, name) for name in _OWN}
    for column in table.columns:
        if column in own or sample[column].dtype.is_nested():
            continue
        said = [word for word in words(sample[column]).unique() if word]
        if said and all(is_word(word) for word in said):
            return column
    raise FormatError(
        f"{table.name}: no column holds answers such as left and right; name it: --map winner=COLUMN "
        "(columns={'winner': 'COLUMN'})."
    )


LABEL_STUDIO_MIN = Format(
    name="label-studio-min",
    description="Label Studio's CSV or JSON_MIN: the task's data, the answer (left or right), annotator, lead_time.",
    known_by="columns annotation_id, annotator, lead_time and updated_at",
    recognises=has("annotation_id,annotator,lead_time,updated_at"),
    read=_read,
)
