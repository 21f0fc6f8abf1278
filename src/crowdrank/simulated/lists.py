"""Learning to rank from crowds, synthetic data (Wu et al. 2016, §6.1.1): whole lists around a true linear order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.judgments import Rankings
from crowdrank.simulated.crowd import Crowd
from crowdrank.simulated.distributions import draw
from crowdrank.simulated.draws import Integers, Numbers, at_least, codes, items_in_queries, numbered, one_of, streams
from crowdrank.simulated.permutations import lists_at_distance, mallows_lists


def list_crowd(
    queries: int = 100,
    items: int = 15,
    annotators: int = 10,
    expertise: str | float = "uniform(-2.5,-0.5)",
    first_expertise: float | None = -2.5,
    labels: Literal["distance", "mallows"] = "distance",
    seed: int = 0,
) -> Crowd:
    """Every annotator orders all items of every query; the lower the expertise θ, the nearer to the truth.

    Items are points of the unit square with score x1 + 10·x2 + e, e ~ N(0, 0.005²). With labels "distance" a distance
    v ≥ 1 is drawn in proportion to exp(θv) (eq. 56) and then any list that far; with "mallows" a list y in proportion
    to exp(θ·distance(y)). The first annotator has `first_expertise`, unless that is None.

    >>> list_crowd(queries=3, items=5, annotators=4)
    Crowd(Rankings(12 lists, 15 items, 4 annotators) by list_crowd)
    """
    settings = dict(locals())
    at_least(2, items=items)
    at_least(1, queries=queries, annotators=annotators)
    one_of("labels", labels, ("distance", "mallows"))
    for_points, for_noise, for_expertise, for_distance, for_lists = streams(seed, 5)
    points = for_points.random((queries, items, 2))
    truth = points @ [1.0, 10.0] + 0.005 * for_noise.normal(size=(queries, items))
    skill = draw(expertise, "expertise", for_expertise, annotators)
    if first_expertise is not None:
        skill[0] = first_expertise
    of_list = np.tile(skill, queries)
    if labels == "distance":
        places = lists_at_distance(for_lists, items, _distances(for_distance, items, of_list))
    else:
        places = mallows_lists(for_lists, items, of_list)
    judgments = Rankings(
        items=items_in_queries(queries, items), item=codes(_items_in_order(truth, places).ravel()),
        place=codes(np.tile(np.arange(items), len(of_list))), offsets=np.arange(len(of_list) + 1) * items,
        annotators=numbered("annotator", annotators), annotator=codes(np.tile(np.arange(annotators), queries)),
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


def _items_in_order(truth: Numbers, places: Integers) -> Integers:
    """The item codes of each list, best first; lists go query by query."""
    queries, items = truth.shape
    best_first = np.argsort(-truth, axis=1) + np.arange(queries)[:, None] * items
    lists = np.repeat(best_first, len(places) // queries, axis=0)
    return np.take_along_axis(lists, np.argsort(places, axis=1), axis=1)
