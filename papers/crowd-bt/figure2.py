"""Crowd-BT, Figure 2: accuracy by number of votes, for several exploration weights γ.

100 items, 100 annotators with quality η from Beta(2, 1), and a pool of 400 pairs answered by 10 of them each; each
vote can be requested once. (active.py lets policies ask any annotator about any pair.)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Check, Key, Table, drawn, options, over_seeds, report
from pools import AREA, RANDOM, Curve, Found, area, beside, curve, differences, draw_curves, signed

from crowdrank import Comparisons
from crowdrank.evaluation import accuracy
from crowdrank.online import CrowdBT
from crowdrank.simulation import crowd_bt

POLICIES = ("γ=0", "γ=1", "γ=5", "γ=10", "γ=30", "γ=30, halving", RANDOM)
POOL, NARROW = "Prior Beta(10, 1)", "Prior Beta(2, 1)"
MODELS = {POOL: CrowdBT(), NARROW: CrowdBT(quality_prior=(2.0, 1.0))}
COMPARED = {POOL: POLICIES, NARROW: ("γ=0", "γ=1", RANDOM)}
SHOWN = ("250", "500", "1000", "1500", "2000", "3000", "4000", AREA)
AIM = 0.02

NOTES = """
Items are ranked by the means of online Crowd-BT, as in the paper: the prior of scores is N(0, 1) (the paper does
not say), moments are computed by numerical integration. AUC is the mean accuracy over the curve, with a point every 50
votes. *Halving* begins with γ = 30 and halves it after every quarter of the votes. In the end all votes of a pool have
been requested, so its curves meet. Differences are paired by trial, on the same crowds.
"""


def trial(column: tuple[str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    panel, policy = column
    points = from_pool(panel, policy, seed, quick)
    return {(policy, str(votes)): found for votes, found in points.items()} | {(policy, AREA): area(points)}


def from_pool(panel: str, policy: str, seed: int, quick: bool) -> Curve:
    crowd = crowd_bt(items=10, annotators=10, pairs=20, votes=5, seed=seed) if quick else crowd_bt(seed=seed)
    votes, model = crowd.judgments, MODELS[panel]
    assert isinstance(votes, Comparisons)
    beliefs = model.start(votes.items, votes.annotators)
    return curve(policy, votes, model, beliefs, lambda scores: accuracy(scores, crowd.truth), seed)


SHOWS = {
    **MODELS,
    "crowd": partial(crowd_bt, seed=FIRST_SEED),
    **{f"curve of {policy}": partial(from_pool, POOL, policy, FIRST_SEED, True) for policy in POLICIES},
}


def tables(title: str, found: Found) -> list[Table]:
    shown = {(row, column): values for (row, column), values in found.items() if column in SHOWN}
    return [Table(shown, title=title), beside(shown, f"{title}: less random")]


def checks(panels: Mapping[str, Found]) -> Iterator[Check]:
    for panel, found in panels.items():
        ahead = differences(found, "γ=1", AREA)
        yield Check(
            f"{panel}: {AREA} of γ=1 less that of random",
            "at least .020",
            signed(ahead),
            round(float(np.mean(ahead)), 3) >= AIM,
        )


if __name__ == "__main__":
    told = options(__file__, __doc__)
    panels: dict[str, Found] = {}
    for panel in MODELS:
        print(panel, file=sys.stderr)
        panels[panel] = over_seeds(trial, [(panel, policy) for policy in COMPARED[panel]], told)
    made = [table for panel, found in panels.items() for table in tables(panel, found)]
    report(told, f"{NOTES}\n{drawn(told)}", made, list(checks({panel: panels[panel] for panel in (POOL, NARROW)})))
    if told.out is not None:
        draw_curves(panels, POLICIES, told.out / "figure2.svg")
