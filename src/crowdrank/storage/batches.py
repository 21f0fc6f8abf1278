"""Rows of the log as columns, for folding beliefs over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select, func, select

from crowdrank.storage.events import Event, events
from crowdrank.storage.schema import assignment, vote

Integers = npt.NDArray[np.int64]
SKIPPED = np.int8(2)
"""Beside the outcomes of comparisons (1 left, 0 tie, -1 right): nothing was decided."""
CODES = {"left": 1, "tie": 0, "right": -1, "skip": int(SKIPPED)}

_ASSIGNMENTS = select(
    assignment.c.seq, assignment.c.at, assignment.c.annotator, assignment.c.left_item, assignment.c.right_item,
    assignment.c.policy, assignment.c.probability, func.coalesce(assignment.c.gold_item, 0),
)  # fmt: skip
_VOTES = select(
    vote.c.seq, vote.c.at, vote.c.assignment, vote.c.annotator, vote.c.left_item, vote.c.right_item, vote.c.outcome,
    func.coalesce(vote.c.response_ms, -1),
)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignments:
    """Questions that were put, as columns."""

    seq: Integers
    at: Integers
    annotator: Integers
    left: Integers
    right: Integers
    policy: npt.NDArray[np.object_]
    probability: npt.NDArray[np.float64]
    gold: Integers
    """The item known to be better; 0 where none is."""

    def __len__(self) -> int:
        return len(self.seq)


@dataclass(frozen=True, eq=False, kw_only=True)
class Votes:
    """Answers that came, as columns; whether they still stand is for later rows to say."""

    seq: Integers
    at: Integers
    assignment: Integers
    annotator: Integers
    left: Integers
    right: Integers
    outcome: npt.NDArray[np.int8]
    """1 where left won, -1 where right won, 0 for a tie, 2 for a skip."""
    response_ms: Integers
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


def batch(connection: Connection, after: int, last: int) -> Batch:
    """The rows from one number to another. They never change, so they can be read one table after the other."""
    asked = columns(connection, _between(_ASSIGNMENTS, assignment.c.seq, after, last), 8)
    said = columns(connection, _between(_VOTES, vote.c.seq, after, last), 8)
    seq, at, who, left, right, policy, probability, gold = asked
    assignments = Assignments(
        seq=integers(seq), at=integers(at), annotator=integers(who), left=integers(left), right=integers(right),
        policy=objects(policy), probability=np.array(probability, np.float64), gold=integers(gold),
    )  # fmt: skip
    seq, at, asked_by, who, left, right, outcome, response_ms = said
    votes = Votes(
        seq=integers(seq), at=integers(at), assignment=integers(asked_by), annotator=integers(who),
        left=integers(left), right=integers(right), outcome=np.array([CODES[o] for o in outcome], np.int8),
        response_ms=integers(response_ms),
    )  # fmt: skip
    return Batch(last=last, assignments=assignments, votes=votes, events=events(connection, after=after, up_to=last))


def _between(rows: Select[Any], seq: Any, after: int, last: int) -> Select[Any]:
    return rows.where(seq > after, seq <= last).order_by(seq)


def columns(connection: Connection, rows: Select[Any], width: int) -> list[tuple[Any, ...]]:
    """What a query gives, turned on its side."""
    found = connection.execute(rows).fetchall()
    return list(zip(*found, strict=True)) if found else [()] * width


def integers(values: tuple[Any, ...]) -> Integers:
    return np.array(values, np.int64)


def objects(values: tuple[Any, ...]) -> npt.NDArray[np.object_]:
    return np.array(values, dtype=object)
