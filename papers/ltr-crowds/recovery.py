"""Learning to rank from crowds: recovery of expertise from whole, partial, few and top-k lists.

Mallows lists of 10 annotators on 100 queries of 15 items, unless stated otherwise.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learners import (
    DIRECT,
    HARD,
    OURS,
    PEAKED,
    TRUTH,
    Fine,
    Lesson,
    Paired,
    Taught,
    at_least,
    at_most,
    less,
    measured,
    noisy,
    synthetic,
)
from measure import Check, Key, Table, drawn, options, over_seeds, report

from crowdrank.ltr import CrowdRanker

RANGES = {"θ in [-2.5, -.5]": PEAKED, "θ in [-.4, -.02]": HARD}
FLOOR, PRINTED = "true lists known", "as in the paper"
EXPECTED, MAP = "labels expected", "labels map"
NO_PRIOR, ONE, TWO = (f"prior_lists={lists}" for lists in (0, 1, 2))
AS_PRINTED = CrowdRanker(sampler="paper", labels="map", prior_lists=0, held_out=0)
"""500 random transpositions from a random list, the likeliest list, and no prior."""
SETTINGS = {
    OURS: CrowdRanker(),
    EXPECTED: CrowdRanker(labels="expected", held_out=0),
    MAP: CrowdRanker(labels="map", held_out=0),
    PRINTED: AS_PRINTED,
    NO_PRIOR: CrowdRanker(prior_lists=0, held_out=0),
    TWO: CrowdRanker(prior_lists=2, held_out=0),
    ONE: CrowdRanker(held_out=0),
}
SHOWS = {name: Taught(settings) for name, settings in SETTINGS.items()} | {DIRECT: Taught(method=DIRECT)}
POINTS, OWN = "points", "noisy truth"
ERROR, NDCG = "RMSE of θ", "NDCG@5"
WHOLE, PARTIAL, SPARSE, TOP = "whole lists", "partial lists", "a sparse crowd", "the first 10 of 60"

NOTES = """
*ltr-crowds* has default settings; *prior_lists=1* has too, except that no query is held out (labels expected). *As in
the paper* uses its sampler of 500 random transpositions, trains on the most likely list and has no prior. *True lists
known* estimates θ from the true lists, without a prior. Partial lists: each annotator sees 4 of 10 items. A sparse
crowd: 24 annotators, 3 per list. First 10 of 60: lists contain the first ten items. *points* are the paper's features,
which nearly determine the true list; *noisy truth* follows the model: 6 features, true lists drawn from Plackett-Luce
with scores of spread 2, evaluated against the scores. NDCG@5 is of 500 other queries; the i-th best of
n has the grade n + 1 − i, of 60 the first ten 10 to 1, with gain 2^grade − 1. θ of top-k lists is not compared: they
are the first ten of whole Mallows lists, not draws of Definition 1's distance.
"""


def whole(where: str, seed: int, quick: bool) -> Mapping[Key, float]:
    lesson = synthetic(seed, expertise=RANGES[where], **_lists(quick))
    found = {f"{WHOLE}, {ERROR}: {name}": lesson.error(fit(lesson, name)) for name in (OURS, EXPECTED, MAP, PRINTED)}
    return {(row, where): v for row, v in (found | {f"{WHOLE}, {ERROR}: {FLOOR}": lesson.error(floor(lesson))}).items()}


def _lists(quick: bool) -> dict[str, Any]:
    told = {"labels": "mallows", "first_expertise": None}
    return told | ({"queries": 8, "items": 6, "test_queries": 10} if quick else {"test_queries": 500})


def fit(lesson: Lesson, name: str, top: int | None = None) -> Any:
    if name in (TRUTH, DIRECT):
        return lesson.fit(name, CrowdRanker(top=top))
    return lesson.fit(OURS, replace(SETTINGS[name], top=top))


def floor(lesson: Lesson) -> Any:
    return CrowdRanker(prior_lists=0, held_out=0).fit(lesson.lists, lesson.features, lesson.gold())


def sparse(column: tuple[str, int], seed: int, quick: bool) -> Mapping[Key, float]:
    where, queries = column
    told = _lists(quick) | {"queries": 24 if quick else queries}
    lesson = synthetic(seed, expertise=RANGES[where], annotators=24, annotators_per_query=3, **told)
    functions = {name: fit(lesson, name) for name in (ONE, TWO, NO_PRIOR, PRINTED)} | {FLOOR: floor(lesson)}
    return {
        (f"{SPARSE}, {ERROR}: {name}", f"{queries} queries, {where}"): lesson.error(found)
        for name, found in functions.items()
    }


def some_items(column: tuple[str, str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    """Partial lists, or the first ten."""
    what, kind, where = column
    told: dict[str, Any] = {"expertise": RANGES[where], "queries": 8 if quick else 100}
    told |= {"items": 10, "shown": 4} if what == PARTIAL else {"items": 12 if quick else 60, "top": 10, "best": 10}
    told |= {"test_queries": 20 if quick else 500}
    points = kind == POINTS
    lesson = synthetic(seed, labels="mallows", first_expertise=None, **told) if points else noisy(seed, **told)
    top, found = told.get("top"), {}
    for name in (OURS, *((EXPECTED, MAP, PRINTED) if what == PARTIAL else ()), DIRECT, TRUTH):
        function = fit(lesson, name, top)
        found[f"{what}, {NDCG}: {name}", f"{kind}, {where}"] = lesson.ndcg(function, 5)
        if what == PARTIAL and name != TRUTH:
            found[f"{what}, {ERROR}: {name}", f"{kind}, {where}"] = lesson.error(function)
    return found


def tables(found: Mapping[Key, list[float]]) -> Iterator[Table]:
    for measure in (
        f"{WHOLE}, {ERROR}",
        f"{SPARSE}, {ERROR}",
        f"{PARTIAL}, {NDCG}",
        f"{PARTIAL}, {ERROR}",
        f"{TOP}, {NDCG}",
    ):
        cells = measured(found, measure)
        title = measure[0].upper() + measure[1:]
        yield Fine(cells, title=title)
        first, *others = dict.fromkeys(row for row, _ in cells)
        yield Paired(less(cells, first, others), title=f"{title}: {first} less the others")


def checks(found: Mapping[Key, list[float]]) -> Iterator[Check]:
    aims = {WHOLE: (0.08, 0.02), SPARSE: (0.15, 0.15)}
    for what, limits in aims.items():
        cells = measured(found, f"{what}, {ERROR}")
        for (where, _), aim in zip(RANGES.items(), limits, strict=True):
            for (name, column), values in cells.items():
                if name in (OURS, ONE) and column.endswith(where):
                    yield at_most(f"{ERROR}, {what}, {column}", aim, values)
    for what, aim in ((PARTIAL, 0.91), (TOP, 0.965)):
        for (name, column), values in measured(found, f"{what}, {NDCG}").items():
            if name == OURS:
                yield at_least(f"{NDCG}, {what}, {column}", aim, values)


def run(told: Namespace) -> None:
    ranges = list(RANGES)[1:] if told.quick else list(RANGES)
    hard, kinds = list(RANGES)[1], (POINTS,) if told.quick else (POINTS, OWN)
    found = over_seeds(whole, ranges, told)
    sizes = (100,) if told.quick else (100, 40)
    found |= over_seeds(sparse, [(where, queries) for queries in sizes for where in ranges], told)
    found |= over_seeds(some_items, [(PARTIAL, kind, where) for kind in kinds for where in ranges], told)
    found |= over_seeds(some_items, [(TOP, kind, hard) for kind in kinds], told)
    report(told, f"{NOTES}\n{drawn(told)}", list(tables(found)), list(checks(found)))


if __name__ == "__main__":
    run(options(__file__, __doc__, trials=10))
