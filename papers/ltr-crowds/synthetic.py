"""Learning to rank from crowds, Figures 9 to 12: functions and expertise on the paper's synthetic data.

100 queries of 15 points for training, 500 for testing; G annotators. Three crowds: distances drawn by eq. 56, θ in
[-2.5, -.5]; Mallows lists with the same θ; and a hard crowd, Mallows lists with θ in [-.4, -.02].
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from learners import (
    DIRECT,
    HARD,
    METHODS,
    OURS,
    TOLD_SHARE,
    TRUTH,
    WEIGHING,
    WITH_SIDE,
    Fine,
    Lesson,
    Paired,
    Taught,
    ahead,
    at_least,
    at_most,
    less,
    measured,
    synthetic,
)
from measure import FIRST_SEED, Check, Key, Table, drawn, options, over_seeds, report

from crowdrank.data import SideInformation
from crowdrank.engines import ShardedData
from crowdrank.ltr import CrowdRanker, Linear
from crowdrank.ltr.em import EM, EStep, ListPosterior
from crowdrank.ltr.training_set import build_training_set
from crowdrank.simulation import list_crowd

CROWDS: dict[str, dict[str, Any]] = {
    "eq. 56": {"labels": "distance"},
    "Mallows": {"labels": "mallows"},
    "hard": {"labels": "mallows", "expertise": HARD, "first_expertise": None},
}
SIZES = {"eq. 56": (5, 10, 15), "Mallows": (10,), "hard": (5, 10, 15)}
"""Numbers of annotators, G."""
AT_3, AT_5, LINEAR, EXPERTISE = "NDCG@3", "NDCG@5", "NDCG@3, linear gain", "Expertise, NDCG@5"
GAP = "Kendall distance"
STEPS = (1, 2, 3, 5, 10)
PAPERS_SAMPLER = "ltr-crowds, the paper's sampler"
SHOWS = {
    **{method: Taught(method=method) for method in METHODS},
    PAPERS_SAMPLER: Taught(CrowdRanker(sampler="paper", labels="map", held_out=0)),
    **{f"crowd, {name}": partial(list_crowd, **settings, seed=FIRST_SEED) for name, settings in CROWDS.items()},
}

NOTES = f"""
The i-th best of 15 points has the grade 16 − i; NDCG has the usual gain 2^grade − 1 but where it says linear.
Expertise is the paper's measure: NDCG@5 of annotators in the order of the estimated θ, the best of G having the grade
G; lregma, pooled and borda tell none. S1 knows the true lists of {TOLD_SHARE:.0%} of the queries, S2 the θ of the
best annotator to within a quarter, S3 that this one is better than all others. ltr-crowds is the library's at its
defaults, labels map or expected as a fifth of the queries says that is held out for it; S1 to S3 learn from the same
labels. truth is ListMLE on the true lists. Figure 12 is the mean Kendall distance between the likeliest list of a
query and the true one, in queries whose truth nobody is told, iteration by iteration, with labels map; the paper's
sampler takes 500 random transpositions from a random list.

| the paper's claim | ours |
|---|---|
"""


def trial(column: tuple[str, int], seed: int, quick: bool) -> Mapping[Key, float]:
    name, annotators = column
    lesson = synthetic(seed, annotators=annotators, **CROWDS[name], **_small(quick))
    where, found = f"{name}, G={annotators}", {}
    for method, function in lesson.fits(METHODS).items():
        found[f"{AT_3}: {method}", where] = lesson.ndcg(function, 3)
        found[f"{AT_5}: {method}", where] = lesson.ndcg(function, 5)
        found[f"{LINEAR}: {method}", where] = lesson.ndcg(function, 3, "linear")
        if method in WEIGHING:
            found[f"{EXPERTISE}: {method}", where] = lesson.told_apart(function)
    return found


def _small(quick: bool) -> dict[str, Any]:
    return {"queries": 8, "items": 6, "test_queries": 20} if quick else {}


@dataclass(frozen=True)
class Kept(EStep):
    """Keeps what was found in each step."""

    steps: list[list[ListPosterior]] = field(default_factory=list)

    def posteriors(self, held: ShardedData, scores: Any, theta: Any) -> tuple[ShardedData, list[ListPosterior]]:
        held, found = super().posteriors(held, scores, theta)
        self.steps.append(found)
        return held, found


def convergence(name: str, seed: int, quick: bool) -> Mapping[Key, float]:
    """Figure 12."""
    lesson, found = synthetic(seed, **CROWDS[name], **_small(quick)), {}
    for method in (OURS, *WITH_SIDE, PAPERS_SAMPLER):
        for step, distance in zip(STEPS, distances(lesson, method), strict=True):
            found[f"{GAP}, {name}: {method}", f"iteration {step}"] = distance
    return found


def distances(lesson: Lesson, method: str) -> Iterator[float]:
    gold = lesson.gold(TOLD_SHARE) if method == "ltrma-s1" else None
    taught = build_training_set(lesson.lists, lesson.features, gold, None)
    known = lesson.side_information.get(method, SideInformation())
    encoded = known.encode_annotators(lesson.lists.annotators, larger_is_better=False)
    kept = Kept("paper" if method == PAPERS_SAMPLER else "auto")
    EM(Linear(), kept, "map", 1.0, max(STEPS), 0.0, encoded).run(taught.crowd, taught.features)
    queries = taught.crowd.queries
    hidden = range(round(TOLD_SHARE * len(queries)), len(queries))
    for step in STEPS:
        best = kept.steps[min(step, len(kept.steps)) - 1]  # it ends where nothing moves
        yield float(np.mean([far(best[q].best, lesson.truth[queries[q].start :]) for q in hidden]))


def far(order: np.ndarray, truth: np.ndarray) -> float:
    """Pairs that an order turns round."""
    later = np.triu(np.ones((len(order),) * 2, bool), 1)
    value = truth[order]
    return float(np.sum((value[:, None] < value) & later))


def tables(found: Mapping[Key, list[float]], curves: Mapping[Key, list[float]]) -> Iterator[Table]:
    for figure, measure in (("Figure 9", AT_3), ("Figure 10", AT_5), ("Figure 11", EXPERTISE), ("Beside", LINEAR)):
        cells = measured(found, measure)
        others = dict.fromkeys(row for row, _ in cells if row != OURS)
        yield Fine(cells, title=f"{figure}: {measure}")
        yield Paired(less(cells, OURS, list(others)), title=f"{figure}: {measure}, ltr-crowds less the others")
    for name in CROWDS:
        if cells := measured(curves, f"{GAP}, {name}"):
            yield Fine(cells, title=f"Figure 12: {GAP} by iteration, {name}, G=10")


def claims(found: Mapping[Key, list[float]]) -> str:
    at_3, expertise = (list(ahead(measured(found, measure))) for measure in (AT_3, EXPERTISE))
    d, lregma = (next(line for line in at_3 if line.startswith(name)) for name in (DIRECT, "lregma"))
    with_side = ahead(measured(found, EXPERTISE), level=0.05)
    sides = "; ".join(line for line in with_side if line[:8] in WITH_SIDE)
    told = next(line for line in expertise if line.startswith(DIRECT))
    return "\n".join(
        (
            f"| Fig. 9: ltr-crowds beats LTRMA-D and LRegMA (p < .01) for nearly all G | {d}; {lregma} |",
            f"| Fig. 11: it tells expertise better than LTRMA-D (p < .01) | {told} |",
            f"| Fig. 11: side information helps (p < .05) | ltr-crowds (p < .05) beside {sides} |",
        )
    )


def checks(found: Mapping[Key, list[float]]) -> Iterator[Check]:
    at_3, linear = measured(found, AT_3), measured(found, LINEAR)
    for name, aim in (("eq. 56", 0.998), ("hard", 0.9965)):
        where = f"{name}, G=10"
        if (OURS, where) in at_3:
            yield at_least(f"{AT_3}, {where}", aim, at_3[OURS, where])
    behind = less(at_3, TRUTH, [OURS])
    yield at_most(f"{AT_3}, eq. 56, G=10, behind {TRUTH}", 0.0005, behind[f"{TRUTH} less {OURS}", "eq. 56, G=10"])
    for cells, measure in ((at_3, AT_3), (linear, LINEAR)):
        above = less(cells, OURS, [DIRECT])
        yield at_least(f"{measure}, hard, G=10, above {DIRECT}", 0.002, above[f"{OURS} less {DIRECT}", "hard, G=10"])


def run(told: Namespace) -> None:
    columns = [(name, size) for name in CROWDS for size in ((10,) if told.quick else SIZES[name])]
    found = over_seeds(trial, columns, told)
    curves = over_seeds(convergence, list(CROWDS)[1:], told)
    notes = f"{NOTES.rstrip()}\n{claims(found)}\n\n{drawn(told)}"
    report(told, notes, list(tables(found, curves)), list(checks(found)))


if __name__ == "__main__":
    run(options(__file__, __doc__, trials=10))
