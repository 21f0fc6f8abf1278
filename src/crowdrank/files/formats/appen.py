"""Figure Eight (CrowdFlower, Appen): full reports, and aggregated ones that no longer say who answered."""

from __future__ import annotations

from dataclasses import replace

from crowdrank.files.formats.columns import find, truths, with_times
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table

_OWN = {"_unit_id", "_golden"}
_FULL, _AGGREGATED = {"_worker_id", "_tainted"}, {"_unit_state", "_trusted_judgments"}


def _recognises(source: Source) -> bool:
    there = set(source.columns)
    return there >= _OWN and bool(there & (_FULL | _AGGREGATED))


def _read(source: Source) -> Table:
    table = with_times(source.table, find(source.table, "_created_at"), "%m/%d/%Y %H:%M:%S")
    aside = {"gold": truths(table, find(table, "_golden")), "tainted": truths(table, find(table, "_tainted"))}
    roles = {"annotator": find(table, "_worker_id") or "", "time": find(table, "_created_at|_last_judgment_at") or ""}
    return replace(table, set_aside=aside, roles=roles)


APPEN = Format(
    name="appen",
    description="Reports of Figure Eight (CrowdFlower, Appen); gold units and tainted judgments are set aside.",
    known_by="columns _unit_id and _golden, with _worker_id and _tainted or, aggregated, _trusted_judgments",
    recognises=_recognises,
    read=_read,
)
