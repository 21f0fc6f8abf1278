"""Learning to rank from crowds, synthetic data (Wu et al. 2016, §6.1.1): whole lists around a true linear order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.judgments import Rankings
from crowdrank.simulated.crowd import Crowd
from crowdrank.simulated.distributions import draw
from crowdrank.simulated.draws import (
    Integers,
    Numbers,
    at_least,
    codes,
    distinct_in_rows,
    items_in_queries,
    numbered,
    one_of,
    streams,
)
from crowdrank.simulated.permutations import lists_at_distance, mallows_lists


def list_crowd(
    queries: int = 100,
    items: int = 15,
    annotators: int = 10,
    expertise: str | float = "uniform(-2.5,-0.5)",
    first_expertise: float | None = -2.5,
    labels: Literal["distance", "mallows"] = "distance",
    shown: int | None = None,
    top: int | None = None,
    annotators_a_query: int | None = None,
    seed: int = 0,
) -> Crowd:
    """Every annotator orders all items of every query; the lower the expertise θ, the nearer to the truth.

    Items are points of the unit square with score x1 + 10·x2 + e, e ~ N(0, 0.005²). With labels "distance" a distance
    v ≥ 1 is drawn in proportion to exp(θv) (eq. 56) and then any list that far; with "mallows" a list y in proportion
    to exp(θ·distance(y)). The first annotator has `first_expertise`, unless that is None. Each is `shown` so many items
    of a query, drawn by lot, where not all; tells only the `top` of the list; and `annotators_a_query` of them
    order a query.

    >>> list_crowd(queries=3, items=5, annotators=4)
    Crowd(Rankings(12 lists, 15 items, 4 annotators) by list_crowd)
    """
    settings = dict(locals())
    length, each = shown or items, annotators_a_query or annotators
    at_least(2, items=items, shown=length)
    at_least(1, queries=queries, annotators=annotators, top=top or length, annotators_a_query=each)
    one_of("labels", labels, ("distance", "mallows"))
    if length > items or each > annotators or (top or 1) > length:
        raise SettingError("There must be no more items shown, or in the top, nor annotators_a_query, than there are.")
    for_points, for_noise, for_expertise, for_distance, for_lists, for_shown, for_who = streams(seed, 7)
    points = for_points.random((queries, items, 2))
    truth = points @ [1.0, 10.0] + 0.005 * for_noise.normal(size=(queries, items))
    skill = draw(expertise, "expertise", for_expertise, annotators)
    if first_expertise is not None:
        skill[0] = first_expertise
    who = np.sort(distinct_in_rows(for_who, queries, annotators, each), axis=1).ravel()
    if labels == "distance":
        places = lists_at_distance(for_lists, length, _distances(for_distance, length, skill[who]))
    else:
        places = mallows_lists(for_lists, length, skill[who])
    seen = np.sort(distinct_in_rows(for_shown, len(who), items, length), axis=1)
    lists = _items_in_order(truth, seen, places)[:, :top]
    judgments = Rankings(
        items=items_in_queries(queries, items), item=codes(lists.ravel()),
        place=codes(np.tile(np.arange(lists.shape[1]), len(who))), offsets=np.arange(len(who) + 1) * lists.shape[1],
        annotators=numbered("annotator", annotators), annotator=codes(who),
    )  # fmt: skip
    return Crowd(
        judgments=judgments, truth=truth.ravel(), annotators={"expertise": skill},
        features={"x1": points[..., 0].ravel(), "x2": points[..., 1].ravel()},
        settings={"generator": "list_crowd", **settings},
    )  # fmt: skip


def _distances(rng: np.random.Generator, items: int, expertise: Numbers) -> Integers:
    """Eq. 56: v = 1 … n(n−1)/2 in proportion to exp(θv)."""
    steps = np.arange(items * (items - 1) // 2)
    skills, kind = np.unique(expertise, return_inverse=True)
    exponent = skills[:, None] * steps
    total = np.cumsum(np.exp(exponent - exponent.max(axis=1, keepdims=True)), axis=1)
    mark = rng.random(len(expertise)) * total[kind, -1]
    drawn = np.empty(len(expertise), np.int64)
    for k in range(len(skills)):
        drawn[kind == k] = 1 + np.searchsorted(total[k], mark[kind == k], side="right")
    return drawn


def _items_in_order(truth: Numbers, seen: Integers, places: Integers) -> Integers:
    """The item codes of each list, best first, of those whose true places were `seen`; lists go query by query."""
    queries, items = truth.shape
    best_first = np.argsort(-truth, axis=1) + np.arange(queries)[:, None] * items
    lists = np.take_along_axis(np.repeat(best_first, len(places) // queries, axis=0), seen, axis=1)
    return np.take_along_axis(lists, np.argsort(places, axis=1), axis=1)
