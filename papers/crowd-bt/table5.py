"""Crowd-BT, Table 5: number of votes to get close to the best accuracy, by the exploration weight γ.

From the pool of the authors' file (as for table3.py) or, without it, of the country_population judgments, if they are
found; figure5.py has the reading levels. Also from simulated crowds: 400 pairs × 10 votes with logistic labels.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Key, Table, data_folder, drawn, options, over_seeds, report
from pools import RANDOM, Curve, Grade, curve
from table3 import judgments

from crowdrank import Comparisons, Gold
from crowdrank.evaluation import accuracy, evaluate_scores
from crowdrank.online import CrowdBT
from crowdrank.simulation import crowd_bt

POLICIES = ("γ=0", "γ=1", "γ=5", "γ=20", RANDOM)
RATIOS = (98, 95, 90)
PAPER = {
    ("98 %", "γ=0"): 1850,
    ("98 %", "γ=5"): 1400,
    ("98 %", "γ=20"): 3650,
    ("98 %", RANDOM): 7250,
    ("95 %", "γ=0"): 700,
    ("95 %", "γ=5"): 850,
    ("95 %", "γ=20"): 2450,
    ("95 %", RANDOM): 5350,
    ("90 %", "γ=0"): 400,
    ("90 %", "γ=5"): 450,
    ("90 %", "γ=20"): 850,
    ("90 %", RANDOM): 2150,
}
SHARES = {key: number / 12_728 for key, number in PAPER.items()}
EVERY = 10
Files = tuple[Path | None, Path | None]

NOTES = """
The best accuracy is the highest of any policy after all votes. The table shows the first multiple of 10 votes at which
a share of it is reached, or all votes if it never is. Items are ranked by the means of online Crowd-BT, which begins
with N(0, 1) and Beta(10, 1). Random are the order of the policy *random* and the choice among equally good votes.
"""


@cache
def given(files: Files) -> tuple[str, Comparisons, Gold]:
    """Ties teach online Crowd-BT nothing, and are not asked for."""
    name, votes, gold = judgments(*files, known_folders=("country_population",))
    return name, votes.take(np.flatnonzero(votes.outcome != 0)), gold


def of_files(files: Files, seed: int, quick: bool) -> Mapping[Key, float]:
    _, votes, gold = given(files)
    return counted(votes, lambda scores: evaluate_scores(scores, votes.items, gold).accuracy, seed)


def of_crowd(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    size = {"items": 10, "annotators": 10, "pairs": 20, "votes": 5} if quick else {}
    crowd = crowd_bt(labels="logistic", seed=seed, **size)
    assert isinstance(crowd.judgments, Comparisons)
    return counted(crowd.judgments, lambda scores: accuracy(scores, crowd.truth), seed)


def counted(votes: Comparisons, grade: Grade, seed: int) -> dict[Key, float]:
    model = CrowdBT()
    curves = {
        policy: curve(policy, votes, model, model.start(votes.items, votes.annotators), grade, seed, EVERY)
        for policy in POLICIES
    }
    best = max(points[len(votes)] for points in curves.values())
    return {
        (f"{ratio} %", policy): first(points, best * ratio / 100)
        for ratio in RATIOS
        for policy, points in curves.items()
    }


def first(points: Curve, level: float) -> int:
    return next((votes for votes, found in points.items() if found >= level), max(points))


SHOWS = {
    "online crowd-bt": CrowdBT(),
    "crowd": partial(crowd_bt, labels="logistic", seed=FIRST_SEED),
    "votes of a small pool": partial(of_crowd, "simulated", FIRST_SEED, True),
}


def tables(name: str, found: Mapping[Key, list[float]], votes: int, paper: bool) -> Iterator[Table]:
    shares = {key: [value / votes for value in values] for key, values in found.items()}
    yield Table(found, PAPER if paper else {}, title=f"{name}: votes")
    yield Table(shares, SHARES if paper else {}, title=f"{name}: as a share of all {votes:,}")


if __name__ == "__main__":
    told = options(__file__, __doc__, "votes", "gold")
    made: list[Table] = []
    which = " The reading levels are not at hand, and nothing stands in for them: set CROWDRANK_DATA."
    if told.votes is not None or data_folder() is not None:
        name, votes, _ = given((told.votes, told.gold))
        which = "" if len(votes.items) in (490, 491) else f" {name} are not the passages of the paper."
        made += tables(name, over_seeds(of_files, [(told.votes, told.gold)], told), len(votes), paper=True)
    simulated = over_seeds(of_crowd, ["simulated"], told)
    made += tables("Simulated, logistic labels", simulated, 100 if told.quick else 4000, paper=False)
    report(told, f"{NOTES}\n{drawn(told)}{which}", made)
