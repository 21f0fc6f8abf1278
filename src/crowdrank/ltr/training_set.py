"""Training data: annotators' lists by query, joined with the features of their items.

Known true lists are lists of a pseudo-annotator (code −1) with a fixed, extreme expertise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Rankings
from crowdrank.errors import DataError
from crowdrank.evaluation import Gold
from crowdrank.ltr.expertise import SufficientStatistics
from crowdrank.ltr.features import Features
from crowdrank.ltr.list_posterior import pair_weights
from crowdrank.models.lists import mallows_likelihood

# θ of a known true list: outweighs any crowd, but is finite.
TRUTH_THETA = -1e4


@dataclass(frozen=True, eq=False)
class QueryLists:
    """The lists of one query, with its items coded from 0.

    Parameters
    ----------
    start : int
        Code of the query's first item among all items.
    size : int
        Number of items of the query.
    item, place : array
        Item and place of each row; the rows of a list are consecutive, best first.
    offsets : array
        First row of each list, and the number of rows at the end.
    annotator : array
        Annotator of each list; −1 for a known true list.
    weight : array
        Weight of each list.
    top : int or None
        k for top-k lists; None for full (or partial) lists.
    """

    start: int
    size: int
    item: IntArray
    place: IntArray
    offsets: IntArray
    annotator: IntArray
    weight: FloatArray
    top: int | None = None

    def theta(self, expertise: FloatArray) -> FloatArray:
        """θ of each list, times its weight."""
        return np.where(self.annotator < 0, TRUTH_THETA, expertise[self.annotator]) * self.weight

    @cached_property
    def tops(self) -> IntArray:
        """The first k items of each list, one list per row."""
        assert self.top is not None
        return np.asarray(self.item[self.offsets[:-1, None] + np.arange(self.top)])

    def borda(self) -> IntArray:
        """All items in Borda order: by the fraction of pairs won. Known true lists weigh 1000 times as much."""
        theta = np.where(self.annotator < 0, -1e3, -1.0) * self.weight
        lost = -pair_weights(self.item, self.place, self.offsets, theta, self.size)
        if self.top is not None:
            return np.argsort(-lost.sum(axis=0), kind="stable")
        won, total = lost.sum(axis=0), lost.sum(axis=0) + lost.sum(axis=1)
        return np.argsort(-np.where(total > 0, won / np.maximum(total, 1e-300), 0.5), kind="stable")


@dataclass(frozen=True, eq=False)
class CrowdLists:
    """All lists, by query.

    Parameters
    ----------
    items : Items
        The items with features.
    queries : tuple of QueryLists
        The queries with lists.
    annotators : int
        Number of annotators.
    statistics : SufficientStatistics
        The lists of each annotator by kind.
    judged : array
        Number of lists of each annotator.
    """

    items: Items
    queries: tuple[QueryLists, ...]
    annotators: int
    statistics: SufficientStatistics
    judged: IntArray

    @classmethod
    def of_queries(cls, items: Items, queries: tuple[QueryLists, ...], annotators: int) -> CrowdLists:
        who = np.concatenate([query.annotator for query in queries])
        judged = np.bincount(who[who >= 0], minlength=annotators)
        return cls(items, queries, annotators, _statistics(queries, annotators), judged)

    def subset(self, chosen: IntArray) -> CrowdLists:
        """Some of the queries; items and annotators keep their codes."""
        return CrowdLists.of_queries(self.items, tuple(self.queries[q] for q in chosen), self.annotators)


def build_crowd_lists(
    items: Items,
    lists: Rankings,
    codes: IntArray,
    truth: Rankings | None,
    truth_codes: IntArray | None,
    top: int | None,
) -> CrowdLists:
    """Group lists by query.

    Parameters
    ----------
    items : Items
        The items with features.
    lists : Rankings
        The annotators' lists.
    codes : array
        Code among `items` of each item of `lists`.
    truth : Rankings or None
        Known true lists.
    truth_codes : array or None
        Code among `items` of each item of `truth`.
    top : int or None
        k for top-k lists.
    """
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
        query_lists = QueryLists(
            start,
            size,
            item[rows].astype(np.int64) - start,
            place[rows].astype(np.int64),
            np.append(0, np.cumsum(lengths[part])),
            who[part],
            weight[part],
        )
        found.append(query_lists if top is None else _truncate(query_lists, min(top, size), items, q))
    return CrowdLists.of_queries(items, tuple(found), max(len(lists.annotators), 1))


def _truncate(query: QueryLists, top: int, items: Items, code: int) -> QueryLists:
    """Keep the first k items of each list; refuse lists that are too short or tied there."""
    lengths = np.diff(query.offsets)
    if lengths.min() < top:
        raise DataError(
            f"A list of query {items.queries[code]} has {lengths.min()} items, but top={top} needs lists of at least "
            f"{top}. Lower top."
        )
    rows = query.offsets[:-1, None] + np.arange(top)
    after = np.where(lengths > top, query.place[np.minimum(query.offsets[:-1] + top, len(query.place) - 1)], -1)
    if np.any(np.diff(query.place[rows], axis=1) == 0) or np.any(query.place[rows[:, -1]] == after):
        raise DataError(
            f"A list of query {items.queries[code]} has ties among its first {top} items; top-k lists must be strict."
        )
    count = len(lengths)
    return QueryLists(
        query.start,
        query.size,
        query.item[rows].ravel(),
        np.tile(np.arange(top), count),
        np.arange(count + 1) * top,
        query.annotator,
        query.weight,
        top,
    )


def _statistics(queries: tuple[QueryLists, ...], annotators: int) -> SufficientStatistics:
    lists = np.zeros(annotators)
    cells: dict[tuple[int, int], FloatArray] = {}  # by (length, k), with k = 0 for full lists
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

    full = np.array([size for size, top in kinds if not top], np.int64)
    firsts = [kind for kind in kinds if kind[1]]

    def expected(theta: FloatArray) -> FloatArray:
        found = np.empty((len(theta), len(kinds)))
        is_full = np.array([not top for _, top in kinds], bool)
        if len(full):
            found[:, is_full] = mallows_likelihood.expected_distance_by_size(theta, int(full.max()))[:, full]
        for column, (size, top) in zip(np.flatnonzero(~is_full), firsts, strict=True):
            found[:, column] = mallows_likelihood.expected_top_k_distance(theta, size, top)
        return found

    return SufficientStatistics(count, lists, expected)


def _sizes(query: QueryLists) -> list[tuple[int, int, float]]:
    """(number of items, list, 1) per list, and (number of tied items, list, −1) per tie."""
    lengths = np.diff(query.offsets)
    found = [(int(length), n, 1.0) for n, length in enumerate(lengths)]
    list_of_row = np.repeat(np.arange(len(lengths)), lengths)
    is_new = np.append(True, (np.diff(query.place) != 0) | (np.diff(list_of_row) != 0))
    begins = np.flatnonzero(is_new)
    tied = np.diff(np.append(begins, len(list_of_row)))
    ties = [(int(size), int(list_of_row[begin]), -1.0) for size, begin in zip(tied, begins, strict=True) if size > 1]
    return found + ties


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Lists joined with features.

    Parameters
    ----------
    crowd : CrowdLists
        The lists; item codes are rows of `features`.
    features : array of shape (items, features)
        Feature values.
    grades : array or None
        True grade of each item, if the source has them; NaN if unknown.
    notes : tuple of str
        Remarks on the data for the user.
    """

    crowd: CrowdLists
    features: FloatArray
    grades: FloatArray | None
    notes: tuple[str, ...]


def build_training_set(
    lists: Rankings, features: Features, truth: Rankings | Gold | None, top: int | None
) -> TrainingSet:
    """Join lists and features.

    Every listed item needs a row of features. With `top`, items that no list contains take part, too.
    """
    true_lists = _gold_lists(truth) if isinstance(truth, Gold) else truth
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
    crowd = build_crowd_lists(part.items, lists, codes, true_lists, true_codes, top)
    return TrainingSet(crowd, part.values, part.grades, _notes(lists))


def _by_label(lists: Rankings, features: Features, truth: Rankings | None, top: int | None) -> TrainingSet:
    """Join by label alone: an item has the same features in every query."""
    rows = features.rows_of(lists.items)
    codes = None if truth is None else _codes_among(lists.items, truth.items)
    grades = None if features.grades is None else features.grades[rows]
    own = np.arange(len(lists.items))
    crowd = build_crowd_lists(lists.items, lists, own, truth, codes, top)
    return TrainingSet(crowd, features.values[rows], grades, _notes(lists))


def _codes_among(items: Items, others: Items) -> IntArray:
    try:
        pairs = zip(others.query, others.labels, strict=True)
        return np.array([items.index(label, others.queries[query]) for query, label in pairs], np.int64)
    except KeyError as error:
        raise DataError(f"The truth contains an item that is in no list: {error}") from error


def _gold_lists(gold: Gold) -> Rankings:
    """Gold as one list per query, the highest value first, equal values tied."""
    items = gold.items
    query = items.queries[items.query] if items.has_queries else None
    return Rankings.of(item=items.labels, rank=-gold.value, query=query)


def _notes(lists: Rankings) -> tuple[str, ...]:
    if lists.annotator is None:
        return ("The lists have no annotators; all are treated as one annotator's.",)
    if len(lists.annotators) == 1:
        return ("There is one annotator, so expertise is estimated from the features alone, and only roughly.",)
    return ()
