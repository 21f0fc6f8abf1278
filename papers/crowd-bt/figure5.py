"""Crowd-BT, Figure 5 and Table 5 on the paper's own data: votes on reading levels, requested one at a time.

Which of two passages is harder to read: 490 passages, 624 annotators, 12,726 votes of the folder reading_difficulty.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Key, Table, data_folder, drawn, options, over_seeds, report
from pools import RANDOM, Curve, curve, draw_curves
from table3 import judgments
from table5 import RATIOS, SHARES, first, of_crowd

from crowdrank import Comparisons, Gold
from crowdrank.evaluation import evaluate_scores
from crowdrank.online import CrowdBT

POLICIES = ("γ=0", "γ=1", "γ=5", "γ=20", "γ=50", RANDOM)
SHOWN = (250, 500, 1000, 2000, 3000, 4500)
EVERY = 50
FOLDER = "reading_difficulty"
SHOWS = {"online crowd-bt": CrowdBT(), "votes of a small pool": partial(of_crowd, "simulated", FIRST_SEED, True)}

NOTES = """
Accuracy of the means of online Crowd-BT, which begins with N(0, 1) and Beta(10, 1), after every 50 votes. The best
accuracy is the highest of any policy after all votes (.6843 in the paper). Table 5 is the share of all votes after
which a percentage of it is first reached; the paper's is of 12,728. Figure 5 has no numbers. A single run per policy:
only *random*, and the choice among equally good votes, depend on chance.
"""


@cache
def passages(quick: bool) -> tuple[Comparisons, Gold]:
    _, votes, gold = judgments(None, None, known_folders=(FOLDER,))
    return votes.take(np.arange(300)) if quick else votes, gold


def trial(policy: str, seed: int, quick: bool) -> Mapping[Key, float]:
    votes, gold = passages(quick)
    model = CrowdBT()
    start = model.start(votes.items, votes.annotators)
    points = curve(policy, votes, model, start, lambda s: evaluate_scores(s, votes.items, gold).accuracy, seed, EVERY)
    return {(policy, str(count)): value for count, value in points.items()}


def table5(curves: Mapping[str, Curve]) -> dict[Key, list[float]]:
    """Shares of all votes after which a percentage of the best accuracy is first reached."""
    total = max(next(iter(curves.values())))
    best = max(points[total] for points in curves.values())
    return {
        (f"{ratio} %", policy): [first(points, best * ratio / 100) / total]
        for ratio in RATIOS
        for policy, points in curves.items()
    }


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=1)
    folder = data_folder()
    if folder is None or not (folder / FOLDER).is_dir():
        print("Nothing to request: the reading levels were not found; set CROWDRANK_DATA.", file=sys.stderr)
        sys.exit()  # no failure: the other tables are not to wait for a file
    found = over_seeds(trial, list(POLICIES), told)
    curves = {policy: {int(c): v[0] for (row, c), v in found.items() if row == policy} for policy in POLICIES}
    last = str(max(curves[RANDOM]))
    shown = {key: values for key, values in found.items() if key[1] in {*map(str, SHOWN), last}}
    report(
        told,
        f"{NOTES}\n{drawn(told)}",
        [Table(shown, title="Figure 5: accuracy by number of votes"), Table(table5(curves), SHARES, title="Table 5")],
    )
    if told.out is not None and not told.quick:
        early = {key: values for key, values in found.items() if int(key[1]) <= SHOWN[-1]}
        draw_curves({"reading levels": early}, POLICIES, told.out / "figure5.svg")
