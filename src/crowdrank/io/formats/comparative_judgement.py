"""Comparative judgement as researchers of education keep it: the judge, the candidate chosen, the one not chosen.

No More Marking's decisions. Their times are milliseconds; names of pupils are in other files, and stay there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import Format, Writer, beaten, decided, declared, has, held, playing
from crowdrank.io.sources import Source
from crowdrank.io.tables import Table, with_computed
from crowdrank.io.writer import TABLES, write_table

_CJ_NAME = "comparative-judgement"


def _write(votes: Comparisons, path: Path) -> list[str]:
    kept, lost = decided(votes, _CJ_NAME)
    write_table(beaten(kept, "judge", "candidate_chosen", "candidate_not_chosen", "time_taken"), path)
    return lost


COMPARATIVE_JUDGEMENT = Format(
    name=_CJ_NAME,
    description="Comparative judgement: judge, candidate chosen, candidate not chosen, in all spellings.",
    known_by="columns judge, candidate_chosen and candidate_not_chosen (also Candidate.Chosen, Candidate Chosen …)",
    recognises=has("judge,candidate_chosen,candidate_not_chosen"),
    read=declared(
        _CJ_NAME,
        annotator="judge",
        winner="candidate_chosen",
        loser="candidate_not_chosen",
        duration="time_taken?",
        time="date_created|created_at?",
        query="query?",
        weight="weight?",
    ),
    writer=Writer(("comparisons",), TABLES, held("annotator query weight duration"), _write),
)


_NMM_NAME = "no-more-marking"
_MILLISECONDS = "timeTaken_ms"


def _read(source: Source) -> Table:
    table = playing(
        source.table,
        _NMM_NAME,
        annotator="judgeId",
        winner="chosen",
        loser="notChosen",
        query="task?",
        time="createdAt?",
        duration="timeTaken?",
    )
    if not (column := table.roles["duration"]):
        return table
    taken = table.load([column], None).rename({column: _MILLISECONDS})
    return replace(with_computed(table, taken), roles={**table.roles, "duration": _MILLISECONDS})


NO_MORE_MARKING = Format(
    name=_NMM_NAME,
    description="No More Marking's decisions: judgeId, chosen, notChosen, timeTaken in milliseconds.",
    known_by="columns judgeId, chosen and notChosen",
    recognises=has("judgeId,chosen,notChosen"),
    read=_read,
)
