"""The types of tasks: what an answer may be, and which judgments it stands for.

A task shows one annotator some items and asks one question, or the same kind of question for several criteria.
A `Question` describes what was asked. It is stored with the assignment, so that an answer is checked against what the
annotator saw, whatever the settings are by then. How a question is drawn and shown is up to the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.schema import TASKS

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
