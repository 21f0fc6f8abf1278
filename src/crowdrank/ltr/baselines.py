"""Other ways from a crowd's lists to a ranking function: what learning to rank from crowds is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.errors import DataError
from crowdrank.ltr.em import EM, Learnt, labels_of
from crowdrank.ltr.rankers.linear import LinearScorer, Scorer
from crowdrank.ltr.training_set import Crowd, Query
from crowdrank.models.lists.plackett_luce_likelihood import Lists
from crowdrank.results import CLOSED_FORM, Convergence

Tell = Callable[[int], None]

NOBODY: FloatArray = np.zeros(0)
"""The expertise of annotators, from methods that believe all alike."""
# Of the weights of LRegMA, against features that say the same.
_RIDGE = 1e-6


class Level:
    """A ranker that learns nothing: every item has the same score."""

    def fit(self, lists: Lists, values: FloatArray, starts: IntArray, before: Scorer | None = None) -> LinearScorer:
        flat = np.zeros(values.shape[1])
        return LinearScorer(flat, flat, np.ones(values.shape[1]))


def direct(em: EM, crowd: Crowd, values: FloatArray, tell: Tell) -> Learnt:
    """LTRMA-D: first the lists are put together by a Mallows model with an expertise for everyone, then a function is
    trained on the likeliest ones, as if they were true."""
    found = replace(em, ranker=Level(), labels="map").run(crowd, values, tell)
    lists = labels_of(crowd.queries, found.posteriors, "map")
    return found._replace(scorer=em.ranker.fit(lists, values, crowd.items.starts))


def pooled(em: EM, crowd: Crowd, values: FloatArray, tell: Tell) -> Learnt:
    """ListMLE on the lists of all annotators, each believed alike."""
    lists = [_said(query, query.annotator >= 0) for query in crowd.queries]
    return _trained(em, crowd, values, joined(lists))


def borda(em: EM, crowd: Crowd, values: FloatArray, tell: Tell) -> Learnt:
    """ListMLE on one list a query: Borda's, from all annotators alike."""
    lists = [_made(query, query.borda()[None, : query.top]) for query in crowd.queries]
    return _trained(em, crowd, values, joined(lists))


def truth(em: EM, crowd: Crowd, values: FloatArray, tell: Tell) -> Learnt:
    """ListMLE on the true lists, as far as they are known."""
    known = [_said(query, query.annotator < 0) for query in crowd.queries if (query.annotator < 0).any()]
    if not known:
        raise DataError("The method truth trains on true lists, and there are none: give them as truth.")
    return _trained(em, crowd, values, joined(known))


def regression(em: EM, crowd: Crowd, values: FloatArray, tell: Tell) -> Learnt:
    """LRegMA (Raykar et al. 2010): places as numbers, each annotator with a noise of their own; linear in features."""
    row, who, place = _places(crowd)
    if not len(row):
        raise DataError("The method lregma learns from annotators' lists, and there are none.")
    centre, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    seen = np.column_stack(((values - centre) / scale, np.ones(len(values))))[row]
    precision, moved, step = np.ones(crowd.annotators), np.inf, 0
    weights = np.zeros(seen.shape[1])
    while step < em.iterations and moved > em.tolerance:
        trust = precision[who]
        square = (seen * trust[:, None]).T @ seen + _RIDGE * trust.sum() * np.eye(seen.shape[1])
        last, weights = weights, np.linalg.solve(square, seen.T @ (trust * place))
        wrong = np.bincount(who, (place - seen @ weights) ** 2, crowd.annotators)
        judged = np.bincount(who, minlength=crowd.annotators)
        precision = np.where(judged > 0, judged / np.maximum(wrong, 1e-9 * np.maximum(judged, 1)), 0.0)
        moved, step = float(np.max(np.abs(weights - last))), step + 1
        tell(step)
    unit = "short of standing still"
    done = Convergence(moved <= em.tolerance, step, moved, unit, "raise iterations")
    return Learnt(LinearScorer(-weights[:-1], centre, scale), NOBODY, [], done)


def _places(crowd: Crowd) -> tuple[IntArray, IntArray, FloatArray]:
    """Of all cells of all lists the row of features, the annotator, and the place as a share of the list."""
    rows, people, places = [], [], []
    for query in crowd.queries:
        lengths = np.diff(query.offsets)
        of_list = np.repeat(np.arange(len(lengths)), lengths)
        own = query.annotator[of_list] >= 0
        last = np.maximum((query.size if query.top else lengths[of_list]) - 1, 1)
        rows.append(query.start + query.item[own])
        people.append(query.annotator[of_list][own])
        places.append((query.place / last)[own])
        if query.top is not None and query.top < query.size:
            row, person = _left_out(query)
            rows.append(query.start + row)
            people.append(person)
            places.append(np.full(len(row), (query.top + query.size - 1) / 2 / (query.size - 1)))
    return np.concatenate(rows), np.concatenate(people), np.concatenate(places)


def _left_out(query: Query) -> tuple[IntArray, IntArray]:
    """Items beyond the first of each list, and whose list it is."""
    left = np.ones((len(query.annotator), query.size), bool)
    np.put_along_axis(left, query.tops, False, axis=1)
    left[query.annotator < 0] = False
    number, item = np.nonzero(left)
    return item, query.annotator[number]


def _trained(em: EM, crowd: Crowd, values: FloatArray, lists: Lists) -> Learnt:
    return Learnt(em.ranker.fit(lists, values, crowd.items.starts), NOBODY, [], CLOSED_FORM)


def _said(query: Query, wanted: BoolArray) -> Lists:
    """Some of a query's lists as they are; with `top`, all that they leave out tied on their last place."""
    if query.top is not None:
        return _made(query, query.tops[wanted], query.weight[wanted])
    lengths = np.diff(query.offsets)
    rows = wanted[np.repeat(np.arange(len(lengths)), lengths)]
    offsets = np.append(0, np.cumsum(lengths[wanted]))
    return Lists(
        (query.start + query.item[rows]).astype(np.int32),
        query.place[rows].astype(np.int32),
        offsets,
        query.weight[wanted],
    )


def _made(query: Query, orders: IntArray, weight: FloatArray | None = None) -> Lists:
    """Orders of items, what they leave out tied on one more place."""
    count, length = orders.shape
    left = np.ones((count, query.size), bool)
    np.put_along_axis(left, orders, False, axis=1)
    whole = np.hstack((orders, np.nonzero(left)[1].reshape(count, -1)))
    place = np.tile(np.minimum(np.arange(query.size), length), count)
    return Lists(
        (query.start + whole).ravel().astype(np.int32),
        place.astype(np.int32),
        np.arange(count + 1) * query.size,
        np.ones(count) if weight is None else weight,
    )


def joined(parts: Sequence[Lists]) -> Lists:
    """Lists one after the other."""
    shifts = np.cumsum([0, *(part.rows for part in parts)])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return Lists(
        np.concatenate([part.item for part in parts]),
        np.concatenate([part.place for part in parts]),
        np.append(np.concatenate(offsets), shifts[-1]).astype(np.int64),
        np.concatenate([part.weight for part in parts]),
    )
