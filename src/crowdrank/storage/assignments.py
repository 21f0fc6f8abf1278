"""Assign questions about items to annotators. Each annotator holds one open assignment at a time, on a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.access import Keys
from crowdrank.storage.database import Database, QuotaReachedError, check_name, fetch_dict, hash_token, new_token
from crowdrank.storage.judgments import Question
from crowdrank.storage.schema import annotator as annotator_table
from crowdrank.storage.schema import assignment, item, lease, vote, withdrawal
from crowdrank.storage.writer import Clock, LogTransaction, Task, Writer

LEASE_SECONDS = 900.0

_OPEN = lease.join(assignment, lease.c.assignment == assignment.c.seq).outerjoin(
    vote, vote.c.assignment == assignment.c.seq
)
_HELD = (
    select(
        assignment.c.seq,
        assignment.c.annotator,
        assignment.c.left_item,
        assignment.c.right_item,
        assignment.c.policy,
        assignment.c.probability,
        assignment.c.gold_item,
        assignment.c.task,
        assignment.c.question,
        assignment.c.token_hash,
        lease.c.token.label("nonce"),
        lease.c.expires_at,
    )
    .select_from(_OPEN)
    .where(lease.c.annotator.in_(bindparam("annotators", expanding=True)), vote.c.seq.is_(None))
)
_PENDING = (
    select(lease.c.annotator, assignment.c.left_item, assignment.c.right_item)
    .select_from(_OPEN)
    .where(vote.c.seq.is_(None), lease.c.expires_at > bindparam("now"), assignment.c.task == "pair")
    .order_by(assignment.c.seq)
)
_IS_SKIP = vote.c.outcome == "skip"
_COUNTS = (
    select(vote.c.annotator, _IS_SKIP, func.count())
    .select_from(vote.outerjoin(withdrawal, withdrawal.c.vote == vote.c.seq))
    .where(vote.c.annotator.in_(bindparam("annotators", expanding=True)), withdrawal.c.seq.is_(None))
    .group_by(vote.c.annotator, _IS_SKIP)
)
_INSERT_ASSIGNMENT = insert(assignment)
_SET_LEASE = text(
    "INSERT INTO lease (annotator, assignment, token, expires_at) "
    "VALUES (:annotator, :assignment, :token, :expires_at) "
    "ON CONFLICT (annotator) DO UPDATE SET assignment = excluded.assignment, token = excluded.token, "
    "expires_at = excluded.expires_at"
)


@dataclass(frozen=True, kw_only=True)
class Assignment(Question):
    """A question that is put to one annotator.

    Parameters
    ----------
    task, items, grades, criteria
        What is asked, as in `Question`.
    seq : int
        The number of its row in the log.
    token : str
        A secret that the vote must present.
    annotator : int
        Who is asked.
    policy : str
        What chose the items.
    probability : float
        The probability with which they were chosen.
    expires_at : int
        When the lease ends, in microseconds since 1970.
    gold : int or None
        The item known to be better; None if unknown.
    already_held : bool, default False
        Whether the annotator held this assignment before, so that nothing new was assigned.
    """

    seq: int
    token: str
    annotator: int
    policy: str
    probability: float
    expires_at: int
    gold: int | None = None
    already_held: bool = False


class PendingPair(NamedTuple):
    """A pair that an annotator is looking at.

    Parameters
    ----------
    annotator, left, right : int
        The annotator and the two items.
    """

    annotator: int
    left: int
    right: int

    @property
    def items(self) -> tuple[int, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many questions an annotator has answered.

    Parameters
    ----------
    decided, skipped : int
        Answered questions. Withdrawn votes are not counted.
    quota : int or None
        How many questions they are asked in total; None for no limit.
    """

    decided: int
    skipped: int
    quota: int | None

    @property
    def remaining(self) -> int | None:
        """Questions left to answer; None if there is no quota."""
        return None if self.quota is None else max(0, self.quota - self.decided - self.skipped)


class Assignments:
    """Create and look up assignments."""

    def __init__(self, database: Database, writer: Writer, clock: Clock, keys: Keys) -> None:
        self._database, self._writer, self._clock, self._keys = database, writer, clock, keys
        self._query_by_item: dict[int, str] = {}
        self._annotators: set[int] = set()

    def create(self, annotator: int, left: int, right: int, **options: Any) -> Assignment:
        """Assign a pair to an annotator. See `creation_task` for the options."""
        return self.ask(annotator, Question(items=(left, right)), **options)

    def ask(self, annotator: int, question: Question, **options: Any) -> Assignment:
        """Assign a question to an annotator. See `creation_task` for the options."""
        return self._writer.run(self.creation_task(annotator, question, **options))

    def creation_task(
        self,
        annotator: int,
        question: Question,
        *,
        policy: str,
        probability: float,
        seconds: float = LEASE_SECONDS,
        gold: int | None = None,
        quota: int | None = None,
    ) -> Task[Any, Any, Assignment]:
        """Return a task that assigns a question to an annotator, for `Writer.run_all`.

        If the annotator already holds an assignment whose lease has not expired, the task returns that one.

        Parameters
        ----------
        annotator : int
            Who is asked.
        question : Question
            What is asked.
        policy : str
            What chose the items.
        probability : float
            The probability with which they were chosen.
        seconds : float, default 900
            The length of the lease.
        gold : int, optional
            The item known to be better.
        quota : int, optional
            Raise QuotaReachedError if the annotator has answered this many questions.
        """
        check_name(policy, "The policy")
        if not 0 < probability <= 1:
            raise DataError(f"The probability of a question must be above 0 and at most 1, got {probability}.")
        if gold is not None and (not question.is_pair or gold not in question.items):
            raise DataError(f"The gold item must be {' or '.join(map(str, question.items))}, got {gold}.")
        new = {
            "annotator": self._check_annotator(annotator),
            "query": self._common_query(question.items),
            **question.columns(),
            "policy": policy,
            "probability": float(probability),
            "gold_item": gold,
        }

        def decide(state: tuple[Assignment | None, int] | None, transaction: LogTransaction) -> Assignment:
            held, answered = state or (None, 0)
            if held is not None and held.expires_at > transaction.now:
                return held
            if quota is not None and answered >= quota:
                raise QuotaReachedError(f"Annotator {annotator} has answered all {quota} questions of their quota.")
            return assign(transaction, new, seconds, self._keys)

        return Task(annotator, self._held_and_answered, (annotator, quota is not None), decide)

    def held(self, annotator: int) -> Assignment | None:
        """Return the open assignment of an annotator whose lease has not expired."""
        return self.held_by([annotator]).get(annotator)

    def held_by(self, annotators: Sequence[int]) -> dict[int, Assignment]:
        """Return the open assignments of several annotators, by annotator."""
        if not annotators:
            return {}
        found = self._database.read(lambda connection: open_assignments(connection, annotators, self._keys))
        return {annotator: held for annotator, held in found.items() if held.expires_at > self._clock()}

    def pending(self) -> list[PendingPair]:
        """Return all pairs that someone is looking at."""
        now = {"now": self._clock()}
        rows = self._database.read(lambda connection: connection.execute(_PENDING, now).fetchall())
        return [PendingPair(*row) for row in rows]

    def release(self, annotator: int) -> None:
        """Withdraw the open assignment of an annotator; it can no longer be answered."""
        released = delete(lease).where(lease.c.annotator == annotator)
        self._writer.run(lambda transaction: transaction.execute(released))

    def release_all(self) -> None:
        """Withdraw all open assignments: something else is going to be asked."""
        self._writer.run(lambda transaction: transaction.execute(delete(lease)))

    def progress(self, annotator: int, quota: int | None = None) -> Progress:
        """Return how many questions an annotator has answered."""
        counts = self._database.read(lambda connection: count_answers(connection, [annotator]))
        decided, skipped = counts[annotator]
        return Progress(decided=decided, skipped=skipped, quota=quota)

    def _held_and_answered(
        self, connection: Connection, tasks: Sequence[tuple[int, bool]]
    ) -> dict[tuple[int, bool], tuple[Assignment | None, int]]:
        """Return the open assignment of each annotator and, where a quota applies, their number of answers."""
        held = open_assignments(connection, [annotator for annotator, _ in tasks], self._keys)
        answered = count_answers(connection, [annotator for annotator, has_quota in tasks if has_quota])
        return {task: (held.get(task[0]), sum(answered.get(task[0], ()))) for task in tasks}

    def _check_annotator(self, annotator: int) -> int:
        if annotator not in self._annotators:
            query = select(annotator_table.c.id)
            self._annotators |= set(self._database.read(lambda connection: connection.scalars(query).all()))
            if annotator not in self._annotators:
                raise UnknownNameError("annotator", annotator, sorted(self._annotators)[:9])
        return annotator

    def _common_query(self, items: tuple[int, ...]) -> str:
        # Items never move to another query, so the cache never goes stale.
        if len(set(items)) < len(items):
            raise DataError(f"Item {items[0]} cannot be compared with itself.")
        if not set(items) <= self._query_by_item.keys():
            query = select(item.c.id, item.c.query)
            self._query_by_item |= self._database.read(lambda connection: fetch_dict(connection, query))
        for one in items:
            if one not in self._query_by_item:
                raise UnknownNameError("item", one, sorted(self._query_by_item)[:9])
            if self._query_by_item[one] != self._query_by_item[items[0]]:
                raise DataError(f"Items {items[0]} and {one} belong to different queries and cannot be compared.")
        return self._query_by_item[items[0]]


def assign(
    transaction: LogTransaction, new: dict[str, Any], seconds: float, keys: Keys, replaces: int | None = None
) -> Assignment:
    """Write an assignment and its lease, which replaces the annotator's previous one."""
    nonce, expires_at = new_token(), transaction.now + round(seconds * 1e6)
    token = keys.question_token(nonce)
    row = {
        "seq": transaction.next_seq(),
        "at": transaction.now,
        "token_hash": hash_token(token),
        **new,
        "replaces": replaces,
    }
    transaction.defer(_INSERT_ASSIGNMENT, row)
    new_lease = {"annotator": row["annotator"], "assignment": row["seq"], "token": nonce, "expires_at": expires_at}
    transaction.defer(_SET_LEASE, new_lease)
    return _from_row(row, token, expires_at)


def open_assignments(connection: Connection, annotators: Sequence[int], keys: Keys) -> dict[int, Assignment]:
    """Return the unanswered assignments of annotators, whether or not the lease has expired.

    Assignments that were made with another secret key are left out, because their token is not known.
    """
    found = {}
    for row in connection.execute(_HELD, {"annotators": annotators}):
        token = keys.question_token(row.nonce)
        if hash_token(token) == bytes(row.token_hash):
            found[row.annotator] = _from_row(row._mapping, token, row.expires_at, already_held=True)
    return found


def count_answers(connection: Connection, annotators: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return (decided, skipped) by annotator, without withdrawn votes."""
    counts = dict.fromkeys(annotators, (0, 0))
    for annotator, is_skip, count in connection.execute(_COUNTS, {"annotators": annotators}) if annotators else ():
        decided, skipped = counts[annotator]
        counts[annotator] = (decided, count) if is_skip else (count, skipped)
    return counts


def _from_row(row: Any, token: str, expires_at: int, *, already_held: bool = False) -> Assignment:
    question = Question.of_columns(row["left_item"], row["right_item"], row["task"], row["question"])
    return Assignment(
        task=question.task,
        items=question.items,
        grades=question.grades,
        criteria=question.criteria,
        seq=row["seq"],
        token=token,
        annotator=row["annotator"],
        policy=row["policy"],
        probability=row["probability"],
        expires_at=expires_at,
        gold=row["gold_item"],
        already_held=already_held,
    )
