"""Crowd-BT, Figure 3: the area under the curve by the quality of annotators and the exploration weight γ.

As Figure 2, from a pool of 400 pairs × 10 votes, with η from Beta(1, 1), Beta(2, 1), Beta(5, 1) or Beta(10, 1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Key, Table, drawn, options, over_seeds, report
from pools import RANDOM, area, beside, curve

from crowdrank import Comparisons
from crowdrank.evaluation import accuracy
from crowdrank.online import Beliefs, CrowdBT
from crowdrank.simulation import Crowd, crowd_bt

POLICIES = ("γ=0", "γ=1", "γ=5", "γ=10", RANDOM)
QUALITIES = ("2,1", "5,1", "10,1")
ONE, GOLD = "(a) prior Beta(10, 1)", "(b) prior estimated on 5 gold pairs"
GOLD_PAIRS = 5

NOTES = """
Normalised area under the curve: the mean accuracy of online Crowd-BT, with a point every 50 of 4,000 votes. In (b)
every annotator first answers 5 pairs whose order is known; with r correct answers they begin with Beta(1 + r, 1 + 5 −
r). These answers are used for nothing else and are not counted. The paper's figure has no numbers to compare with.
"""


def trial(column: tuple[str, str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    panel, quality, policy = column
    size = {"items": 10, "annotators": 10, "pairs": 20, "votes": 5} if quick else {}
    crowd = crowd_bt(quality=f"beta({quality})", seed=seed, **size)
    votes, model = crowd.judgments, CrowdBT()
    assert isinstance(votes, Comparisons)
    beliefs = model.start(votes.items, votes.annotators)
    if panel == GOLD:
        beliefs = after_gold(beliefs, crowd, seed)
    points = curve(policy, votes, model, beliefs, lambda scores: accuracy(scores, crowd.truth), seed)
    return {(policy, f"({quality})"): area(points)}


SHOWS = {
    "online crowd-bt": CrowdBT(),
    **{f"crowd of {quality}": partial(crowd_bt, quality=f"beta({quality})", seed=FIRST_SEED) for quality in QUALITIES},
    **{
        f"area of {policy}": partial(trial, (panel, QUALITIES[0], policy), FIRST_SEED, True)
        for panel in (ONE, GOLD)
        for policy in POLICIES
    },
}


def after_gold(beliefs: Beliefs, crowd: Crowd, seed: int) -> Beliefs:
    """What the answers to the gold pairs say of each annotator, a uniform prior before them."""
    right = np.random.default_rng([seed, GOLD_PAIRS]).binomial(GOLD_PAIRS, crowd.annotators["quality"]).astype(float)
    return beliefs.replace(annotator_columns={"alpha": 1 + right, "beta": 1 + GOLD_PAIRS - right})


if __name__ == "__main__":
    told = options(__file__, __doc__)
    tables = []
    for panel in (ONE, GOLD):
        print(panel, file=sys.stderr)
        columns = [(panel, quality, policy) for quality in QUALITIES for policy in POLICIES]
        found = over_seeds(trial, columns, told)
        tables += [Table(found, title=panel), beside(found, f"{panel}: less random")]
    report(told, f"{NOTES}\n{drawn(told)}", tables)
