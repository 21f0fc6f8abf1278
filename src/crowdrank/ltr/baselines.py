"""Baselines for learning to rank from crowds: other methods to learn a ranking function from annotators' lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.errors import DataError
from crowdrank.ltr.em import CONVERGENCE_UNIT, EM, REMEDY, EMResult, training_lists
from crowdrank.ltr.linear import LinearScorer, Scorer
from crowdrank.ltr.training_set import CrowdLists, QueryLists
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists
from crowdrank.results import CLOSED_FORM, Convergence

Progress = Callable[[int], None]

# The expertise that methods without annotator models return.
NO_EXPERTISE: FloatArray = np.zeros(0)
# Ridge of the regression weights of LRegMA, for collinear features.
_RIDGE = 1e-6


class ConstantRanker:
    """A ranker that learns nothing: every item has the same score."""

    def fit(
        self, lists: RankedLists, features: FloatArray, starts: IntArray, init: Scorer | None = None
    ) -> LinearScorer:
        zeros = np.zeros(features.shape[1])
        return LinearScorer(zeros, zeros, np.ones(features.shape[1]))


def aggregate_then_train(em: EM, crowd: CrowdLists, features: FloatArray, progress: Progress) -> EMResult:
    """LTRMA-D: aggregate the lists by a Mallows model with expertise, then train on the most probable lists."""
    result = replace(em, ranker=ConstantRanker(), labels="map").run(crowd, features, progress)
    lists = training_lists(crowd.queries, result.posteriors, "map")
    return result._replace(scorer=em.ranker.fit(lists, features, crowd.items.starts))


def pooled(em: EM, crowd: CrowdLists, features: FloatArray, progress: Progress) -> EMResult:
    """ListMLE on the lists of all annotators, with equal weights."""
    lists = [_select_lists(query, query.annotator >= 0) for query in crowd.queries]
    return _train(em, crowd, features, concatenate_lists(lists))


def borda(em: EM, crowd: CrowdLists, features: FloatArray, progress: Progress) -> EMResult:
    """ListMLE on one list per query: the Borda order of all annotators."""
    lists = [_completed_lists(query, query.borda()[None, : query.top]) for query in crowd.queries]
    return _train(em, crowd, features, concatenate_lists(lists))


def truth(em: EM, crowd: CrowdLists, features: FloatArray, progress: Progress) -> EMResult:
    """ListMLE on the known true lists."""
    known = [_select_lists(query, query.annotator < 0) for query in crowd.queries if (query.annotator < 0).any()]
    if not known:
        raise DataError("The method 'truth' trains on true lists, but there are none: pass them as truth=….")
    return _train(em, crowd, features, concatenate_lists(known))


def regression(em: EM, crowd: CrowdLists, features: FloatArray, progress: Progress) -> EMResult:
    """LRegMA (Raykar et al. 2010): linear regression on relative positions, with a noise variance per annotator."""
    row, annotator, position = _relative_positions(crowd)
    if not len(row):
        raise DataError("The method 'lregma' learns from annotators' lists, but there are none.")
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack(((features - centre) / scale, np.ones(len(features))))[row]
    precision, change, step = np.ones(crowd.annotators), np.inf, 0
    weights = np.zeros(design.shape[1])
    while step < em.iterations and change > em.tolerance:
        # Weighted least squares, then each annotator's precision from their residuals.
        row_weight = precision[annotator]
        normal = (design * row_weight[:, None]).T @ design + _RIDGE * row_weight.sum() * np.eye(design.shape[1])
        last, weights = weights, np.linalg.solve(normal, design.T @ (row_weight * position))
        squares = np.bincount(annotator, (position - design @ weights) ** 2, crowd.annotators)
        judged = np.bincount(annotator, minlength=crowd.annotators)
        precision = np.where(judged > 0, judged / np.maximum(squares, 1e-9 * np.maximum(judged, 1)), 0.0)
        change, step = float(np.max(np.abs(weights - last))), step + 1
        progress(step)
    convergence = Convergence(change <= em.tolerance, step, change, CONVERGENCE_UNIT, REMEDY)
    return EMResult(LinearScorer(-weights[:-1], centre, scale), NO_EXPERTISE, [], convergence)


def _relative_positions(crowd: CrowdLists) -> tuple[IntArray, IntArray, FloatArray]:
    """For all rows of all lists: the row of features, the annotator, and the position from 0 (first) to 1 (last)."""
    rows, annotators, positions = [], [], []
    for query in crowd.queries:
        lengths = np.diff(query.offsets)
        list_of_row = np.repeat(np.arange(len(lengths)), lengths)
        own = query.annotator[list_of_row] >= 0
        last = np.maximum((query.size if query.top else lengths[list_of_row]) - 1, 1)
        rows.append(query.start + query.item[own])
        annotators.append(query.annotator[list_of_row][own])
        positions.append((query.place / last)[own])
        if query.top is not None and query.top < query.size:
            row, annotator = _missing_items(query)
            rows.append(query.start + row)
            annotators.append(annotator)
            positions.append(np.full(len(row), (query.top + query.size - 1) / 2 / (query.size - 1)))
    return np.concatenate(rows), np.concatenate(annotators), np.concatenate(positions)


def _missing_items(query: QueryLists) -> tuple[IntArray, IntArray]:
    """The items that each top-k list leaves out, and the annotator of the list."""
    missing = np.ones((len(query.annotator), query.size), bool)
    np.put_along_axis(missing, query.tops, False, axis=1)
    missing[query.annotator < 0] = False
    number, item = np.nonzero(missing)
    return item, query.annotator[number]


def _train(em: EM, crowd: CrowdLists, features: FloatArray, lists: RankedLists) -> EMResult:
    return EMResult(em.ranker.fit(lists, features, crowd.items.starts), NO_EXPERTISE, [], CLOSED_FORM)


def _select_lists(query: QueryLists, wanted: BoolArray) -> RankedLists:
    """Some of a query's lists; top-k lists are completed by all other items, tied on the last place."""
    if query.top is not None:
        return _completed_lists(query, query.tops[wanted], query.weight[wanted])
    lengths = np.diff(query.offsets)
    rows = wanted[np.repeat(np.arange(len(lengths)), lengths)]
    offsets = np.append(0, np.cumsum(lengths[wanted]))
    return RankedLists(
        (query.start + query.item[rows]).astype(np.int32),
        query.place[rows].astype(np.int32),
        offsets,
        query.weight[wanted],
    )


def _completed_lists(query: QueryLists, orders: IntArray, weight: FloatArray | None = None) -> RankedLists:
    """Orders of the first items, completed by all other items, tied on one more place."""
    count, length = orders.shape
    missing = np.ones((count, query.size), bool)
    np.put_along_axis(missing, orders, False, axis=1)
    complete = np.hstack((orders, np.nonzero(missing)[1].reshape(count, -1)))
    place = np.tile(np.minimum(np.arange(query.size), length), count)
    return RankedLists(
        (query.start + complete).ravel().astype(np.int32),
        place.astype(np.int32),
        np.arange(count + 1) * query.size,
        np.ones(count) if weight is None else weight,
    )


def concatenate_lists(parts: Sequence[RankedLists]) -> RankedLists:
    """All lists in one table."""
    shifts = np.cumsum([0, *(part.rows for part in parts)])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return RankedLists(
        np.concatenate([part.item for part in parts]),
        np.concatenate([part.place for part in parts]),
        np.append(np.concatenate(offsets), shifts[-1]).astype(np.int64),
        np.concatenate([part.weight for part in parts]),
    )
