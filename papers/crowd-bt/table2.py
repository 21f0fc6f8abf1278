"""Crowd-BT, Table 2: few pairs with many votes or many pairs with few, and the regularisation λ.

100 items, 100 annotators with quality η from Beta(2, 1), 4,000 votes: 4000 pairs × 1, 400 × 10, 200 × 20.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Key, Table, drawn, options, over_seeds, report

from crowdrank import BayesianCrowdBT, BradleyTerry, CrowdBT, Ranking
from crowdrank.errors import DataWarning
from crowdrank.evaluation import accuracy
from crowdrank.simulation import Crowd, crowd_bt

SHAPES = ((4000, 1), (400, 10), (200, 20))
WEIGHTS = (0.1, 0.5, 1.0)
ONE, SEVERAL, BAYESIAN = "Crowd-BT", "Crowd-BT, several starts", "bayesian-crowd-bt"
ACC, QUALITY = "ACC", "correlation of quality"
BY_THE_PAPER = CrowdBT(
    estimation="joint",
    prior_scale=None,
    virtual_weight=0.5,
    quality_prior=None,
    ties="drop",
    start="one",
    solver="alternating",
    max_steps=1000,
)

PAPER = {
    f"Bradley-Terry, {ACC}": (0.849, 0.849, 0.849, 0.803, 0.804, 0.804, 0.745, 0.748, 0.749),
    f"{ONE}, {ACC}": (0.955, 0.946, 0.936, 0.893, 0.894, 0.883, 0.793, 0.803, 0.810),
    f"{ONE}, {QUALITY}": (0.956, 0.950, 0.945, 0.957, 0.950, 0.947, 0.972, 0.970, 0.967),
}
AIMS = {
    (f"{ONE}, {ACC}", "4000×1, λ=0.1"): 0.959,
    (f"{ONE}, {ACC}", "400×10, λ=0.5"): 0.876,
    (f"{ONE}, {ACC}", "200×20, λ=1"): 0.803,
}
AIMS_WITHOUT_WEIGHT = {
    (f"{BAYESIAN}, {ACC}", "4000×1"): 0.962,
    (f"{BAYESIAN}, {ACC}", "400×10"): 0.899,
    (f"{BAYESIAN}, {ACC}", "200×20"): 0.827,
}
SEVERAL_STARTS = replace(BY_THE_PAPER, start="several", solver="newton")
SHOWS = {
    "Bradley-Terry": BradleyTerry(prior_scale=None, virtual_weight=0.5),
    ONE: BY_THE_PAPER,
    SEVERAL: SEVERAL_STARTS,
    BAYESIAN: BayesianCrowdBT(),
    "crowd": partial(crowd_bt, quality="beta(2,1)", seed=FIRST_SEED),
}

NOTES = """
Crowd-BT is the paper's method: no prior on η, alternating optimisation of scores and η, starting from η = 1. Its
objective has local optima, mostly at λ = 0.1: *several starts* also starts from other points and keeps the highest
objective. bayesian-crowd-bt has no λ.
"""


def column_of(shape: tuple[int, int], weight: float | None = None) -> str:
    return f"{shape[0]}×{shape[1]}" + ("" if weight is None else f", λ={weight:g}")


def trial(shape: tuple[int, int], seed: int, quick: bool) -> Mapping[Key, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # 200 pairs leave some of the 100 items apart
        crowd = crowd_bt(pairs=shape[0], votes=shape[1], quality="beta(2,1)", seed=seed)
        found: dict[Key, float] = {}
        for weight in WEIGHTS:
            column = column_of(shape, weight)
            plain = BradleyTerry(prior_scale=None, virtual_weight=weight).fit(crowd.judgments)
            one = replace(BY_THE_PAPER, virtual_weight=weight)
            best = replace(SEVERAL_STARTS, virtual_weight=weight)
            found[f"Bradley-Terry, {ACC}", column] = accuracy(plain.scores, crowd.truth)
            found |= graded(ONE, column, one.fit(crowd.judgments), crowd)
            found |= graded(SEVERAL, column, best.fit(crowd.judgments), crowd)
        bayesian = BayesianCrowdBT(draws=10, warmup=10, max_sweeps=40) if quick else BayesianCrowdBT()
        return found | graded(BAYESIAN, column_of(shape), bayesian.fit(crowd.judgments), crowd)


def graded(name: str, column: str, ranking: Ranking, crowd: Crowd) -> dict[Key, float]:
    estimated, true = ranking.annotators["quality"], crowd.annotators["quality"]
    return {
        (f"{name}, {ACC}", column): accuracy(ranking.scores, crowd.truth),
        (f"{name}, {QUALITY}", column): float(np.corrcoef(estimated, true)[0, 1]),
    }


def tables(found: Mapping[Key, list[float]]) -> list[Table]:
    """With λ, and without."""
    columns = [column_of(shape, weight) for shape in SHAPES for weight in WEIGHTS]
    paper = {
        (row, column): number for row, numbers in PAPER.items() for column, number in zip(columns, numbers, strict=True)
    }
    well_known = {(f"{ONE}, {QUALITY}", column): 0.935 for column in columns}
    better_known = {(f"{BAYESIAN}, {QUALITY}", column_of(shape)): 0.95 for shape in SHAPES}
    by_weight = {key: values for key, values in found.items() if key[1] in columns}
    without = {key: values for key, values in found.items() if key[1] not in columns}
    return [
        Table(by_weight, paper, AIMS | well_known, "By λ"),
        Table(without, {}, AIMS_WITHOUT_WEIGHT | better_known, "Without λ"),
    ]


if __name__ == "__main__":
    told = options(__file__, __doc__)
    found = over_seeds(trial, SHAPES[-1:] if told.quick else SHAPES, told)
    report(told, f"{NOTES}\n{drawn(told)}", tables(found))
