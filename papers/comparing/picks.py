"""Comparing models: how often `crowdrank compare` recommends the model that generated the data."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import FIRST_SEED, Check, Key, Table, drawn, options, over_seeds, report, with_error

from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation import compare_models
from crowdrank.models import by_name
from crowdrank.simulation import Crowd, crowd_bt, factor_crowd

DECIDABLE = "4,000 votes: 50 items, 40 annotators, 400 pairs"
SIZES = {
    DECIDABLE: {"items": 50, "annotators": 40, "pairs": 400, "votes": 10},
    "1,000 votes: 25 items, 20 annotators, 200 pairs": {"items": 25, "annotators": 20, "pairs": 200, "votes": 5},
}
FEW = {"items": 15, "annotators": 10, "pairs": 60, "votes": 4}
CROWDS: dict[str, Callable[[int, dict[str, int]], Crowd]] = {
    "bradley-terry": lambda seed, sizes: crowd_bt(**sizes, quality="1", labels="logistic", seed=seed),
    "crowd-bt": lambda seed, sizes: crowd_bt(**sizes, quality="beta(2,1)", labels="logistic", seed=seed),
    "factor-bt": lambda seed, sizes: factor_crowd(**sizes, seed=seed),
}
ENTERED = ("bradley-terry", "thurstone", "elo", "crowd-bt", "em-elo", "variance-bt", "mpm", "factor-bt")
SHOWS = {name: by_name(name)() for name in ENTERED} | {
    f"crowd of {name}": partial(draw, FIRST_SEED, FEW) for name, draw in CROWDS.items()
}
OTHERS = "another"
AIM = 0.9
COUNT_FOR = {name: (name,) for name in CROWDS} | {"bradley-terry": ("bradley-terry", "crowd-bt")}  # which contains it
TITLES = {"bradley-terry": "bradley-terry, or crowd-bt that contains it, is recommended"}

NOTES = """
Columns are the models that crowds were simulated from, rows the recommended models, as a share of the crowds. For
crowd-bt the quality of annotators is drawn from Beta(2, 1), for factor-bt their attention and feature weights as in
its paper, with its two features; true scores of the first two have a standard deviation of 2. All models that predict
probabilities are compared, except those that sample. At the larger size the three models can be distinguished; the
target is for this size. crowd-bt contains Bradley-Terry as the case in which all annotators are alike, and as the
default it is recommended unless another model is clearly better, so for crowds of bradley-terry the target counts
either of the two.
"""


def trial(column: tuple[str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    size, drawn_from = column
    votes = CROWDS[drawn_from](seed, FEW if quick else SIZES[size]).judgments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        found = compare_models(votes, list(CROWDS), folds=2) if quick else compare_models(votes, ENTERED)
    taken = found.recommendation.model
    told = taken if taken in CROWDS else OTHERS
    return {(row, drawn_from): float(row == told) for row in (*CROWDS, OTHERS)}


def aims(table: Table) -> list[Check]:
    checks = []
    for model, counts in COUNT_FOR.items():
        shares = [values for row in counts if (values := table.found.get((row, model)))]
        if shares:
            values = [sum(of_trial) for of_trial in zip(*shares, strict=True)]
            title = TITLES.get(model, f"{model} is recommended")
            met = sum(values) >= AIM * len(values)
            checks.append(Check(title, f"at least {AIM:.0%}", with_error(values), met))
    return checks


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=20)
    tables = [
        Table(over_seeds(trial, [(size, drawn_from) for drawn_from in CROWDS], told), title=size) for size in SIZES
    ]
    report(told, f"{NOTES}\n{drawn(told)}", tables, aims(tables[0]))
