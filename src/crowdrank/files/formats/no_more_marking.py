"""No More Marking's decisions. Their times are milliseconds; names of pupils are in other files, and stay there."""

from __future__ import annotations

from dataclasses import replace

from crowdrank.files.formats.columns import has, playing
from crowdrank.files.formats.format import Format
from crowdrank.files.sources import Source
from crowdrank.files.tables import Table, with_computed

_NAME = "no-more-marking"
_MILLISECONDS = "timeTaken_ms"


def _read(source: Source) -> Table:
    table = playing(
        source.table, _NAME, annotator="judgeId", winner="chosen", loser="notChosen", query="task?", time="createdAt?",
        duration="timeTaken?",
    )  # fmt: skip
    if not (column := table.roles["duration"]):
        return table
    taken = table.load([column], None).rename({column: _MILLISECONDS})
    return replace(with_computed(table, taken), roles={**table.roles, "duration": _MILLISECONDS})


NO_MORE_MARKING = Format(
    name=_NAME,
    description="No More Marking's decisions: judgeId, chosen, notChosen, timeTaken in milliseconds.",
    known_by="columns judgeId, chosen and notChosen",
    recognises=has("judgeId,chosen,notChosen"),
    read=_read,
)
