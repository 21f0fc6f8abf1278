"""Annotators' lists laid out query by query, with what is known of the truth as lists of one who never errs.

What a ranking function is taught with: lists and features brought together, item by item.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Rankings
from crowdrank.errors import DataError
from crowdrank.evaluation import Gold
from crowdrank.ltr.expertise import Kinds
from crowdrank.ltr.features import Features
from crowdrank.ltr.list_posterior import pair_weights
from crowdrank.models.lists import mallows_likelihood, top_k_mallows

# The θ of one who never errs: steep enough against any crowd, and still a number.
SURE = -1e4


@dataclass(frozen=True, eq=False)
class Query:
    """The lists of one query, in codes of its own items."""

    start: int
    """Where its items begin among all."""
    size: int
    item: IntArray
    place: IntArray
    offsets: IntArray
    annotator: IntArray
    """Of each list; −1 where it is the truth."""
    weight: FloatArray
    top: int | None = None
    """How many items of each list count, where not all do."""

    def theta(self, expertise: FloatArray) -> FloatArray:
        """What each list weighs."""
        return np.where(self.annotator < 0, SURE, expertise[self.annotator]) * self.weight

    @cached_property
    def tops(self) -> IntArray:
        """The first items of each list, one list a row."""
        assert self.top is not None
        return np.asarray(self.item[self.offsets[:-1, None] + np.arange(self.top)])

    def borda(self) -> IntArray:
        """All items, by the share of the pairs that lists put them first in; what is true counts most."""
        theta = np.where(self.annotator < 0, -1e3, -1.0) * self.weight
        lost = -pair_weights(self.item, self.place, self.offsets, theta, self.size)
        if self.top is not None:
            return np.argsort(-lost.sum(axis=0), kind="stable")
        won, all_ = lost.sum(axis=0), lost.sum(axis=0) + lost.sum(axis=1)
        return np.argsort(-np.where(all_ > 0, won / np.maximum(all_, 1e-300), 0.5), kind="stable")


@dataclass(frozen=True, eq=False)
class Crowd:
    """All lists, query by query."""

    items: Items
    queries: tuple[Query, ...]
    annotators: int
    kinds: Kinds
    judged: IntArray
    """How many lists each annotator made."""

    def some(self, chosen: IntArray) -> Crowd:
        """Some of the queries; items and annotators keep their codes."""
        return crowd_of_queries(self.items, tuple(self.queries[q] for q in chosen), self.annotators)


def crowd_of(
    items: Items,
    lists: Rankings,
    codes: IntArray,
    truth: Rankings | None,
    truth_codes: IntArray | None,
    top: int | None,
) -> Crowd:
    """Lists, whose items are `codes` among `items`, and true lists, whose items are `truth_codes`."""
    who = np.zeros(len(lists), np.int64) if lists.annotator is None else lists.annotator.astype(np.int64)
    item, place, lengths, weight = codes[lists.item], lists.place.astype(np.int64), lists.lengths, lists.weights
    if truth is not None and truth_codes is not None:
        item, place = np.append(item, truth_codes[truth.item]), np.append(place, truth.place)
        lengths, weight = np.append(lengths, truth.lengths), np.append(weight, np.ones(len(truth)))
        who = np.append(who, np.full(len(truth), -1))
    begins = np.cumsum(lengths) - lengths
    query = items.query[item[begins]]
    order = np.argsort(query, kind="stable")
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        rows = np.concatenate([np.arange(begins[n], begins[n] + lengths[n]) for n in part])
        q = int(query[part[0]])
        start, size = int(items.starts[q]), int(items.starts[q + 1] - items.starts[q])
        one = Query(
            start,
            size,
            item[rows].astype(np.int64) - start,
            place[rows].astype(np.int64),
            np.append(0, np.cumsum(lengths[part])),
            who[part],
            weight[part],
        )
        found.append(one if top is None else _first_items(one, min(top, size), items, q))
    return crowd_of_queries(items, tuple(found), max(len(lists.annotators), 1))


def crowd_of_queries(items: Items, queries: tuple[Query, ...], annotators: int) -> Crowd:
    who = np.concatenate([query.annotator for query in queries])
    judged = np.bincount(who[who >= 0], minlength=annotators)
    return Crowd(items, queries, annotators, _kinds(queries, annotators), judged)


def _first_items(query: Query, top: int, items: Items, code: int) -> Query:
    """The first items of each list alone; a list that does not say which they are is refused."""
    lengths = np.diff(query.offsets)
    if lengths.min() < top:
        raise DataError(
            f"A list of query {items.queries[code]} has {lengths.min()} items, and top is {top}: "
            "every list must name its first items, as many as top says. Lower top."
        )
    rows = query.offsets[:-1, None] + np.arange(top)
    after = np.where(lengths > top, query.place[np.minimum(query.offsets[:-1] + top, len(query.place) - 1)], -1)
    if np.any(np.diff(query.place[rows], axis=1) == 0) or np.any(query.place[rows[:, -1]] == after):
        raise DataError(
            f"A list of query {items.queries[code]} has ties among its first {top} items, and top-k lists must not."
        )
    count = len(lengths)
    return Query(
        query.start,
        query.size,
        query.item[rows].ravel(),
        np.tile(np.arange(top), count),
        np.arange(count + 1) * top,
        query.annotator,
        query.weight,
        top,
    )


def _kinds(queries: tuple[Query, ...], annotators: int) -> Kinds:
    lists = np.zeros(annotators)
    cells: dict[tuple[int, int], FloatArray] = {}
    for query in queries:
        own = query.annotator >= 0
        who, weight = query.annotator[own], query.weight[own]
        np.add.at(lists, who, weight)
        if query.top is not None:
            np.add.at(cells.setdefault((query.size, query.top), np.zeros(annotators)), who, weight)
            continue
        for size, of_list, sign in _sizes(query):
            if size > 1 and own[of_list]:
                cell = cells.setdefault((size, 0), np.zeros(annotators))
                cell[query.annotator[of_list]] += sign * query.weight[of_list]
    kinds = sorted(cells)
    count = np.array([cells[kind] for kind in kinds]).reshape(len(kinds), annotators).T

    def expected(theta: FloatArray) -> FloatArray:
        return np.array([_expected(theta, *kind) for kind in kinds]).reshape(len(kinds), len(theta)).T

    return Kinds(count, lists, expected)


def _expected(theta: FloatArray, size: int, top: int) -> FloatArray:
    return (
        top_k_mallows.expected_distance(theta, size, top) if top else mallows_likelihood.expected_distance(theta, size)
    )


def _sizes(query: Query) -> list[tuple[int, int, float]]:
    """(how many items, of which list, 1), and for each tie (how many items, of which list, −1)."""
    lengths = np.diff(query.offsets)
    found = [(int(length), n, 1.0) for n, length in enumerate(lengths)]
    of_row = np.repeat(np.arange(len(lengths)), lengths)
    fresh = np.append(True, (np.diff(query.place) != 0) | (np.diff(of_row) != 0))
    begins = np.flatnonzero(fresh)
    tied = np.diff(np.append(begins, len(of_row)))
    return found + [(int(size), int(of_row[begin]), -1.0) for size, begin in zip(tied, begins, strict=True) if size > 1]


@dataclass(frozen=True, eq=False)
class Lesson:
    """Lists over rows of features."""

    crowd: Crowd
    values: FloatArray
    grades: FloatArray | None
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


def _codes_among(items: Items, others: Items) -> IntArray:
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
