"""Comparative judgement as researchers of education keep it: the judge, the candidate chosen, the one not chosen."""

from __future__ import annotations

from pathlib import Path

from crowdrank.files.formats.columns import declared, has
from crowdrank.files.formats.format import Format, Writer, held
from crowdrank.files.formats.writing import beaten, decided
from crowdrank.files.writing import TABLES, write_table
from crowdrank.judgments import Comparisons

_NAME = "comparative-judgement"


def _write(votes: Comparisons, path: Path) -> list[str]:
    kept, lost = decided(votes, _NAME)
    write_table(beaten(kept, "judge", "candidate_chosen", "candidate_not_chosen", "time_taken"), path)
    return lost


COMPARATIVE_JUDGEMENT = Format(
    name=_NAME,
    description="Comparative judgement: judge, candidate chosen, candidate not chosen, in all spellings.",
    known_by="columns judge, candidate_chosen and candidate_not_chosen (also Candidate.Chosen, Candidate Chosen …)",
    recognises=has("judge,candidate_chosen,candidate_not_chosen"),
    read=declared(
        _NAME,
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
