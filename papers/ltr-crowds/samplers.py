"""Learning to rank from crowds: Gibbs sampling and the paper's sampler compared with exact sums.

20 queries of n items, 10 annotators with Mallows lists. *points* are the paper's features, which nearly determine the
true list; in *noisy truth* the true list is drawn from Plackett-Luce, so the features do not determine it.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from learners import HARD, PEAKED, Fine, Taught, Vector, at_least, at_most, measured, noisy, synthetic
from measure import Check, Key, Table, drawn, options, over_seeds, report

from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.engines import LOCAL
from crowdrank.ltr import CrowdRanker, Linear
from crowdrank.ltr.em import EM, EStep, Sampler, distribute
from crowdrank.ltr.training_set import build_training_set

CROWDS = {
    "points, θ in [-2.5, -.5]": (synthetic, PEAKED, 0.05),
    "noisy truth, θ in [-2.5, -.5]": (noisy, PEAKED, 0.05),
    "noisy truth, θ in [-.4, -.02]": (noisy, HARD, 0.02),
}
"""How queries are made, θ, and how near θ should come."""
SIZES = (10, 15)
ONCE, WHOLE = "RMSE of θ from exact, one step", "RMSE of θ from exact, all of EM"
LIKELIEST = "Likeliest lists found"
OTHERS: tuple[Sampler, ...] = ("gibbs", "paper")
SHOWS = {way: Taught(CrowdRanker(sampler=way, labels="expected", held_out=0)) for way in ("exact", *OTHERS)}

NOTES = """
One step: all samplers start from the scores and θ at the end of exact EM, and compute the next θ and the most likely
list. All of EM: each runs its own EM from the start, with at most 15 iterations and labels expected. By default,
crowdrank uses exact sums up to 10 items and Gibbs sampling beyond. The paper's sampler makes 500 random transpositions
from a random list.
"""


def trial(column: tuple[str, int], seed: int, quick: bool) -> Mapping[Key, float]:
    crowd, size = column
    make, expertise, _ = CROWDS[crowd]
    told = {"queries": 5 if quick else 20, "items": size, "expertise": expertise, "test_queries": 1}
    if make is synthetic:
        told |= {"labels": "mallows", "first_expertise": None}
    lesson = make(seed, **told)
    taught = build_training_set(lesson.lists, lesson.features, None, None)
    ways: dict[Sampler, EM] = {
        way: EM(Linear(), EStep(way), "expected", 1.0, 15, 0.02, NO_SIDE_INFORMATION) for way in ("exact", *OTHERS)
    }
    learnt = {way: em.run(taught.crowd, taught.features) for way, em in ways.items()}
    end = learnt["exact"]
    scores = taught.crowd.items.centre(end.scorer.scores(taught.features))
    held = distribute(taught.crowd.queries, LOCAL)
    lists = {way: em.e_step.posteriors(held, scores, end.theta)[1] for way, em in ways.items()}
    theta = {way: em.estimate_theta(taught.crowd, lists[way]) for way, em in ways.items()}
    where, cells = f"n={size}, {crowd}", {}
    for way in OTHERS:
        same = [np.array_equal(a.best, b.best) for a, b in zip(lists[way], lists["exact"], strict=True)]
        cells[f"{ONCE}: {way}", where] = apart(theta[way], theta["exact"])
        cells[f"{WHOLE}: {way}", where] = apart(learnt[way].theta, end.theta)
        cells[f"{LIKELIEST}: {way}", where] = float(np.mean(same))
    return cells


def apart(a: Vector, b: Vector) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


def checks(found: Mapping[Key, list[float]]) -> Iterator[Check]:
    for (row, column), values in found.items():
        measure, way = row.split(": ")
        if way == "gibbs":
            aim = next(near for crowd, (_, _, near) in CROWDS.items() if column.endswith(crowd))
            what = f"{measure}, {column}"
            yield at_least(what, 0.95, values) if measure == LIKELIEST else at_most(what, aim, values)


def run(told: Namespace) -> None:
    found = over_seeds(trial, [(crowd, size) for size in ((6,) if told.quick else SIZES) for crowd in CROWDS], told)
    tables: list[Table] = [Fine(measured(found, measure), title=measure) for measure in (ONCE, WHOLE, LIKELIEST)]
    report(told, f"{NOTES}\n{drawn(told)}", tables, list(checks(found)))


if __name__ == "__main__":
    run(options(__file__, __doc__, trials=10))
