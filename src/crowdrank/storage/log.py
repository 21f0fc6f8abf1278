"""The log as it is read: in order, as judgments, as rows for an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, and_, func, select

from crowdrank.data import Comparisons
from crowdrank.storage.batches import CODES, Batch, batch, columns, integers, objects
from crowdrank.storage.database import Database, pairs
from crowdrank.storage.events import Event, events
from crowdrank.storage.schema import annotator, assignment, item, log, vote, withdrawal
from crowdrank.storage.writer import Writer

AT_ONCE = 10_000
"""Rows that are read together."""

_HEAD = select(func.coalesce(func.max(log.c.seq), 0))
_OF_A_VOTE = vote.join(assignment, vote.c.assignment == assignment.c.seq)


class Log:
    """Everything that happened, numbered without gaps. What has a number up to some row never changes."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def head(self) -> int:
        """The number of the last row; 0 where there is none."""
        return self._database.read(_head)

    def after(self, seq: int, limit: int = AT_ONCE) -> Batch:
        """The next rows after one, at most so many; none is ever added in between later."""
        return self._database.read(lambda connection: batch(connection, seq, limit))

    def judgments(self, up_to: int | None = None) -> Comparisons:
        """What counts as said, at a row of the log or now: not skipped, undone or void, nor by someone excluded.

        Durations are there if all were measured; the features `policy` and `probability` say how each question was
        chosen. The order is the log's.
        """
        return self._database.read(lambda connection: _judgments(connection, up_to))

    def note(self, text: str, *, actor: str, detail: Mapping[str, Any] | None = None) -> int:
        """Something done that changes nothing here, for the record: an export, a login, a backup."""
        return self._writer.run(lambda writing: writing.append("noted", actor, detail={**(detail or {}), "text": text}))

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        """The audit log: all that was done beside asking and answering, and by whom."""
        return self._database.read(lambda connection: events(connection, after=after, up_to=up_to))

    def votes(self, up_to: int | None = None, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every vote for an export, those that do not count too, and why; in order, read little by little."""
        head = self.head() if up_to is None else up_to
        excluded = self._database.read(lambda connection: _excluded(connection, head))
        for some in self._in_parts(_exported(head), vote.c.seq, after):
            for row in some:
                yield _row(row._mapping, excluded)

    def assignments(self, up_to: int | None = None) -> Iterator[dict[str, Any]]:
        """Every question that was put, answered or not; in order, read little by little."""
        head = self.head() if up_to is None else up_to
        left, right = item.alias(), item.alias()
        rows = (
            select(
                assignment.c.seq,
                assignment.c.at,
                annotator.c.name.label("annotator"),
                assignment.c.query,
                left.c.label.label("left"),
                right.c.label.label("right"),
                assignment.c.policy,
                assignment.c.probability,
                vote.c.seq.label("vote"),
            )
            .join_from(assignment, annotator, assignment.c.annotator == annotator.c.id)
            .join(left, assignment.c.left_item == left.c.id)
            .join(right, assignment.c.right_item == right.c.id)
            .outerjoin(vote, and_(vote.c.assignment == assignment.c.seq, vote.c.seq <= head))
            .where(assignment.c.seq <= head)
        )
        for some in self._in_parts(rows, assignment.c.seq):
            for row in some:
                yield {**row._mapping, "at": iso(row.at)}

    def _in_parts(self, rows: Select[Any], seq: Any, after: int = 0) -> Iterator[list[Any]]:
        """A page at a time, each by itself: an export that takes long holds nothing up."""
        last = after
        while True:
            page = rows.where(seq > last).order_by(seq).limit(AT_ONCE)
            some = self._database.read(lambda connection, page=page: list(connection.execute(page)))  # type: ignore[misc]
            if not some:
                return
            yield some
            last = some[-1].seq


def iso(at: int) -> str:
    """A time of the log, to the microsecond, in UTC."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def _head(connection: Connection) -> int:
    return int(connection.scalar(_HEAD) or 0)


def _judgments(connection: Connection, up_to: int | None) -> Comparisons:
    last = _head(connection) if up_to is None else up_to
    rows = (
        select(
            vote.c.left_item,
            vote.c.right_item,
            vote.c.outcome,
            vote.c.annotator,
            vote.c.at,
            vote.c.response_ms,
            assignment.c.policy,
            assignment.c.probability,
        )
        .select_from(_OF_A_VOTE.outerjoin(withdrawal, _withdrawn_by(last)))
        .where(vote.c.seq <= last, vote.c.outcome != "skip", withdrawal.c.seq.is_(None))
        .order_by(vote.c.seq)
    )
    if excluded := _excluded(connection, last):
        rows = rows.where(vote.c.annotator.not_in(sorted(excluded)))
    left, right, outcome, who, at, response_ms, policy, probability = columns(connection, rows, 8)
    items = {n: (query, label) for n, query, label in connection.execute(select(item.c.id, item.c.query, item.c.label))}
    people = pairs(connection, select(annotator.c.id, annotator.c.name))
    lefts, rights = [items[n][1] for n in left], [items[n][1] for n in right]
    queries = [items[n][0] for n in left]
    told = Comparisons.of(
        lefts,
        rights,
        lefts,
        annotator=[people[n] for n in who],
        query=queries if any(queries) else None,
        time=integers(at) / 1e6,
        duration=None if None in response_ms else integers(response_ms) / 1e3,
        features={"policy": objects(policy), "probability": np.array(probability, np.float64)},
    )
    return replace(told, outcome=np.array([CODES[one] for one in outcome], np.int8))


def _withdrawn_by(last: int) -> Any:
    return and_(withdrawal.c.vote == vote.c.seq, withdrawal.c.seq <= last)


def _excluded(connection: Connection, up_to: int) -> set[int]:
    found: set[int] = set()
    for row in events(connection, ["annotator_excluded", "annotator_included"], up_to=up_to):
        (found.add if row.kind == "annotator_excluded" else found.discard)(row.subject)
    return found


def _exported(last: int) -> Select[Any]:
    left, right, why = item.alias(), item.alias(), log.alias()
    return (
        select(
            vote.c.seq,
            vote.c.at,
            vote.c.annotator.label("who"),
            annotator.c.name.label("annotator"),
            assignment.c.query,
            left.c.label.label("left"),
            right.c.label.label("right"),
            vote.c.outcome,
            vote.c.reason,
            vote.c.response_ms,
            assignment.c.seq.label("assignment"),
            assignment.c.at.label("assigned_at"),
            assignment.c.policy,
            assignment.c.probability,
            assignment.c.gold_item,
            assignment.c.left_item,
            why.c.kind.label("withdrawn"),
        )
        .select_from(
            _OF_A_VOTE.join(annotator, vote.c.annotator == annotator.c.id)
            .join(left, vote.c.left_item == left.c.id)
            .join(right, vote.c.right_item == right.c.id)
            .outerjoin(withdrawal, _withdrawn_by(last))
            .outerjoin(why, why.c.seq == withdrawal.c.seq)
        )
        .where(vote.c.seq <= last)
    )


def _row(row: Mapping[str, Any], excluded: set[int]) -> dict[str, Any]:
    outcome, gold = row["outcome"], row["gold_item"]
    status = row["withdrawn"] or ("excluded" if row["who"] in excluded else "counts")
    return {
        "seq": row["seq"],
        "time": iso(row["at"]),
        "annotator": row["annotator"],
        "query": row["query"],
        "left": row["left"],
        "right": row["right"],
        "winner": row.get(outcome, outcome),
        "status": status,
        "reason": row["reason"],
        "response_ms": row["response_ms"],
        "assignment": row["assignment"],
        "assigned_at": iso(row["assigned_at"]),
        "policy": row["policy"],
        "probability": row["probability"],
        "gold": None if gold is None else row["left"] if gold == row["left_item"] else row["right"],
    }
