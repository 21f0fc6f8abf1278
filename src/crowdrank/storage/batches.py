"""Rows of the log as columns, for folding beliefs over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select, bindparam, func, select

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.storage.events import Event, events
from crowdrank.storage.schema import assignment, log, vote

SKIPPED = np.int8(2)
"""Beside the outcomes of comparisons (1 left, 0 tie, -1 right): nothing was decided."""
CODES = {"left": 1, "tie": 0, "right": -1, "skip": int(SKIPPED)}

# Made once, with places for two numbers: making a statement takes longer than asking it.
_AFTER: Any = bindparam("after")
_LAST: Any = bindparam("last")
_ROWS = select(log.c.seq, log.c.kind).where(log.c.seq > _AFTER).order_by(log.c.seq).limit(bindparam("most"))
_ASSIGNMENTS = (
    select(
        assignment.c.seq,
        assignment.c.at,
        assignment.c.annotator,
        assignment.c.left_item,
        assignment.c.right_item,
        assignment.c.policy,
        assignment.c.probability,
        func.coalesce(assignment.c.gold_item, 0),
    )
    .where(assignment.c.seq > _AFTER, assignment.c.seq <= _LAST)
    .order_by(assignment.c.seq)
)
_VOTES = (
    select(
        vote.c.seq,
        vote.c.at,
        vote.c.assignment,
        vote.c.annotator,
        vote.c.left_item,
        vote.c.right_item,
        vote.c.outcome,
        func.coalesce(vote.c.response_ms, -1),
    )
    .where(vote.c.seq > _AFTER, vote.c.seq <= _LAST)
    .order_by(vote.c.seq)
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignments:
    """Questions that were put, as columns."""

    seq: IntArray
    at: IntArray
    annotator: IntArray
    left: IntArray
    right: IntArray
    policy: ObjectArray
    probability: FloatArray
    gold: IntArray
    """The item known to be better; 0 where none is."""

    def __len__(self) -> int:
        return len(self.seq)


@dataclass(frozen=True, eq=False, kw_only=True)
class Votes:
    """Answers that came, as columns; whether they still stand is for later rows to say."""

    seq: IntArray
    at: IntArray
    assignment: IntArray
    annotator: IntArray
    left: IntArray
    right: IntArray
    outcome: npt.NDArray[np.int8]
    """1 where left won, -1 where right won, 0 for a tie, 2 for a skip."""
    response_ms: IntArray
    """-1 where it was not measured."""

    def __len__(self) -> int:
        return len(self.seq)


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Rows of the log that follow one another."""

    last: int
    """The number of the last of them: read on after it."""
    assignments: Assignments
    votes: Votes
    events: list[Event]

    def __len__(self) -> int:
        return len(self.assignments) + len(self.votes) + len(self.events)


def batch(connection: Connection, after: int, most: int) -> Batch:
    """The rows after a number, at most so many. They never change, so they can be read one table after the other."""
    rows = connection.execute(_ROWS, {"after": after, "most": most}).fetchall()
    last, kinds = (rows[-1][0] if rows else after), {kind for _, kind in rows}
    between = {"after": after, "last": last}
    asked = columns(connection, _ASSIGNMENTS, 8, between if "assignment" in kinds else None)
    said = columns(connection, _VOTES, 8, between if "vote" in kinds else None)
    done = events(connection, after=after, up_to=last) if kinds - {"assignment", "vote"} else []
    seq, at, who, left, right, policy, probability, gold = asked
    assignments = Assignments(
        seq=integers(seq),
        at=integers(at),
        annotator=integers(who),
        left=integers(left),
        right=integers(right),
        policy=objects(policy),
        probability=np.array(probability, np.float64),
        gold=integers(gold),
    )
    seq, at, asked_by, who, left, right, outcome, response_ms = said
    votes = Votes(
        seq=integers(seq),
        at=integers(at),
        assignment=integers(asked_by),
        annotator=integers(who),
        left=integers(left),
        right=integers(right),
        outcome=np.array([CODES[o] for o in outcome], np.int8),
        response_ms=integers(response_ms),
    )
    return Batch(last=last, assignments=assignments, votes=votes, events=done)


def columns(
    connection: Connection, rows: Select[Any], width: int, told: Mapping[str, Any] | None = MappingProxyType({})
) -> list[tuple[Any, ...]]:
    """What a query gives, turned on its side; nothing where nothing is to be asked."""
    found = [] if told is None else connection.execute(rows, dict(told)).fetchall()
    return list(zip(*found, strict=True)) if found else [()] * width


def integers(values: tuple[Any, ...]) -> IntArray:
    return np.array(values, np.int64)


def objects(values: tuple[Any, ...]) -> ObjectArray:
    return np.array(values, dtype=object)
