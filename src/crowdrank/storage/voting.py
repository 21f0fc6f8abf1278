"""A vote: once for each question, by whom it was put to.

Votes taken back, by who gave them or by the organiser. They stay in the log, and count no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import pairs
from crowdrank.storage.leases import Answer, Assignment, Outcome, Progress, Recorded, held, put
from crowdrank.storage.schema import assignment, lease, vote, withdrawal
from crowdrank.storage.validation import ContradictionError, ExpiredError, UnknownTokenError
from crowdrank.storage.writer import Writing

_ASKED = (
    select(
        assignment.c.token_hash,
        assignment.c.seq,
        assignment.c.annotator,
        assignment.c.left_item,
        assignment.c.right_item,
        lease.c.annotator.label("holder"),
        vote.c.seq.label("vote"),
        vote.c.at,
        vote.c.outcome,
        vote.c.winner_item,
    )
    .select_from(
        assignment.outerjoin(vote, vote.c.assignment == assignment.c.seq).outerjoin(
            lease, lease.c.assignment == assignment.c.seq
        )
    )
    .where(assignment.c.token_hash.in_(bindparam("hashes", expanding=True)))
)
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
        "seq": writing.number(),
        "at": writing.now,
        "assignment": asked.seq,
        "annotator": annotator,
        "left_item": asked.left_item,
        "right_item": asked.right_item,
        "outcome": outcome,
        "winner_item": winner,
        **said,
    }
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


_VOTES = vote.outerjoin(withdrawal, withdrawal.c.vote == vote.c.seq)
_LAST = (
    select(vote.c.seq)
    .select_from(_VOTES)
    .where(vote.c.annotator == bindparam("annotator"), withdrawal.c.seq.is_(None))
    .order_by(vote.c.seq.desc())
    .limit(1)
)
_KEPT = ("annotator", "query", "left_item", "right_item", "policy", "probability", "gold_item")
_AT_ONCE = 1000
"""A statement holds only so many numbers."""


def last_vote(connection: Connection, annotator: int) -> int | None:
    """The last that stands."""
    return connection.scalar(_LAST, {"annotator": annotator})


def undo(writing: Writing, annotator: int, number: int, seconds: float) -> Assignment:
    """Take back a vote, and put the question again as it was: same sides, same policy, same probability."""
    connection = writing.connection
    given = connection.execute(
        select(vote.c.assignment, withdrawal.c.seq)
        .select_from(_VOTES)
        .where(vote.c.seq == number, vote.c.annotator == annotator)
    ).first()
    last = last_vote(connection, annotator)
    if given is None:
        raise UnknownNameError("vote", number, [] if last is None else [last])
    if given.seq is not None:
        return _put_before(connection, annotator, number, given.assignment)
    if last != number:
        raise ContradictionError(f"Only the last vote can be undone, which is {last}, not {number}.")
    _withdraw(writing, "undo", [number], "annotator", {})
    old = connection.execute(select(assignment).where(assignment.c.seq == given.assignment)).one()._mapping
    return put(writing, {key: old[key] for key in _KEPT}, seconds, instead_of=given.assignment)


def _put_before(connection: Connection, annotator: int, number: int, instead_of: int) -> Assignment:
    again = connection.scalar(select(assignment.c.seq).where(assignment.c.instead_of == instead_of))
    now = held(connection, annotator)
    if now is None or now.seq != again:
        raise ContradictionError(f"Vote {number} was taken back before.")
    return now


def void(writing: Writing, votes: list[int], actor: str, reason: str) -> list[int]:
    """Those of them that stood until now."""
    standing = [one for start in range(0, len(votes), _AT_ONCE) for one in _standing(writing, votes[start:][:_AT_ONCE])]
    _withdraw(writing, "void", standing, actor, {"reason": reason})
    return standing


def void_all(writing: Writing, annotator: int, actor: str, reason: str) -> list[int]:
    votes = select(vote.c.seq).where(vote.c.annotator == annotator).order_by(vote.c.seq)
    return void(writing, list(writing.connection.scalars(votes)), actor, reason)


def _standing(writing: Writing, votes: list[int]) -> list[int]:
    rows = select(vote.c.seq, withdrawal.c.seq).select_from(_VOTES).where(vote.c.seq.in_(votes))
    found = pairs(writing.connection, rows)
    if missing := set(votes) - found.keys():
        raise UnknownNameError("vote", min(missing), sorted(found)[:9])
    return [one for one in votes if found[one] is None]


def _withdraw(writing: Writing, kind: str, votes: list[int], actor: str, detail: dict[str, Any]) -> None:
    numbers = writing.append_all(kind, actor, ((one, detail) for one in votes))
    if votes:
        rows = [{"seq": seq, "vote": one} for seq, one in zip(numbers, votes, strict=True)]
        writing.connection.execute(insert(withdrawal), rows)
