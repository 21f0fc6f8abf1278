"""Comparative judgement in education: tables of judge, candidate chosen and not chosen; No More Marking's decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import (
    Format,
    Writer,
    assign_roles,
    optional,
    reads_columns,
    winner_loser_frame,
    without_ties,
)
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

_CJ_NAME = "comparative-judgement"


def _write(votes: Comparisons, path: Path) -> list[str]:
    kept, notes = without_ties(votes, _CJ_NAME)
    write_table(winner_loser_frame(kept, "judge", "candidate_chosen", "candidate_not_chosen", "time_taken"), path)
    return notes


COMPARATIVE_JUDGEMENT = Format(
    name=_CJ_NAME,
    description="Comparative judgement: judge, candidate chosen, candidate not chosen, in any spelling.",
    known_by="columns judge, candidate_chosen and candidate_not_chosen (also Candidate.Chosen, Candidate Chosen …)",
    read=reads_columns(
        _CJ_NAME,
        annotator="judge",
        winner="candidate_chosen",
        loser="candidate_not_chosen",
        duration="time_taken?",
        time="date_created|created_at?",
        query="query?",
        weight="weight?",
    ),
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight duration"), _write),
)


_NMM_NAME = "no-more-marking"
_MILLISECONDS = "timeTaken_ms"


def _read(source: Source) -> SourceTable:
    table = assign_roles(
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
    return replace(with_columns_computed(table, taken), roles={**table.roles, "duration": _MILLISECONDS})


NO_MORE_MARKING = Format(
    name=_NMM_NAME,
    description="No More Marking's decisions: judgeId, chosen, notChosen, timeTaken in milliseconds.",
    known_by="columns judgeId, chosen and notChosen",
    read=_read,
)
