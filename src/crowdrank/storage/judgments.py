"""Votes as judgments that models read, and as rows for an export."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, and_, select, text

from crowdrank.data import Comparisons
from crowdrank.storage.admission import EXCLUSIONS, is_quarantine
from crowdrank.storage.database import fetch_columns, fetch_dict
from crowdrank.storage.schema import IS_EVENT, annotator, assignment, item, log, vote, withdrawal

OUTCOME_CODES = {"left": 1, "tie": 0, "right": -1, "skip": 2}
"""The codes of `Comparisons`, and one for skips."""

_VOTE_WITH_ASSIGNMENT = vote.join(assignment, vote.c.assignment == assignment.c.seq)
_EXCLUSIONS = select(log.c.kind, log.c.subject, log.c.detail).where(text(f"log.{IS_EVENT}"), log.c.kind.in_(EXCLUSIONS))


def read(connection: Connection, last: int, including: Collection[int] = ()) -> Comparisons:
    """Return the votes up to row `last` that count: not skipped, not withdrawn, annotator not excluded.

    The annotators in `including` count even if they are excluded.
    """
    query = (
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
        .select_from(_VOTE_WITH_ASSIGNMENT.outerjoin(withdrawal, _withdrawn_by(last)))
        .where(vote.c.seq <= last, vote.c.outcome != "skip", withdrawal.c.seq.is_(None))
        .order_by(vote.c.seq)
    )
    if excluded := excluded_annotators(connection, last).keys() - set(including):
        query = query.where(vote.c.annotator.not_in(sorted(excluded)))
    left, right, outcome, annotators, at, response_ms, policy, probability = fetch_columns(connection, query, 8)
    item_rows = connection.execute(select(item.c.id, item.c.query, item.c.label))
    items = {id_: (item_query, label) for id_, item_query, label in item_rows}
    names = fetch_dict(connection, select(annotator.c.id, annotator.c.name))
    left_labels, right_labels = [items[id_][1] for id_ in left], [items[id_][1] for id_ in right]
    queries = [items[id_][0] for id_ in left]
    comparisons = Comparisons.of(
        left_labels,
        right_labels,
        left_labels,
        annotator=[names[id_] for id_ in annotators],
        query=queries if any(queries) else None,
        time=np.array(at, np.int64) / 1e6,
        duration=None if None in response_ms else np.array(response_ms, np.int64) / 1e3,
        features={"policy": np.array(policy, dtype=object), "probability": np.array(probability, np.float64)},
    )
    # The outcome is set from the stored side, because an item may have any label, even "tie".
    return replace(comparisons, outcome=np.array([OUTCOME_CODES[name] for name in outcome], np.int8))


def excluded_annotators(connection: Connection, last: int) -> dict[int, str]:
    """Return the annotators whose votes did not count as of row `last`, with the status: excluded or quarantined."""
    found: dict[int, str] = {}
    for kind, subject, detail in connection.execute(_EXCLUSIONS.where(log.c.seq <= last).order_by(log.c.seq)):
        if kind == "annotator_excluded":
            found[subject] = "quarantined" if is_quarantine(detail) else "excluded"
        else:
            found.pop(subject, None)
    return found


def votes_query(last: int) -> Select[Any]:
    """Return the query behind an export of all votes up to row `last`."""
    left, right, withdrawn = item.alias(), item.alias(), log.alias()
    return (
        select(
            vote.c.seq,
            vote.c.at,
            vote.c.annotator.label("annotator_id"),
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
            withdrawn.c.kind.label("withdrawn"),
        )
        .select_from(
            _VOTE_WITH_ASSIGNMENT.join(annotator, vote.c.annotator == annotator.c.id)
            .join(left, vote.c.left_item == left.c.id)
            .join(right, vote.c.right_item == right.c.id)
            .outerjoin(withdrawal, _withdrawn_by(last))
            .outerjoin(withdrawn, withdrawn.c.seq == withdrawal.c.seq)
        )
        .where(vote.c.seq <= last)
    )


def assignments_query(last: int) -> Select[Any]:
    """Return the query behind an export of all assignments up to row `last`."""
    left, right = item.alias(), item.alias()
    return (
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
        .outerjoin(vote, and_(vote.c.assignment == assignment.c.seq, vote.c.seq <= last))
        .where(assignment.c.seq <= last)
    )


def export_row(row: Mapping[str, Any], excluded: Mapping[int, str]) -> dict[str, Any]:
    """Return one row of `votes_query` as it is exported."""
    outcome, gold = row["outcome"], row["gold_item"]
    status = row["withdrawn"] or excluded.get(row["annotator_id"], "counts")
    return {
        "seq": row["seq"],
        "time": iso_time(row["at"]),
        "annotator": row["annotator"],
        "query": row["query"],
        "left": row["left"],
        "right": row["right"],
        "winner": row.get(outcome, outcome),
        "status": status,
        "reason": row["reason"],
        "response_ms": row["response_ms"],
        "assignment": row["assignment"],
        "assigned_at": iso_time(row["assigned_at"]),
        "policy": row["policy"],
        "probability": row["probability"],
        "gold": None if gold is None else row["left"] if gold == row["left_item"] else row["right"],
    }


def iso_time(at: int) -> str:
    """Format microseconds since 1970 as ISO 8601 in UTC."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def _withdrawn_by(last: int) -> ColumnElement[bool]:
    return and_(withdrawal.c.vote == vote.c.seq, withdrawal.c.seq <= last)
