"""What a ranking function is taught with: lists and features brought together, item by item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.errors import DataError
from crowdrank.evaluation import Gold
from crowdrank.judgments import Items, Rankings
from crowdrank.learning.crowd import Crowd, crowd_of
from crowdrank.learning.features import Features
from crowdrank.learning.rankers.contract import Matrix

Vector = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lesson:
    """Lists over rows of features."""

    crowd: Crowd
    values: Matrix
    grades: Vector | None
    notes: tuple[str, ...]


def lesson_of(lists: Rankings, features: Features, truth: Rankings | Gold | None, top: int | None) -> Lesson:
    """Every item that is listed needs a row of features; with `top`, items that nobody lists count too."""
    true_lists = _lists_of(truth) if isinstance(truth, Gold) else truth
    if not features.items.has_queries and lists.items.has_queries:
        return _by_label(lists, features, true_lists, top)
    rows = features.rows_of(lists.items)
    true_rows = None if true_lists is None else features.rows_of(true_lists.items)
    wanted = rows if true_rows is None else np.append(rows, true_rows)
    if top is not None:
        wanted = np.append(wanted, np.flatnonzero(np.isin(features.items.query, features.items.query[wanted])))
    wanted = np.unique(wanted)
    part = features.take(wanted)
    codes = np.searchsorted(wanted, rows)
    true_codes = None if true_rows is None else np.searchsorted(wanted, true_rows)
    return Lesson(
        crowd_of(part.items, lists, codes, true_lists, true_codes, top), part.values, part.grades, _notes(lists)
    )


def _by_label(lists: Rankings, features: Features, truth: Rankings | None, top: int | None) -> Lesson:
    """Features of items that are the same in every query."""
    rows = features.rows_of(lists.items)
    codes = None if truth is None else _codes_among(lists.items, truth.items)
    grades = None if features.grades is None else features.grades[rows]
    own = np.arange(len(lists.items))
    return Lesson(crowd_of(lists.items, lists, own, truth, codes, top), features.values[rows], grades, _notes(lists))


def _codes_among(items: Items, others: Items) -> Integers:
    try:
        pairs = zip(others.query, others.labels, strict=True)
        return np.array([items.index(label, others.queries[query]) for query, label in pairs], np.int64)
    except KeyError as error:
        raise DataError(f"The truth names what no list does: {error}") from error


def _lists_of(gold: Gold) -> Rankings:
    """Gold as one list a query, the highest value first, equal ones tied."""
    items = gold.items
    query = items.queries[items.query] if items.has_queries else None
    return Rankings.of(item=items.labels, rank=-gold.value, query=query)


def _notes(lists: Rankings) -> tuple[str, ...]:
    if lists.annotator is None:
        return ("The lists name no annotators: all are taken to be one's.",)
    if len(lists.annotators) == 1:
        return ("There is one annotator: expertise is told by the features alone, and only roughly.",)
    return ()
