"""Crowd-BT, Table 1: accuracy by the quality of annotators.

100 items, 400 pairs answered by 10 of 100 annotators each, who tell the true order with probability η from Beta(α, β).
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
from measure import FIRST_SEED, Key, Table, drawn, options, over_seeds, report

from crowdrank import BayesianCrowdBT, BradleyTerry, Comparisons, CrowdBT, SideInformation
from crowdrank.evaluation import accuracy
from crowdrank.models import Model
from crowdrank.simulation import Crowd, crowd_bt

COLUMNS = ("10,1", "5,1", "2,1", "2,2", "1,2", "1,5")
WITH_GOLD = ("2,2", "1,2", "1,5")
GOLD_PAIRS = 5
# So small a weight that the answers to gold pairs say how good an annotator is to start with, and nothing else.
ASIDE = 1e-9

PAPER = {
    "Bradley-Terry": (0.882, 0.890, 0.800, 0.542, 0.171, 0.144),
    "Crowd-BT, One": (0.899, 0.918, 0.869, 0.849, 0.109, 0.122),
    "Crowd-BT, Gold": (0.899, 0.917, 0.869, 0.850, 0.897, 0.878),
}
AIMS = {
    "Crowd-BT, One": (0.893, 0.889, 0.867),
    "Crowd-BT, Gold": (None, None, None, 0.842, 0.878, 0.892),
    "bayesian-crowd-bt": (0.902, 0.904, 0.896, 0.867, 0.899, 0.905),
}

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

MODELS: dict[str, Model] = {
    "Bradley-Terry": BradleyTerry(prior_scale=None, virtual_weight=0.5),
    "Crowd-BT, One": BY_THE_PAPER,
    "crowd-bt": CrowdBT(),
    "bayesian-crowd-bt": BayesianCrowdBT(),
}
SHOWS = MODELS | {"crowd": partial(crowd_bt, quality="beta(2,1)", seed=FIRST_SEED)}

NOTES = """
*One* and *Gold* are the paper's methods: λ = 0.5, no prior on η, alternating optimisation of scores and η, starting
from η = 1 or from each annotator's accuracy on 5 gold pairs. The gold pairs are not among the 400; every annotator
answers them, and these answers are used for nothing else. (s, η) and (−s, 1−η) have the same likelihood, so at (2,2)
the sign of *One* is random, and the table shows max(ACC, 1 − ACC). crowd-bt and bayesian-crowd-bt have their default
settings; in the last three columns the five gold pairs determine their sign, as for *Gold*.
"""


def trial(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    crowd = crowd_bt(quality=f"beta({column})", seed=seed)
    plain, (answered, gold) = crowd.judgments, with_gold(crowd, seed)
    votes, known = (answered, gold) if column in WITH_GOLD else (plain, None)
    bayesian = BayesianCrowdBT(draws=10, warmup=10, max_sweeps=40) if quick else MODELS["bayesian-crowd-bt"]
    scores = {
        "Bradley-Terry": MODELS["Bradley-Terry"].fit(plain).scores,
        "Crowd-BT, One": BY_THE_PAPER.fit(plain).scores,
        "Crowd-BT, Gold": replace(BY_THE_PAPER, start="gold").fit(answered, side_information=gold).scores,
        "crowd-bt": MODELS["crowd-bt"].fit(votes, side_information=known).scores,
        "bayesian-crowd-bt": bayesian.fit(votes, side_information=known).scores,
    }
    found = {(name, f"({column})"): accuracy(values, crowd.truth) for name, values in scores.items()}
    if column == "2,2":
        upright = max(found["Crowd-BT, One", "(2,2)"], 1 - found["Crowd-BT, One", "(2,2)"])
        found["Crowd-BT, One", "(2,2)"] = upright
    return found


def with_gold(crowd: Crowd, seed: int) -> tuple[Comparisons, SideInformation]:
    """The judgments with answers of every annotator to five more pairs, and these pairs as gold."""
    votes = crowd.judgments
    assert isinstance(votes, Comparisons)
    assert votes.annotator is not None
    rng = np.random.default_rng([seed, GOLD_PAIRS])
    better, worse = _unasked(votes, crowd.truth, rng)
    everyone = np.repeat(np.arange(len(votes.annotators)), GOLD_PAIRS)
    high, low = np.tile(better, len(votes.annotators)), np.tile(worse, len(votes.annotators))
    right = rng.random(len(everyone)) < crowd.annotators["quality"][everyone]
    more = replace(
        votes,
        left=np.concatenate((votes.left, high)).astype(np.int32),
        right=np.concatenate((votes.right, low)).astype(np.int32),
        outcome=np.concatenate((votes.outcome, np.where(right, 1, -1))).astype(np.int8),
        annotator=np.concatenate((votes.annotator, everyone)).astype(np.int32),
        weight=np.concatenate((votes.weights, np.full(len(everyone), ASIDE))),
    )
    names = votes.items.labels
    return more, SideInformation(gold=list(zip(names[better], names[worse], strict=True)), gold_weight=0)


def _unasked(votes: Comparisons, truth: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.triu_indices(len(truth), 1)
    asked = set(zip(votes.counts.first.tolist(), votes.counts.second.tolist(), strict=True))
    free = [n for n, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)) if pair not in asked]
    chosen = rng.choice(free, GOLD_PAIRS, replace=False)
    a, b = first[chosen], second[chosen]
    return np.where(truth[a] > truth[b], a, b), np.where(truth[a] > truth[b], b, a)


def by_cell(rows: Mapping[str, tuple[float | None, ...]]) -> dict[Key, float]:
    return {
        (row, f"({column})"): number
        for row, numbers in rows.items()
        for column, number in zip(COLUMNS, numbers, strict=False)
        if number is not None
    }


if __name__ == "__main__":
    told = options(__file__, __doc__)
    found = over_seeds(trial, COLUMNS[::3] if told.quick else COLUMNS, told)
    report(told, f"{NOTES}\n{drawn(told)}", [Table(found, by_cell(PAPER), by_cell(AIMS))])
