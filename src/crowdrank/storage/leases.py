"""A question as it was put, the answer as it was stored, and how far someone is.

Who holds which question: put to them, and not answered yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, text

from crowdrank.storage.access import hashed, new_token
from crowdrank.storage.schema import assignment, lease, vote
from crowdrank.storage.writer import Writing

Answer = int | Literal["left", "right", "tie", "skip"]
"""The number of the item that won, or the side that it was shown on when the question was put, or neither."""
Outcome = Literal["left", "right", "tie", "skip"]


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Two items, shown to one annotator."""

    seq: int
    token: str
    """To be presented with the answer."""
    annotator: int
    left: int
    right: int
    policy: str
    probability: float
    expires_at: int
    """Microseconds since 1970."""
    gold: int | None = None
    """The item that is known to be the better one."""
    given_back: bool = False
    """It was open already: nothing new was asked."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A vote that is there to stay."""

    seq: int
    at: int
    assignment: int
    outcome: Outcome
    winner: int | None
    replayed: bool = False
    """It had been recorded before: this was a retry."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far one annotator is."""

    decided: int
    skipped: int
    quota: int | None

    @property
    def remaining(self) -> int | None:
        """Questions still to be answered; None where there is no quota."""
        return None if self.quota is None else max(0, self.quota - self.decided - self.skipped)


class Pending(NamedTuple):
    """A pair that someone is looking at."""

    annotator: int
    left: int
    right: int


_OPEN = lease.join(assignment, lease.c.assignment == assignment.c.seq).outerjoin(
    vote, vote.c.assignment == assignment.c.seq
)
_LEASE = (
    select(
        assignment.c.seq,
        assignment.c.annotator,
        assignment.c.left_item,
        assignment.c.right_item,
        assignment.c.policy,
        assignment.c.probability,
        assignment.c.gold_item,
        lease.c.token,
        lease.c.expires_at,
    )
    .select_from(_OPEN)
    .where(lease.c.annotator.in_(bindparam("annotators", expanding=True)), vote.c.seq.is_(None))
)
_PENDING = (
    select(lease.c.annotator, assignment.c.left_item, assignment.c.right_item)
    .select_from(_OPEN)
    .where(vote.c.seq.is_(None), lease.c.expires_at > bindparam("now"))
    .order_by(assignment.c.seq)
)
_ASSIGN = insert(assignment)
_HOLD = text(
    "INSERT INTO lease (annotator, assignment, token, expires_at) "
    "VALUES (:annotator, :assignment, :token, :expires_at) "
    "ON CONFLICT (annotator) DO UPDATE SET assignment = excluded.assignment, token = excluded.token, "
    "expires_at = excluded.expires_at"
)


def all_held(connection: Connection, annotators: Sequence[int]) -> dict[int, Assignment]:
    """What annotators have not answered yet, in time or not."""
    return {
        row.annotator: _shown(row._mapping, row.token, row.expires_at, given_back=True)
        for row in connection.execute(_LEASE, {"annotators": annotators})
    }


def held(connection: Connection, annotator: int) -> Assignment | None:
    """What one annotator has not answered yet, in time or not."""
    return all_held(connection, [annotator]).get(annotator)


def pending(connection: Connection, now: int) -> list[Pending]:
    """What everyone has not answered yet, and still may in time."""
    return [Pending(*row) for row in connection.execute(_PENDING, {"now": now})]


def put(writing: Writing, new: dict[str, Any], seconds: float, instead_of: int | None = None) -> Assignment:
    """A new question; it takes the place of what the annotator held."""
    token, expires_at = new_token(), writing.now + round(seconds * 1e6)
    row = {"seq": writing.number(), "at": writing.now, "token_hash": hashed(token), **new, "instead_of": instead_of}
    writing.later(_ASSIGN, row)
    taken = {"annotator": row["annotator"], "assignment": row["seq"], "token": token, "expires_at": expires_at}
    writing.later(_HOLD, taken)
    return _shown(row, token, expires_at)


def _shown(row: Any, token: str, expires_at: int, *, given_back: bool = False) -> Assignment:
    return Assignment(
        seq=row["seq"],
        token=token,
        annotator=row["annotator"],
        left=row["left_item"],
        right=row["right_item"],
        policy=row["policy"],
        probability=row["probability"],
        expires_at=expires_at,
        gold=row["gold_item"],
        given_back=given_back,
    )
