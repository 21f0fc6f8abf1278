"""Write votes: one per assignment, only from the annotator it was assigned to. Undo and void them.

A withdrawn vote stays in the log and no longer counts. An annotator undoes their last vote; an admin voids any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, insert, select

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.access import Keys
from crowdrank.storage.assignments import LEASE_SECONDS, Assignment, assign, open_assignments
from crowdrank.storage.database import (
    ConflictError,
    Database,
    ExpiredError,
    UnknownTokenError,
    check_integer,
    check_text,
    fetch_dict,
    hash_token,
)
from crowdrank.storage.judgments import TASK_TYPES, Question, check_criteria
from crowdrank.storage.schema import assignment, lease, vote, withdrawal
from crowdrank.storage.writer import LogTransaction, Task, Writer, to_json

Outcome = Literal["left", "right", "tie", "both_bad", "skip", "answered"]
MAX_COMMENT_LENGTH = 5_000
"""Characters of a comment."""

_ASSIGNMENT_BY_TOKEN = (
    select(
        assignment.c.token_hash,
        assignment.c.seq,
        assignment.c.annotator,
        assignment.c.left_item,
        assignment.c.right_item,
        assignment.c.task,
        assignment.c.question,
        lease.c.annotator.label("holder"),
        vote.c.seq.label("vote"),
        vote.c.at,
        vote.c.outcome,
        vote.c.winner_item,
        vote.c.answer,
    )
    .select_from(
        assignment.outerjoin(vote, vote.c.assignment == assignment.c.seq).outerjoin(
            lease, lease.c.assignment == assignment.c.seq
        )
    )
    .where(assignment.c.token_hash.in_(bindparam("hashes", expanding=True)))
)
_INSERT_VOTE = insert(vote)
_WITH_WITHDRAWAL = vote.outerjoin(withdrawal, withdrawal.c.vote == vote.c.seq)
_LAST_VOTE = (
    select(vote.c.seq)
    .select_from(_WITH_WITHDRAWAL)
    .where(vote.c.annotator == bindparam("annotator"), withdrawal.c.seq.is_(None))
    .order_by(vote.c.seq.desc())
    .limit(1)
)
_COPIED_BY_UNDO = (
    *("annotator", "query", "left_item", "right_item", "policy", "probability", "gold_item", "task", "question"),
)
_MAX_PARAMETERS = 1000
"""Values in one statement, at most."""


@dataclass(frozen=True, kw_only=True)
class RecordedVote:
    """A vote that is stored.

    Parameters
    ----------
    seq : int
        The number of its row in the log.
    at : int
        When it was stored, in microseconds since 1970.
    assignment : int
        The assignment that it answers.
    outcome : {"left", "right", "tie", "both_bad", "skip", "answered"}
        "answered" for tasks other than pairs.
    winner : int or None
        The winning item; None for a tie, a skip, and tasks other than pairs.
    answer : mapping, optional
        The `value` of other tasks, and the answers to `criteria`; None for plain pairs and skips.
    replayed : bool, default False
        Whether it had been stored before, so that this was a retry.
    """

    seq: int
    at: int
    assignment: int
    outcome: Outcome
    winner: int | None
    answer: Mapping[str, Any] | None = None
    replayed: bool = False


class Votes:
    """Record, undo and void votes."""

    def __init__(self, database: Database, writer: Writer, keys: Keys) -> None:
        self._database, self._writer, self._keys = database, writer, keys

    def record(self, token: str, answer: Any, *, annotator: int, **options: Any) -> RecordedVote:
        """Store a vote. See `recording_task` for the options."""
        return self._writer.run(self.recording_task(token, answer, annotator=annotator, **options))

    def recording_task(
        self,
        token: str,
        answer: Any,
        *,
        annotator: int,
        reason: str = "",
        response_ms: int | None = None,
        criteria: Mapping[str, Any] | None = None,
        comment: str = "",
    ) -> Task[Any, Any, RecordedVote]:
        """Return a task that stores a vote, for `Writer.run_all`.

        The same answer again returns the stored vote, even when the study is closed. A late vote is accepted as long
        as no other assignment has replaced this one, so that no answer is lost. Nothing new is accepted while the
        study is paused or closed, or from an excluded annotator.

        Parameters
        ----------
        token : str
            The token of the assignment.
        answer : int, str, list or mapping
            "skip", or for a pair "left", "right", "tie", "both_bad" or the id of the winning item, or what the type of
            the task accepts (`TaskType.check`).
        annotator : int
            Who votes.
        reason : str, default ""
            Why the question was skipped.
        response_ms : int, optional
            The response time in milliseconds.
        criteria : mapping, optional
            The answers to the criteria of the question, by criterion.
        comment : str, default ""
            What the annotator wrote about the question.
        """
        check_text(reason, "The reason")
        if len(check_text(comment, "The comment")) > MAX_COMMENT_LENGTH:
            raise DataError(f"The comment must have at most {MAX_COMMENT_LENGTH:,} characters, got {len(comment):,}.")
        if response_ms is not None and check_integer(response_ms, "The response time") < 0:
            raise DataError(f"The response time must not be negative, got {response_ms} ms.")
        details = {"reason": reason, "response_ms": response_ms, "comment": comment}
        given = {} if criteria is None else criteria

        def decide(found: Any, transaction: LogTransaction) -> RecordedVote:
            return _record(transaction, found, answer, given, annotator, details)

        return Task(annotator, _find_assignments, hash_token(token), decide)

    def last(self, annotator: int) -> int | None:
        """Return the number of the annotator's last vote that was not withdrawn."""
        return self._database.read(lambda connection: _last_vote(connection, annotator))

    def undo(self, annotator: int, vote: int, *, seconds: float = LEASE_SECONDS) -> Assignment:
        """Withdraw an annotator's last vote and ask the same question again. Repeating it returns that assignment.

        Votes stay as they are while the study is paused or closed, and when the annotator is excluded.
        """
        return self._writer.run(lambda transaction: _undo(transaction, annotator, vote, seconds, self._keys))

    def void(self, votes: Iterable[int], *, actor: str, reason: str = "") -> list[int]:
        """Withdraw votes, and return those that counted until now."""
        numbers = sorted({check_integer(number, "A vote") for number in votes})
        return self._writer.run(lambda transaction: _void(transaction, numbers, actor, reason))

    def void_all(self, annotator: int, *, actor: str, reason: str = "") -> list[int]:
        """Withdraw all votes of an annotator so far, and return those that counted until now."""
        votes = select(vote.c.seq).where(vote.c.annotator == annotator).order_by(vote.c.seq)

        def work(transaction: LogTransaction) -> list[int]:
            return _void(transaction, list(transaction.connection.scalars(votes)), actor, reason)

        return self._writer.run(work)


def _find_assignments(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, Any]:
    """Return assignments by the hash of their token, each with its vote if there is one."""
    return {bytes(row.token_hash): row for row in connection.execute(_ASSIGNMENT_BY_TOKEN, {"hashes": hashes})}


def _record(
    transaction: LogTransaction,
    found: Any | None,
    answer: Any,
    criteria: Mapping[str, Any],
    annotator: int,
    details: dict[str, Any],
) -> RecordedVote:
    """Write a vote, unless the same one is stored already."""
    if found is None or found.annotator != annotator:
        raise UnknownTokenError("This annotator has no assignment with this token.")
    question = Question.of_columns(found.left_item, found.right_item, found.task, found.question)
    outcome, value = _parse(answer, criteria, question)
    winner = {"left": found.left_item, "right": found.right_item}.get(outcome)
    stored = None if value is None else to_json(value)
    if found.vote is not None:
        if (found.outcome, found.answer) != (outcome, stored):
            given = found.outcome if found.answer is None else json.loads(found.answer)
            raise ConflictError(f"This question was already answered with {given!r}. Undo that vote first.")
        return RecordedVote(
            seq=found.vote,
            at=found.at,
            assignment=found.seq,
            outcome=outcome,
            winner=winner,
            answer=value,
            replayed=True,
        )
    transaction.check_admission(annotator)
    if found.holder is None:
        raise ExpiredError("Another assignment replaced this one before it was answered.")
    row = {
        "seq": transaction.next_seq(),
        "at": transaction.now,
        "assignment": found.seq,
        "annotator": annotator,
        "left_item": found.left_item,
        "right_item": found.right_item,
        "outcome": outcome,
        "winner_item": winner,
        "answer": stored,
        **details,
    }
    transaction.defer(_INSERT_VOTE, row)
    return RecordedVote(
        seq=row["seq"], at=transaction.now, assignment=found.seq, outcome=outcome, winner=winner, answer=value
    )


def _parse(answer: Any, criteria: Mapping[str, Any], question: Question) -> tuple[Outcome, dict[str, Any] | None]:
    """Return the outcome of an answer, and what is stored beside it."""
    if isinstance(answer, str) and answer == "skip":
        return "skip", None
    if not question.is_pair:
        value = {"value": TASK_TYPES[question.task].check(answer, question)}
        return "answered", value | ({"criteria": check_criteria(question, criteria)} if question.criteria else {})
    outcome = _outcome(answer, question.left, question.right)
    found = check_criteria(question, criteria)
    return outcome, {"criteria": found} if found else None


def _outcome(answer: Any, left: int, right: int) -> Outcome:
    if isinstance(answer, str) and answer in ("left", "right", "tie", "both_bad"):
        return answer  # type: ignore[return-value]
    if type(answer) is not int or answer not in (left, right):
        raise DataError(f"The answer must be {left}, {right}, 'left', 'right', 'tie' or 'skip', got {answer!r}.")
    return "left" if answer == left else "right"


def _last_vote(connection: Connection, annotator: int) -> int | None:
    return connection.scalar(_LAST_VOTE, {"annotator": annotator})


def _undo(transaction: LogTransaction, annotator: int, number: int, seconds: float, keys: Keys) -> Assignment:
    """Withdraw a vote and ask its question again, with the same sides, policy and probability."""
    transaction.check_admission(annotator)
    connection = transaction.connection
    found = connection.execute(
        select(vote.c.assignment, withdrawal.c.seq)
        .select_from(_WITH_WITHDRAWAL)
        .where(vote.c.seq == number, vote.c.annotator == annotator)
    ).first()
    last = _last_vote(connection, annotator)
    if found is None:
        raise UnknownNameError("vote", number, [] if last is None else [last])
    if found.seq is not None:
        return _reassigned(connection, annotator, number, found.assignment, keys)
    if last != number:
        raise ConflictError(f"Only the last vote can be undone, which is {last}, not {number}.")
    _withdraw(transaction, "undo", [number], "annotator", {})
    old = connection.execute(select(assignment).where(assignment.c.seq == found.assignment)).one()._mapping
    return assign(transaction, {key: old[key] for key in _COPIED_BY_UNDO}, seconds, keys, replaces=found.assignment)


def _reassigned(connection: Connection, annotator: int, number: int, replaced: int, keys: Keys) -> Assignment:
    """Return the assignment that an earlier undo of the same vote created."""
    replacement = connection.scalar(select(assignment.c.seq).where(assignment.c.replaces == replaced))
    held = open_assignments(connection, [annotator], keys).get(annotator)
    if held is None or held.seq != replacement:
        raise ConflictError(f"Vote {number} was already withdrawn.")
    return held


def _void(transaction: LogTransaction, votes: list[int], actor: str, reason: str) -> list[int]:
    chunks = (votes[start : start + _MAX_PARAMETERS] for start in range(0, len(votes), _MAX_PARAMETERS))
    counting = [number for chunk in chunks for number in _not_withdrawn(transaction, chunk)]
    _withdraw(transaction, "void", counting, actor, {"reason": reason})
    return counting


def _not_withdrawn(transaction: LogTransaction, votes: list[int]) -> list[int]:
    query = select(vote.c.seq, withdrawal.c.seq).select_from(_WITH_WITHDRAWAL).where(vote.c.seq.in_(votes))
    withdrawn_by = fetch_dict(transaction.connection, query)
    if missing := set(votes) - withdrawn_by.keys():
        raise UnknownNameError("vote", min(missing), sorted(withdrawn_by)[:9])
    return [number for number in votes if withdrawn_by[number] is None]


def _withdraw(transaction: LogTransaction, kind: str, votes: list[int], actor: str, detail: dict[str, Any]) -> None:
    numbers = transaction.append_all(kind, actor, ((number, detail) for number in votes))
    if votes:
        rows = [{"seq": seq, "vote": number} for seq, number in zip(numbers, votes, strict=True)]
        transaction.connection.execute(insert(withdrawal), rows)
