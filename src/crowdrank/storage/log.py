"""Read the log in order, as columns (assignments and votes) and events (everything else)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select, bindparam, func, select, text

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Judgments
from crowdrank.storage import judgments
from crowdrank.storage.database import Database, fetch_columns
from crowdrank.storage.judgments import Question
from crowdrank.storage.schema import IS_EVENT, assignment, log, vote
from crowdrank.storage.writer import Writer

PAGE_SIZE = 10_000
"""Rows read in one query."""
SKIPPED = np.int8(judgments.OUTCOME_CODES["skip"])
"""The outcome code of a skip, next to those of comparisons (1 left, 0 tie, -1 right)."""
BOTH_BAD, ANSWERED = (np.int8(judgments.OUTCOME_CODES[name]) for name in ("both_bad", "answered"))
"""The outcome codes of a tie of two bad items, and of an answer to a task other than a pair."""

_HEAD = select(func.coalesce(func.max(log.c.seq), 0))
_IS_EVENT = text(f"log.{IS_EVENT}")
_EVENTS = select(log.c.seq, log.c.at, log.c.kind, log.c.actor, log.c.subject, log.c.detail).where(_IS_EVENT)
# Built once, with parameters: building a statement takes longer than executing it.
_AFTER: Any = bindparam("after")
_LAST: Any = bindparam("last")
_KINDS = select(log.c.seq, log.c.kind).where(log.c.seq > _AFTER).order_by(log.c.seq).limit(bindparam("limit"))
_ASSIGNMENTS = (
    select(
        assignment.c.seq,
        assignment.c.at,
        assignment.c.annotator,
        func.coalesce(assignment.c.left_item, 0),
        func.coalesce(assignment.c.right_item, 0),
        assignment.c.policy,
        assignment.c.probability,
        func.coalesce(assignment.c.gold_item, 0),
        assignment.c.task,
        assignment.c.question,
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
        func.coalesce(vote.c.left_item, 0),
        func.coalesce(vote.c.right_item, 0),
        vote.c.outcome,
        func.coalesce(vote.c.response_ms, -1),
        vote.c.answer,
    )
    .where(vote.c.seq > _AFTER, vote.c.seq <= _LAST)
    .order_by(vote.c.seq)
)


class Event(NamedTuple):
    """One row of the log that is neither an assignment nor a vote.

    Parameters
    ----------
    seq : int
        The number of the row.
    at : int
        The time, in microseconds since 1970.
    kind : str
        What happened, for example "item_added".
    actor : str
        Who did it.
    subject : int
        The row that the event refers to; 0 if it refers to none.
    detail : mapping
        Values that belong to this kind of event.
    """

    seq: int
    at: int
    kind: str
    actor: str
    subject: int
    detail: Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class AssignmentColumns:
    """Assignments as columns of equal length.

    Parameters
    ----------
    seq, at, annotator, left, right : array of int
        The number of the row, its time, the annotator, and the items on the two sides; 0 for other tasks than pairs.
    policy, probability : array
        What chose the items, and the probability with which they were chosen.
    gold : array of int
        The item known to be better; 0 if unknown.
    question : dict of int to Question
        By row: what was asked, if it is more than a pair.
    """

    seq: IntArray
    at: IntArray
    annotator: IntArray
    left: IntArray
    right: IntArray
    policy: ObjectArray
    probability: FloatArray
    gold: IntArray
    question: Mapping[int, Question]

    def __len__(self) -> int:
        return len(self.seq)


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteColumns:
    """Votes as columns of equal length. Later rows of the log may withdraw them.

    Parameters
    ----------
    seq, at, assignment, annotator, left, right : array of int
        The number of the row, its time, the assignment that it answers, the annotator, and the items on the two sides.
    outcome : array of int8
        1 if the left item won, -1 if the right one won, 0 for a tie, 2 for a skip, 3 if both are bad, 4 for an answer
        to another task.
    response_ms : array of int
        The response time in milliseconds; -1 if it was not measured.
    answer : dict of int to mapping
        By row: the value of other tasks, and the answers to criteria.
    """

    seq: IntArray
    at: IntArray
    assignment: IntArray
    annotator: IntArray
    left: IntArray
    right: IntArray
    outcome: npt.NDArray[np.int8]
    response_ms: IntArray
    answer: Mapping[int, Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.seq)


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Consecutive rows of the log.

    Parameters
    ----------
    last : int
        The number of the last row; the next batch starts after it.
    assignments : AssignmentColumns
    votes : VoteColumns
    events : list of Event
        All other rows.
    """

    last: int
    assignments: AssignmentColumns
    votes: VoteColumns
    events: list[Event]

    def __len__(self) -> int:
        return len(self.assignments) + len(self.votes) + len(self.events)


class Log:
    """The log of a collection: all events, numbered without gaps. Rows never change."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def head(self) -> int:
        """Return the number of the last row; 0 if the log is empty."""
        return self._database.read(_head)

    def after(self, seq: int, limit: int = PAGE_SIZE) -> Batch:
        """Return the rows that follow row `seq`, at most `limit` of them."""
        return self._database.read(lambda connection: _batch(connection, seq, limit))

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        """Return the audit log: everything except assignments and votes, with who did it."""
        return self._database.read(lambda connection: read_events(connection, after=after, up_to=up_to))

    def note(self, message: str, *, actor: str, detail: Mapping[str, Any] | None = None) -> int:
        """Record something that changes no data, such as an export, and return the number of the row."""
        event = {**(detail or {}), "text": message}
        return self._writer.run(lambda transaction: transaction.append("noted", actor, detail=event))

    def task(self, up_to: int | None = None) -> str:
        """Return the type of the task of the last assignment, now or as of row `up_to`; "pair" if there is none."""
        return self._database.read(lambda connection: judgments.task_of(connection, self._last(connection, up_to)))

    def judgments(
        self, up_to: int | None = None, including: Collection[int] = (), *, criterion: str | None = None
    ) -> Judgments:
        """Return the votes that count, now or as of row `up_to`, in the order of the log.

        Pairs are comparisons, grades are ratings, and the other tasks are rankings: with ties for the items that were
        not chosen. Skips, withdrawn votes and votes of excluded annotators do not count. In comparisons, the features
        `policy` and `probability` say how each pair was chosen, and durations are present if all response times were
        measured.

        Parameters
        ----------
        up_to : int, optional
            A row of the log; the last one by default.
        including : collection of int
            Annotators whose votes count even if they are excluded.
        criterion : str, optional
            The criterion whose answers to return; the main question by default.
        """
        return self._database.read(
            lambda connection: judgments.read(connection, self._last(connection, up_to), including, criterion)
        )

    def judgment_times(self, up_to: int | None = None) -> list[int]:
        """Return the times of the votes that count, in microseconds since 1970, in the order of `judgments`."""
        return self._database.read(lambda connection: judgments.times(connection, self._last(connection, up_to)))

    def vote_rows(self, up_to: int | None = None, after: int = 0) -> Iterator[dict[str, Any]]:
        """Iterate over all votes for an export, with the status of each; read page by page.

        A vote of a pair or a rating is one row, any other vote one row per item. Each criterion has rows of its own.
        """
        last = self.head() if up_to is None else up_to
        excluded = self._database.read(lambda connection: judgments.excluded_annotators(connection, last))
        labels = self._database.read(judgments.item_labels)
        versions = self._database.read(lambda connection: judgments.Versions.read(connection, last))
        for row in self._pages(judgments.votes_query(last), vote.c.seq, after):
            yield from judgments.export_rows(row._mapping, excluded, labels, versions)

    def votes_by_assignment(self, rows: Sequence[int]) -> Counter[int]:
        """Count the votes by the last of these rows that came before their question; rows must be in order."""

        def count(connection: Connection) -> Counter[int]:
            found: Counter[int] = Counter()
            for start, end in pairwise([*rows, 2**63 - 1]):
                between = vote.c.assignment.between(start, end - 1)
                found[start] = connection.scalar(select(func.count()).select_from(vote).where(between)) or 0
            return found

        return self._database.read(count)

    def assignment_rows(self, up_to: int | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over all assignments for an export, answered or not; read page by page."""
        last = self.head() if up_to is None else up_to
        for row in self._pages(judgments.assignments_query(last), assignment.c.seq):
            yield {**row._mapping, "at": judgments.iso_time(row.at)}

    def _pages(self, query: Select[Any], seq: Any, after: int = 0) -> Iterator[Any]:
        # One query per page, so that a long export does not keep a transaction open.
        last = after
        while True:
            page = query.where(seq > last).order_by(seq).limit(PAGE_SIZE)
            rows = self._database.read(lambda connection, page=page: list(connection.execute(page)))  # type: ignore[misc]
            if not rows:
                return
            yield from rows
            last = rows[-1].seq

    @staticmethod
    def _last(connection: Connection, up_to: int | None) -> int:
        return _head(connection) if up_to is None else up_to


def read_events(
    connection: Connection, kinds: Iterable[str] | None = None, *, after: int = 0, up_to: int | None = None
) -> list[Event]:
    """Return events in order, of all kinds or of some."""
    query = _EVENTS.where(log.c.seq > after).order_by(log.c.seq)
    if up_to is not None:
        query = query.where(log.c.seq <= up_to)
    if kinds is not None:
        query = query.where(log.c.kind.in_(list(kinds)))
    return [
        Event(seq, at, kind, actor, subject or 0, json.loads(detail))
        for seq, at, kind, actor, subject, detail in connection.execute(query)
    ]


def _head(connection: Connection) -> int:
    return int(connection.scalar(_HEAD) or 0)


def _batch(connection: Connection, after: int, limit: int) -> Batch:
    # Rows never change, so the tables can be read one after the other without a transaction.
    rows = connection.execute(_KINDS, {"after": after, "limit": limit}).fetchall()
    last, kinds = (rows[-1][0] if rows else after), {kind for _, kind in rows}
    between = {"after": after, "last": last}
    seq, at, annotator, left, right, policy, probability, gold, task, question = fetch_columns(
        connection, _ASSIGNMENTS, 10, between if "assignment" in kinds else None
    )
    assignments = AssignmentColumns(
        seq=_integers(seq),
        at=_integers(at),
        annotator=_integers(annotator),
        left=_integers(left),
        right=_integers(right),
        policy=np.array(policy, dtype=object),
        probability=np.array(probability, np.float64),
        gold=_integers(gold),
        question={
            row: Question.of_columns(one, other, name, detail)
            for row, one, other, name, detail in zip(seq, left, right, task, question, strict=True)
            if detail is not None
        },
    )
    seq, at, answered, annotator, left, right, outcome, response_ms, answer = fetch_columns(
        connection, _VOTES, 9, between if "vote" in kinds else None
    )
    votes = VoteColumns(
        seq=_integers(seq),
        at=_integers(at),
        assignment=_integers(answered),
        annotator=_integers(annotator),
        left=_integers(left),
        right=_integers(right),
        outcome=np.array([judgments.OUTCOME_CODES[name] for name in outcome], np.int8),
        response_ms=_integers(response_ms),
        answer={row: json.loads(text) for row, text in zip(seq, answer, strict=True) if text is not None},
    )
    events = read_events(connection, after=after, up_to=last) if kinds - {"assignment", "vote"} else []
    return Batch(last=last, assignments=assignments, votes=votes, events=events)


def _integers(values: tuple[Any, ...]) -> IntArray:
    return np.array(values, np.int64)
