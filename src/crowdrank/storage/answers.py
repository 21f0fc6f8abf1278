"""A vote: once for each question, by whom it was put to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select

from crowdrank.errors import DataError
from crowdrank.storage.asking import Answer, Outcome, Progress, Recorded
from crowdrank.storage.refusals import ContradictionError, ExpiredError, UnknownTokenError
from crowdrank.storage.schema import assignment, lease, vote, withdrawal
from crowdrank.storage.writing import Writing

_ASKED = (
    select(assignment.c.token_hash, assignment.c.seq, assignment.c.annotator, assignment.c.left_item,
           assignment.c.right_item, lease.c.annotator.label("holder"),
           vote.c.seq.label("vote"), vote.c.at, vote.c.outcome, vote.c.winner_item)
    .select_from(assignment.outerjoin(vote, vote.c.assignment == assignment.c.seq)
                 .outerjoin(lease, lease.c.assignment == assignment.c.seq))
    .where(assignment.c.token_hash.in_(bindparam("hashes", expanding=True)))
)  # fmt: skip
_VOTE = insert(vote)
_SKIPPED = vote.c.outcome == "skip"
_COUNTED = (
    select(vote.c.annotator, _SKIPPED, func.count())
    .select_from(vote.outerjoin(withdrawal, withdrawal.c.vote == vote.c.seq))
    .where(vote.c.annotator.in_(bindparam("annotators", expanding=True)), withdrawal.c.seq.is_(None))
    .group_by(vote.c.annotator, _SKIPPED)
)


def asked_by(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, Any]:
    """The questions with these tokens, with what was answered, if anything was."""
    return {bytes(row.token_hash): row for row in connection.execute(_ASKED, {"hashes": hashes})}


def record(writing: Writing, asked: Any | None, answer: Answer, annotator: int, said: dict[str, Any]) -> Recorded:
    """Store what was said; where it is stored already, the same again changes nothing."""
    if asked is None or asked.annotator != annotator:
        raise UnknownTokenError("No question with this token was put to this annotator.")
    outcome = _outcome(answer, asked.left_item, asked.right_item)
    winner = {"left": asked.left_item, "right": asked.right_item}.get(outcome)
    found = {"assignment": asked.seq, "outcome": outcome, "winner": winner}
    if asked.vote is not None:
        if asked.outcome != outcome:
            raise ContradictionError(f"This question was answered before, with {asked.outcome!r}: undo that first.")
        return Recorded(seq=asked.vote, at=asked.at, **found, replayed=True)
    if asked.holder is None:
        raise ExpiredError("Another question took the place of this one before it was answered.")
    row = {
        "seq": writing.number(), "at": writing.now, "assignment": asked.seq, "annotator": annotator,
        "left_item": asked.left_item, "right_item": asked.right_item, "outcome": outcome, "winner_item": winner, **said,
    }  # fmt: skip
    writing.later(_VOTE, row)
    return Recorded(seq=row["seq"], at=writing.now, **found)


def _outcome(answer: Answer, left: int, right: int) -> Outcome:
    if isinstance(answer, str) and answer in ("left", "right", "tie", "skip"):
        return answer
    if isinstance(answer, bool) or answer not in (left, right):
        raise DataError(f"The answer must be {left}, {right}, 'left', 'right', 'tie' or 'skip', got {answer!r}.")
    return "left" if answer == left else "right"


def all_progress(connection: Connection, annotators: Sequence[int]) -> dict[int, tuple[int, int]]:
    """How many questions each decided and skipped; votes taken back do not count."""
    found = dict.fromkeys(annotators, (0, 0))
    for who, skipped, times in connection.execute(_COUNTED, {"annotators": annotators}) if annotators else ():
        decided, passed = found[who]
        found[who] = (decided, times) if skipped else (times, passed)
    return found


def progress(connection: Connection, annotator: int, quota: int | None) -> Progress:
    decided, skipped = all_progress(connection, [annotator])[annotator]
    return Progress(decided=decided, skipped=skipped, quota=quota)
