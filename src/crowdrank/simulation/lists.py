"""Ranked lists around a true list, and the synthetic data of learning to rank from crowds (Wu et al. 2016, §6.1.1).

Distances are Kendall's: the number of pairs in the opposite order. A list is built by inserting the true items, best
first; item m moves up past cₘ of the m items before it, so the distance is Σ cₘ. Lists are returned as places:
`places[l, m]` is where list l puts the m-th best item.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Rankings
from crowdrank.errors import SettingError
from crowdrank.simulation.crowd import (
    Crowd,
    check_at_least,
    check_choice,
    codes,
    draw,
    items_in_queries,
    numbered_labels,
    sample_rows,
    spawn_generators,
)

MAX_ITEMS = 170
"""Beyond this many items the number of lists at a distance overflows a float."""


def lists_at_distance(rng: np.random.Generator, items: int, distance: IntArray) -> IntArray:
    """Draw one list per entry of `distance`, uniformly from all lists at that distance from the truth."""
    left, farthest = distance.copy(), items * (items - 1) // 2
    if distance.size and not 0 <= distance.min() <= distance.max() <= farthest:
        raise SettingError(f"distance must lie between 0 and {farthest} for {items} items.")
    table = mahonian_numbers(items, int(distance.max(initial=0)))
    moved_up = np.zeros((len(distance), items), np.int64)
    for m in range(items - 1, 0, -1):
        after = left[:, None] - np.arange(m + 1)
        ways = np.where(after >= 0, table[m][np.maximum(after, 0)], 0.0)
        moved_up[:, m] = _draw_column(rng, ways)
        left -= moved_up[:, m]
    return _insert(moved_up)


def mallows_lists(rng: np.random.Generator, items: int, expertise: FloatArray) -> IntArray:
    """Draw one list y per expertise θ with P(y) ∝ exp(θ·distance), exactly, by repeated insertion."""
    moved_up = np.zeros((len(expertise), items), np.int64)
    for m in range(1, items):
        exponent = expertise[:, None] * np.arange(m + 1)
        moved_up[:, m] = _draw_column(rng, np.exp(exponent - exponent.max(axis=1, keepdims=True)))
    return _insert(moved_up)


def mahonian_numbers(items: int, farthest: int) -> FloatArray:
    """Return a table whose entry [m, v] is the number of lists of m items at distance v from a given one.

    Examples
    --------
    >>> mahonian_numbers(3, 3)[3]
    array([1., 2., 2., 1.])
    """
    if items > MAX_ITEMS:
        raise SettingError(f"Lists at a given distance can be drawn for at most {MAX_ITEMS} items, got {items}.")
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
    """Draw a column per row, in proportion to the weights."""
    total = np.cumsum(weights, axis=1)
    threshold = rng.random(len(weights)) * total[:, -1]
    return np.asarray((total <= threshold[:, None]).sum(axis=1), np.int64)


def _insert(moved_up: IntArray) -> IntArray:
    places = np.zeros_like(moved_up)
    for m in range(1, moved_up.shape[1]):
        place = m - moved_up[:, m]
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
    annotators_per_query: int | None = None,
    seed: int = 0,
) -> Crowd:
    """Simulate ranked lists by annotators of different expertise.

    Parameters
    ----------
    queries : int, default 100
        Number of queries.
    items : int, default 15
        Number of items per query.
    annotators : int, default 10
        Number of annotators.
    expertise : str or float, default "uniform(-2.5,-0.5)"
        Expertise θ of the annotators: a number or a distribution. The lower, the closer to the truth.
    first_expertise : float, optional, default -2.5
        Expertise of the first annotator; None to draw it like the others.
    labels : {"distance", "mallows"}, default "distance"
        Draw a distance v ≥ 1 in proportion to exp(θv) (eq. 56) and then any list at that distance; or draw a list y in
        proportion to exp(θ·distance(y)).
    shown : int, optional
        Number of items of a query that an annotator sees, drawn at random; all by default.
    top : int, optional
        Number of items that an annotator lists; all by default.
    annotators_per_query : int, optional
        Number of annotators per query, drawn at random; all by default.
    seed : int, default 0
        Seed of the generator.

    Returns
    -------
    Crowd
        Column of annotators: ``expertise``. Features of items: ``x1`` and ``x2``, points of the unit square; the true
        score is x1 + 10·x2 + e, e ~ N(0, 0.005²).

    Examples
    --------
    >>> list_crowd(queries=3, items=5, annotators=4)
    Crowd(Rankings(12 lists, 15 items, 4 annotators) by list_crowd)
    """
    settings = dict(locals())
    length, each = shown or items, annotators_per_query or annotators
    check_at_least(2, items=items, shown=length)
    check_at_least(1, queries=queries, annotators=annotators, top=top or length, annotators_per_query=each)
    check_choice("labels", labels, ("distance", "mallows"))
    if length > items or each > annotators or (top or 1) > length:
        raise SettingError(
            f"shown must be at most items ({items}), top at most shown ({length}) and annotators_per_query at most "
            f"annotators ({annotators}); got shown={length}, top={top}, annotators_per_query={each}."
        )
    point_rng, noise_rng, expertise_rng, distance_rng, list_rng, shown_rng, annotator_rng = spawn_generators(seed, 7)
    points = point_rng.random((queries, items, 2))
    truth = points @ [1.0, 10.0] + 0.005 * noise_rng.normal(size=(queries, items))
    skill = draw(expertise, "expertise", expertise_rng, annotators)
    if first_expertise is not None:
        skill[0] = first_expertise
    who = np.sort(sample_rows(annotator_rng, queries, annotators, each), axis=1).ravel()
    if labels == "distance":
        places = lists_at_distance(list_rng, length, _distances(distance_rng, length, skill[who]))
    else:
        places = mallows_lists(list_rng, length, skill[who])
    shown_items = np.sort(sample_rows(shown_rng, len(who), items, length), axis=1)
    lists = _items_in_order(truth, shown_items, places)[:, :top]
    judgments = Rankings(
        items=items_in_queries(queries, items),
        item=codes(lists.ravel()),
        place=codes(np.tile(np.arange(lists.shape[1]), len(who))),
        offsets=np.arange(len(who) + 1) * lists.shape[1],
        annotators=numbered_labels("annotator", annotators),
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
    """Draw v = 1 … n(n−1)/2 in proportion to exp(θv) (eq. 56)."""
    steps = np.arange(items * (items - 1) // 2)
    skills, kind = np.unique(expertise, return_inverse=True)
    exponent = skills[:, None] * steps
    total = np.cumsum(np.exp(exponent - exponent.max(axis=1, keepdims=True)), axis=1)
    threshold = rng.random(len(expertise)) * total[kind, -1]
    drawn = np.empty(len(expertise), np.int64)
    for k in range(len(skills)):
        drawn[kind == k] = 1 + np.searchsorted(total[k], threshold[kind == k], side="right")
    return drawn


def _items_in_order(truth: FloatArray, shown_items: IntArray, places: IntArray) -> IntArray:
    """Item codes of each list, best first; `shown_items` are the true places of the items shown, lists are by query."""
    queries, items = truth.shape
    best_first = np.argsort(-truth, axis=1) + np.arange(queries)[:, None] * items
    lists = np.take_along_axis(np.repeat(best_first, len(places) // queries, axis=0), shown_items, axis=1)
    return np.take_along_axis(lists, np.argsort(places, axis=1), axis=1)
