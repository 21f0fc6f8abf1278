"""Crowd-BT, Table 4: Crowd-BT and TrueSkill, updated one judgment at a time.

Over 50 random orders of the reading levels (reading_difficulty, or the authors' file as for table3.py) or, without
them, of the country_population judgments, if they are found. Also on simulated crowds: 400 pairs × 10 votes, logistic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Key, Table, data_folder, drawn, options, over_seeds, report
from pools import Found, beside
from table3 import judgments

from crowdrank import Comparisons, Gold
from crowdrank.evaluation import accuracy, evaluate_scores
from crowdrank.online import CrowdBT, OnlineModel, TrueSkill
from crowdrank.simulation import crowd_bt

SKILL, CROWD = "TrueSkill", "Online-Crowd-BT"
MODELS: dict[str, OnlineModel] = {
    SKILL: TrueSkill(),
    f"{SKILL}, no ties, no drift": TrueSkill(tie_probability=0.0, drift=0.0),
    CROWD: CrowdBT(),
    f"{CROWD}, closed form": CrowdBT(moments="closed"),
}
SHOWS = MODELS | {"crowd": partial(crowd_bt, labels="logistic", seed=FIRST_SEED)}
PAPER = {SKILL: 0.6722, CROWD: 0.6822}
PAPER_DEVIATION = {SKILL: 0.002, CROWD: 0.002}
ORDERS = 50
SIMULATED, DEVIATION = "simulated", "standard deviation"

NOTES = """
Accuracy of the means after all judgments, in a random order, the same for every method. Online-Crowd-BT begins with
N(0, 1) and Beta(10, 1), with moments by numerical integration or, in *closed form*, by the paper's eq. 12-18. TrueSkill
has its authors' settings, or those for judgments without ties of items that do not change.
"""


def shuffled(votes: Comparisons, seed: int) -> Comparisons:
    order = np.random.default_rng([seed, 1]).permutation(len(votes))
    return replace(votes.take(order), time=None)


def means(votes: Comparisons) -> dict[str, np.ndarray]:
    people = [] if votes.annotator is None else votes.annotators
    return {name: model.fold(model.start(votes.items, people), votes).mean for name, model in MODELS.items()}


def trial(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    crowd = crowd_bt(labels="logistic", seed=seed)
    assert isinstance(crowd.judgments, Comparisons)
    scores = means(shuffled(crowd.judgments, seed))
    return {(name, column): accuracy(found, crowd.truth) for name, found in scores.items()}


def over_orders(votes: Comparisons, gold: Gold, orders: int, column: str) -> dict[Key, list[float]]:
    found: dict[Key, list[float]] = {(name, column): [] for name in MODELS}
    for seed in range(FIRST_SEED, FIRST_SEED + orders):
        for name, scores in means(shuffled(votes, seed)).items():
            found[name, column].append(evaluate_scores(scores, votes.items, gold).accuracy)
    return found


def scattered(found: Found) -> dict[Key, list[float]]:
    return {(name, f"{column}, {DEVIATION}"): [float(np.std(values))] for (name, column), values in found.items()}


if __name__ == "__main__":
    told = options(__file__, __doc__, "votes", "gold")
    found: dict[Key, list[float]] = {}
    paper: dict[Key, float] = {}
    which = "The reading levels are not at hand, and nothing stands in for them: set CROWDRANK_DATA."
    if told.votes is not None or data_folder() is not None:
        name, votes, gold = judgments(told.votes, told.gold)
        orders = 2 if told.quick else ORDERS
        found = over_orders(votes, gold, orders, name)
        found |= scattered(found)
        which = f"{name}, {votes!r}: {orders} orders of the same judgments."
        if len(votes.items) not in (490, 491):
            which += " These are not the passages of the paper: only the order of the methods can be compared."
        paper = {(row, name): number for row, number in PAPER.items()}
        paper |= {(row, f"{name}, {DEVIATION}"): number for row, number in PAPER_DEVIATION.items()}
    found |= over_seeds(trial, [SIMULATED], told)
    accuracies = {key: values for key, values in found.items() if DEVIATION not in key[1]}
    report(
        told,
        f"{NOTES}\n{which} *Simulated*: a crowd each. {drawn(told)}",
        [Table(found, paper), beside(accuracies, f"Less {SKILL}, in the same order", SKILL)],
    )
