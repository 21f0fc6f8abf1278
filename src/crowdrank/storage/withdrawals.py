"""Votes taken back, by who gave them or by the organiser. They stay in the log, and count no longer."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from crowdrank.errors import UnknownNameError
from crowdrank.storage.asking import Assignment
from crowdrank.storage.database import pairs
from crowdrank.storage.leases import held, put
from crowdrank.storage.refusals import ContradictionError
from crowdrank.storage.schema import assignment, vote, withdrawal
from crowdrank.storage.writing import Writing

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
