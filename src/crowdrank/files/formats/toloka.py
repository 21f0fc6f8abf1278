"""Toloka's assignments: INPUT, OUTPUT and GOLDEN fields under names of the project's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdrank.files.formats.columns import filled, find, words
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table

_PREFIXES = ("INPUT:", "OUTPUT:", "ASSIGNMENT:")
_TIMES = {"ASSIGNMENT:submitted": "submitted_at"}


def _recognises(source: Source) -> bool:
    return all(any(column.startswith(prefix) for column in source.columns) for prefix in _PREFIXES)


def _read(source: Source) -> Table:
    table = source.table
    short = {c: c.partition(":")[2] for c in table.columns if c.startswith(_PREFIXES)} | _TIMES
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
    recognises=_recognises,
    read=_read,
)
