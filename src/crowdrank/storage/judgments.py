"""Votes as judgments that models read, and as rows for an export."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, select, text

from crowdrank.data import TIE, Comparisons, Judgments, Rankings, Ratings
from crowdrank.storage.admission import EXCLUSIONS, is_quarantine
from crowdrank.storage.database import fetch_dict
from crowdrank.storage.schema import IS_EVENT, annotator, assignment, item, log, vote, withdrawal
from crowdrank.storage.tasks import TASK_TYPES, Question

OUTCOME_CODES = {"left": 1, "tie": 0, "right": -1, "skip": 2, "both_bad": 3, "answered": 4}
"""The codes of `Comparisons`, and codes for skips, ties of two bad items, and answers to other tasks."""

_VOTE_WITH_ASSIGNMENT = vote.join(assignment, vote.c.assignment == assignment.c.seq)
_EXCLUSIONS = select(log.c.kind, log.c.subject, log.c.detail).where(text(f"log.{IS_EVENT}"), log.c.kind.in_(EXCLUSIONS))


def task_of(connection: Connection, last: int) -> str:
    """Return the type of the task of the last assignment up to row `last`; "pair" if there is none."""
    query = select(assignment.c.task).where(assignment.c.seq <= last).order_by(assignment.c.seq.desc()).limit(1)
    return connection.scalar(query) or "pair"


def read(connection: Connection, last: int, including: Collection[int] = (), criterion: str | None = None) -> Judgments:
    """Return the votes up to row `last` that count: not skipped, not withdrawn, annotator not excluded.

    The annotators in `including` count even if they are excluded. With a `criterion`, the answers to it are returned.
    """
    task = task_of(connection, last)
    query = (
        select(
            *(vote.c[name] for name in ("seq", "left_item", "right_item", "outcome", "annotator", "at")),
            *(vote.c[name] for name in ("response_ms", "answer")),
            *(assignment.c[name] for name in ("policy", "probability", "question")),
        )
        .select_from(_VOTE_WITH_ASSIGNMENT.outerjoin(withdrawal, _withdrawn_by(last)))
        .where(vote.c.seq <= last, vote.c.outcome != "skip", withdrawal.c.seq.is_(None), assignment.c.task == task)
        .order_by(vote.c.seq)
    )
    if excluded := excluded_annotators(connection, last).keys() - set(including):
        query = query.where(vote.c.annotator.not_in(sorted(excluded)))
    rows = [row._mapping for row in connection.execute(query)]
    names = fetch_dict(connection, select(annotator.c.id, annotator.c.name))
    labels = item_labels(connection)
    if task == "pair":
        return _comparisons(rows, names, labels, criterion)
    return _other_judgments(task, rows, names, labels, criterion)


def item_labels(connection: Connection) -> dict[int, tuple[str, str]]:
    """Return the query and the label of every item, by id."""
    rows = connection.execute(select(item.c.id, item.c.query, item.c.label))
    return {id_: (query, label) for id_, query, label in rows}


Rows = list[RowMapping]
Labels = Mapping[int, tuple[str, str]]


def _comparisons(rows: Rows, names: Mapping[int, str], labels: Labels, criterion: str | None) -> Comparisons:
    if criterion is not None:
        answers = [(row, json.loads(row["answer"] or "{}").get("criteria", {})) for row in rows]
        outcomes = [given[criterion] for _, given in answers if criterion in given]
        rows = [row for row, given in answers if criterion in given]
    else:
        outcomes = [row["outcome"] for row in rows]
    left, right = ([labels[row[side]][1] for row in rows] for side in ("left_item", "right_item"))
    queries = [labels[row["left_item"]][0] for row in rows]
    response_ms = [row["response_ms"] for row in rows]
    comparisons = Comparisons.of(
        left,
        right,
        left,
        annotator=[names[row["annotator"]] for row in rows],
        query=queries if any(queries) else None,
        time=np.array([row["at"] for row in rows], np.int64) / 1e6,
        duration=None if None in response_ms else np.array(response_ms, np.int64) / 1e3,
        features={
            "policy": np.array([row["policy"] for row in rows], dtype=object),
            "probability": np.array([row["probability"] for row in rows], np.float64),
        },
    )
    # The outcome is set from the stored side, because an item may have any label, even "tie".
    both_bad = np.array([name == "both_bad" for name in outcomes], bool)
    codes = np.array([OUTCOME_CODES[name] for name in outcomes], np.int8)
    return replace(comparisons, outcome=np.where(both_bad, TIE, codes).astype(np.int8), both_bad=both_bad)


def _other_judgments(
    task: str, rows: Rows, names: Mapping[int, str], labels: Labels, criterion: str | None
) -> Ratings | Rankings:
    item_, value, who, queries, lists = [], [], [], [], []
    for row in rows:
        places = _places(task, row, criterion)
        for id_, place in places or ():
            query, label = labels[id_]
            item_.append(label)
            value.append(place)
            who.append(names[row["annotator"]])
            queries.append(query)
            lists.append(f"{row['seq']:012d}")
    query_column = queries if any(queries) else None
    if TASK_TYPES[task].kind == "ratings":
        return Ratings.of(item_, value, annotator=who, query=query_column)
    return Rankings.of(item_, value, annotator=who, query=query_column, list=lists)


def _places(task: str, row: RowMapping, criterion: str | None) -> list[tuple[int, int]] | None:
    """Return the items of a vote with their ranks or grades; None if the criterion was not asked."""
    question = Question.of_columns(None, None, task, row["question"])
    answer = json.loads(row["answer"])
    if criterion is not None and criterion not in answer.get("criteria", {}):
        return None
    value = answer["value"] if criterion is None else answer["criteria"][criterion]
    return TASK_TYPES[task].places(value, question)


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
            vote.c.answer,
            vote.c.comment,
            assignment.c.task,
            assignment.c.question,
            assignment.c.seq.label("assignment"),
            assignment.c.at.label("assigned_at"),
            assignment.c.policy,
            assignment.c.probability,
            assignment.c.gold_item,
            assignment.c.left_item,
            assignment.c.right_item,
            withdrawn.c.kind.label("withdrawn"),
        )
        .select_from(
            _VOTE_WITH_ASSIGNMENT.join(annotator, vote.c.annotator == annotator.c.id)
            .outerjoin(left, vote.c.left_item == left.c.id)
            .outerjoin(right, vote.c.right_item == right.c.id)
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
            assignment.c.task,
            assignment.c.question,
        )
        .join_from(assignment, annotator, assignment.c.annotator == annotator.c.id)
        .outerjoin(left, assignment.c.left_item == left.c.id)
        .outerjoin(right, assignment.c.right_item == right.c.id)
        .outerjoin(vote, and_(vote.c.assignment == assignment.c.seq, vote.c.seq <= last))
        .where(assignment.c.seq <= last)
    )


def export_rows(row: Mapping[str, Any], excluded: Mapping[int, str], labels: Labels) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of one row of `votes_query`, as they are exported: the main question, then its criteria."""
    question = Question.of_columns(row["left_item"], row["right_item"], row["task"], row["question"])
    answer = {} if row["answer"] is None else json.loads(row["answer"])
    values = {None: answer.get("value"), **answer.get("criteria", {})}
    start = {"seq": row["seq"], "time": iso_time(row["at"]), "annotator": row["annotator"], "query": row["query"]}
    end = {
        "status": row["withdrawn"] or excluded.get(row["annotator_id"], "counts"),
        "reason": row["reason"],
        "response_ms": row["response_ms"],
        "assignment": row["assignment"],
        "assigned_at": iso_time(row["assigned_at"]),
        "policy": row["policy"],
        "probability": row["probability"],
    }
    for criterion, value in values.items():
        last = {"criterion": criterion, "comment": row["comment"]}
        if question.is_pair:
            outcome, gold = row["outcome"] if criterion is None else value, row["gold_item"]
            judged = {"left": row["left"], "right": row["right"], "winner": row.get(outcome, outcome)}
            known = None if gold is None or criterion else row["left"] if gold == row["left_item"] else row["right"]
            yield start | judged | end | {"gold": known} | last
            continue
        kind = TASK_TYPES[question.task]
        places = dict.fromkeys(question.items) if value is None else dict(kind.places(value, question))
        for item_, place in places.items():
            label = labels[item_][1]
            judged = {"item": label, "grade": place}
            if kind.kind == "rankings":
                judged = {"list": row["seq"], "item": label, "rank": place}
            yield start | judged | end | last


def iso_time(at: int) -> str:
    """Format microseconds since 1970 as ISO 8601 in UTC."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def _withdrawn_by(last: int) -> ColumnElement[bool]:
    return and_(withdrawal.c.vote == vote.c.seq, withdrawal.c.seq <= last)
