"""Votes as judgments that models read, and as rows for an export."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, select, text

from crowdrank.data import TIE, Comparisons, Judgments, Rankings, Ratings
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import fetch_dict
from crowdrank.storage.schema import IS_EVENT, TASKS, annotator, assignment, item, log, vote, withdrawal
from crowdrank.storage.writer import EXCLUSIONS, is_quarantine

# The types of tasks: what an answer may be, and which judgments it stands for; and the judgments in a log.
#
# A task shows one annotator some items and asks one question, or the same kind of question for several criteria. A
# `Question` describes what was asked. It is stored with the assignment, so that an answer is checked against what the
# annotator saw, whatever the settings are by then. How a question is drawn and shown is up to the server.

Kind = Literal["comparisons", "ratings", "rankings"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked.

    Parameters
    ----------
    task : str, default "pair"
        The type of the task: a name in `TASK_TYPES`.
    items : tuple of int
        The items in the order in which they are shown; for a pair the left one and the right one.
    grades : int, default 0
        The number of grades of a rating scale; 0 for other tasks.
    criteria : tuple of str, default ()
        Further questions about the same items, which are answered in the same way.
    """

    task: str = "pair"
    items: tuple[int, ...]
    grades: int = 0
    criteria: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """The item on the left of a pair."""
        return self.items[0]

    @property
    def right(self) -> int:
        """The item on the right of a pair."""
        return self.items[1]

    @property
    def is_pair(self) -> bool:
        return self.task == "pair"

    def columns(self) -> dict[str, Any]:
        """Return the columns of the assignment table."""
        left, right = self.items if self.is_pair else (None, None)
        detail: dict[str, Any] = {} if self.is_pair else {"items": self.items}
        if self.grades:
            detail["grades"] = self.grades
        if self.criteria:
            detail["criteria"] = self.criteria
        return {
            "left_item": left,
            "right_item": right,
            "task": self.task,
            "question": json.dumps(detail, sort_keys=True) if detail else None,
        }

    @classmethod
    def of_columns(cls, left: int | None, right: int | None, task: str, question: str | None) -> Question:
        """Return the question in the columns of an assignment."""
        if question is None:
            return cls(items=(left or 0, right or 0))
        detail = json.loads(question)
        items = tuple(detail["items"]) if "items" in detail else (left or 0, right or 0)
        criteria = tuple(detail.get("criteria", ()))
        return cls(task=task, items=items, grades=detail.get("grades", 0), criteria=criteria)


class TaskType:
    """One type of task.

    Attributes
    ----------
    name : str
    kind : {"comparisons", "ratings", "rankings"}
        The judgments that its answers are.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "rankings"

    def check(self, value: Any, question: Question) -> Any:
        """Return a valid answer as it is stored; raise DataError for any other."""
        raise NotImplementedError

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        """Return every item with its rank, 1 being the best; for ratings with its grade."""
        raise NotImplementedError


class Pair(TaskType):
    """Which of two items is better? The answer is a side, or "tie"."""

    name = "pair"
    kind = "comparisons"

    def check(self, value: Any, question: Question) -> str:
        if value not in ("left", "right", "tie"):
            raise DataError(f"The answer must be 'left', 'right' or 'tie', got {_shown(value)}.")
        return str(value)

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        ranks = {"left": (1, 2), "right": (2, 1)}.get(value, (1, 1))
        return list(zip(question.items, ranks, strict=True))


class Rating(TaskType):
    """How good is this item? The answer is a grade from 1, the worst, to the number of grades."""

    name = "rating"
    kind = "ratings"

    def check(self, value: Any, question: Question) -> int:
        if type(value) is not int or not 1 <= value <= question.grades:
            raise DataError(f"The grade must be a whole number from 1 to {question.grades}, got {_shown(value)}.")
        return int(value)

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        return [(question.items[0], value)]


class Ranking(TaskType):
    """Order these items. The answer is the list of all of them, the best one first."""

    name = "ranking"

    def check(self, value: Any, question: Question) -> list[int]:
        is_list = isinstance(value, list | tuple) and all(type(one) is int for one in value)
        if not is_list or sorted(value) != sorted(question.items):
            raise DataError(f"The answer must list the items {_names(question)} in order, got {_shown(value)}.")
        return list(value)

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        return [(item, place) for place, item in enumerate(value, 1)]


class BestWorst(TaskType):
    """Which of these items is the best, and which the worst?"""

    name = "best-worst"

    def check(self, value: Any, question: Question) -> dict[str, int]:
        if not isinstance(value, Mapping) or set(value) != {"best", "worst"}:
            raise DataError(f"The answer must name the best and the worst item, got {_shown(value)}.")
        for one in value.values():
            _check_shown(one, question)
        if value["best"] == value["worst"]:
            raise DataError("The best and the worst item must be two items.")
        return {"best": value["best"], "worst": value["worst"]}

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        ranks = {value["best"]: 1, value["worst"]: 3}
        return [(item, ranks.get(item, 2)) for item in question.items]


class Choice(TaskType):
    """Which of these items is the best? The answer is one of them."""

    name = "choice"

    def check(self, value: Any, question: Question) -> int:
        return _check_shown(value, question)

    def places(self, value: Any, question: Question) -> list[tuple[int, int]]:
        return [(item, 1 if item == value else 2) for item in question.items]


TASK_TYPES: dict[str, TaskType] = {one.name: one for one in (Pair(), Rating(), Ranking(), BestWorst(), Choice())}
"""All types of tasks by name."""
assert tuple(TASK_TYPES) == TASKS


def task_type(name: str) -> TaskType:
    """Return a type of task by its name."""
    if name not in TASK_TYPES:
        raise UnknownNameError("task", name, list(TASK_TYPES))
    return TASK_TYPES[name]


def check_criteria(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to all criteria of a question; raise DataError if one is missing, unknown or invalid."""
    kind = TASK_TYPES[question.task]
    if unknown := set(given) - set(question.criteria):
        raise DataError(f"{min(unknown)!r} is not a criterion of this question.")
    if missing := [name for name in question.criteria if name not in given]:
        raise DataError(f"An answer to {missing[0]!r} is missing.")
    return {name: kind.check(given[name], question) for name in question.criteria}


def implied_pairs(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs (better, worse) of items on neighbouring ranks."""
    ranks = sorted({rank for _, rank in places})
    return [
        (better, worse)
        for high, low in pairwise(ranks)
        for better, first in places
        if first == high
        for worse, second in places
        if second == low
    ]


def _check_shown(value: Any, question: Question) -> int:
    if type(value) is not int or value not in question.items:
        raise DataError(f"The answer must be one of the items {_names(question)}, got {_shown(value)}.")
    return int(value)


def _names(question: Question) -> str:
    return ", ".join(map(str, question.items))


def _shown(value: Any) -> str:
    return repr(value)[:80]


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
    columns = (
        *(vote.c[name] for name in ("seq", "left_item", "right_item", "outcome", "annotator", "at")),
        *(vote.c[name] for name in ("response_ms", "answer")),
        *(assignment.c[name] for name in ("policy", "probability", "question")),
    )
    rows = [row._mapping for row in connection.execute(_counting(connection, columns, task, last, including))]
    names = fetch_dict(connection, select(annotator.c.id, annotator.c.name))
    labels = item_labels(connection)
    if task == "pair":
        return _comparisons(rows, names, labels, criterion)
    return _other_judgments(task, rows, names, labels, criterion)


def times(connection: Connection, last: int) -> list[int]:
    """Return when the votes up to row `last` that count were stored, in the order of the log."""
    query = _counting(connection, (vote.c.at,), task_of(connection, last), last)
    return list(connection.scalars(query))


def _counting(
    connection: Connection, columns: Sequence[Any], task: str, last: int, including: Collection[int] = ()
) -> Select[Any]:
    """Return the query for columns of the votes that count."""
    query = (
        select(*columns)
        .select_from(_VOTE_WITH_ASSIGNMENT.outerjoin(withdrawal, _withdrawn_by(last)))
        .where(vote.c.seq <= last, vote.c.outcome != "skip", withdrawal.c.seq.is_(None), assignment.c.task == task)
        .order_by(vote.c.seq)
    )
    if excluded := excluded_annotators(connection, last).keys() - set(including):
        query = query.where(vote.c.annotator.not_in(sorted(excluded)))
    return query


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


@dataclass(frozen=True)
class Versions:
    """Which version of a study a vote belongs to.

    Parameters
    ----------
    settings : list of int
        The rows of the log that changed the settings, in order.
    consents : dict of int to list of (int, str)
        By annotator: the rows that say which text they agreed to, and the versions of these texts.
    """

    settings: list[int]
    consents: Mapping[int, list[tuple[int, str]]]

    @classmethod
    def read(cls, connection: Connection, last: int) -> Versions:
        """Read the versions up to row `last` of the log."""
        kinds = ("settings_changed", "annotator_added", "annotator_edited")
        query = select(log.c.seq, log.c.kind, log.c.subject, log.c.detail).where(
            text(f"log.{IS_EVENT}"), log.c.kind.in_(kinds), log.c.seq <= last
        )
        settings: list[int] = []
        consents: dict[int, list[tuple[int, str]]] = {}
        for seq, kind, subject, detail in connection.execute(query.order_by(log.c.seq)):
            if kind == "settings_changed":
                settings.append(seq)
            else:
                version = str(json.loads(detail).get("metadata", {}).get("consent", ""))
                consents.setdefault(subject or seq, []).append((seq, version))
        return cls(settings, consents)

    def settings_of(self, assignment: int) -> int | None:
        """Return the row of the settings with which a question was asked; None if none were ever changed."""
        position = bisect_right(self.settings, assignment)
        return self.settings[position - 1] if position else None

    def consent_of(self, annotator: int, assignment: int) -> str | None:
        """Return the version of the text to which an annotator had agreed; None if to none."""
        events = self.consents.get(annotator, [])
        position = bisect_right(events, assignment, key=lambda event: event[0])
        return (events[position - 1][1] or None) if position else None


def export_rows(
    row: Mapping[str, Any], excluded: Mapping[int, str], labels: Labels, versions: Versions
) -> Iterator[dict[str, Any]]:
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
    asked = {
        "study_version": versions.settings_of(row["assignment"]),
        "consent": versions.consent_of(row["annotator_id"], row["assignment"]),
    }
    for criterion, value in values.items():
        last = {"criterion": criterion, "comment": row["comment"], **asked}
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
