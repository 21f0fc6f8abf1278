"""Lists drawn around a true list, near or far in Kendall's distance (the number of pairs turned round).

A list is built by inserting the true items, best first; item m moves up past cₘ of the m before it, so the distance is
Σ cₘ. A list is handed over as places: `places[l, m]` is where list l puts the m-th best item.

Learning to rank from crowds, synthetic data (Wu et al. 2016, §6.1.1): whole lists around a true linear order.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Rankings
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import Crowd
from crowdrank.simulation.sampling import (
    at_least,
    codes,
    distinct_in_rows,
    draw,
    items_in_queries,
    numbered,
    one_of,
    streams,
)

# Beyond this many items the number of lists at a distance is more than a float can hold.
MOST_ITEMS = 170


def lists_at_distance(rng: np.random.Generator, items: int, distance: IntArray) -> IntArray:
    """For each entry of `distance` one list, all lists that far from the truth being as likely."""
    left, farthest = distance.copy(), items * (items - 1) // 2
    if distance.size and not 0 <= distance.min() <= distance.max() <= farthest:
        raise SettingError(f"distance must lie between 0 and {farthest} for {items} items.")
    table = mahonian_table(items, int(distance.max(initial=0)))
    passed = np.zeros((len(distance), items), np.int64)
    for m in range(items - 1, 0, -1):
        after = left[:, None] - np.arange(m + 1)
        ways = np.where(after >= 0, table[m][np.maximum(after, 0)], 0.0)
        passed[:, m] = _draw_column(rng, ways)
        left -= passed[:, m]
    return _insert(passed)


def mallows_lists(rng: np.random.Generator, items: int, expertise: FloatArray) -> IntArray:
    """For each entry of `expertise` one list y with P(y) ∝ exp(θ·distance): by repeated insertion, exactly."""
    passed = np.zeros((len(expertise), items), np.int64)
    for m in range(1, items):
        exponent = expertise[:, None] * np.arange(m + 1)
        passed[:, m] = _draw_column(rng, np.exp(exponent - exponent.max(axis=1, keepdims=True)))
    return _insert(passed)


def mahonian_table(items: int, farthest: int) -> FloatArray:
    """`table[m, v]`: how many lists of m items lie at distance v from a given one.

    >>> mahonian_table(3, 3)[3]
    array([1., 2., 2., 1.])
    """
    if items > MOST_ITEMS:
        raise SettingError(f"Lists at a given distance can be drawn for at most {MOST_ITEMS} items, got {items}.")
    table = np.zeros((items + 1, farthest + 1))
    table[:2, 0] = 1
    for m in range(2, items + 1):
        total, most = np.cumsum(table[m - 1]), m * (m - 1) // 2
        table[m] = total
        table[m, m:] -= total[: max(farthest + 1 - m, 0)]
        # Beyond the middle the difference above is lost to rounding; the counts there mirror the first half.
        table[m, most + 1 :] = 0
        far = np.arange(most // 2 + 1, min(most, farthest) + 1)
        table[m, far] = table[m, most - far]
    return table


def _draw_column(rng: np.random.Generator, weights: FloatArray) -> IntArray:
    """In each row a column, as likely as its weight."""
    total = np.cumsum(weights, axis=1)
    mark = rng.random(len(weights)) * total[:, -1]
    return np.asarray((total <= mark[:, None]).sum(axis=1), np.int64)


def _insert(passed: IntArray) -> IntArray:
    places = np.zeros_like(passed)
    for m in range(1, passed.shape[1]):
        place = m - passed[:, m]
        places[:, :m] += places[:, :m] >= place[:, None]
        places[:, m] = place
    return places


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
        items=items_in_queries(queries, items),
        item=codes(lists.ravel()),
        place=codes(np.tile(np.arange(lists.shape[1]), len(who))),
        offsets=np.arange(len(who) + 1) * lists.shape[1],
        annotators=numbered("annotator", annotators),
        annotator=codes(who),
    )
    return Crowd(
        judgments=judgments,
        truth=truth.ravel(),
        annotators={"expertise": skill},
        features={"x1": points[..., 0].ravel(), "x2": points[..., 1].ravel()},
        settings={"generator": "list_crowd", **settings},
    )


def _distances(rng: np.random.Generator, items: int, expertise: FloatArray) -> IntArray:
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


def _items_in_order(truth: FloatArray, seen: IntArray, places: IntArray) -> IntArray:
    """The item codes of each list, best first, of those whose true places were `seen`; lists go query by query."""
    queries, items = truth.shape
    best_first = np.argsort(-truth, axis=1) + np.arange(queries)[:, None] * items
    lists = np.take_along_axis(np.repeat(best_first, len(places) // queries, axis=0), seen, axis=1)
    return np.take_along_axis(lists, np.argsort(places, axis=1), axis=1)
