"""CrowdAgg, Table 2: quality of the order from preferences and from grades, for every method.

Five kinds of simulated topics: items / annotators / judgments of each annotator, whose quality is from Beta(2, 1).
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
from measure import Check, Key, Table, decimals, drawn, options, over_seeds, report, standard_error, with_error
from topics import METHODS, OURS, PEER, TOPICS, Paired, can_read, fit, less, shown

from crowdrank.evaluation import average_precision, ndcg, precision_at, rbp

MEASURES = ("NDCG@10", "P@10", "MAP", "RBP")
MEAN, BEST = "mean", "best of the others less crowd-bt"
FIRST = "NDCG@10"
PRINTED = ("crowd-agg, printed", "crowd-agg, published")
SHOWS = METHODS | shown(TOPICS)

NOTES = """
Each topic is a separate crowd: true scores are standard normal, and for preferences annotators name the better item
with a probability equal to their quality. Graders perceive scores with a little noise (.3). With probability |2·quality
− 1| they give the grade they perceive (its opposite if quality is below one half), and otherwise a random grade. Orders
are evaluated with true grades 0 to 4 (0 and 1 with two levels), the same number of items for each grade: NDCG@10 with
gain 2^grade − 1, relative to the best ten; P@10, MAP and RBP (p = .95) with grades 3 and 4 (with two levels: 1) as
relevant. *crowd-agg* has default settings: the win rule is "answer" for preferences and "share" for grades. *printed*
has eq. 6 as printed; *published* also has no prior on η, a separate η for each topic, and no sign resolution. All other
models have default settings; borda reads grades as lists, the other models for comparisons read every two items that
one annotator graded.

The paper's data (CS-TREC2011, MIREX2005) are not available. Its NDCG@10 on them: CondorcetFuse .611 and .414,
GreedyOrder .676 and .399, BradleyTerry .379 and .385, MPM .667 and .501, Crowd-BT .414 and .496, EMeloRating .663 and
.436, CrowdAgg_NDCG .686 and .532, CrowdAgg_RBP .679 and .531.
"""


def trial(name: str, seed: int, quick: bool) -> Mapping[Key, float]:
    """Cells of all measures, called "NDCG@10 crowd-agg" …"""
    topic = TOPICS[name]
    crowd = topic.draw(seed=seed)
    grades = topic.grades(crowd.truth)
    relevant = 1 if topic.levels == 2 else 3
    ways = {
        FIRST: partial(ndcg, k=10),
        "P@10": partial(precision_at, k=10, threshold=relevant),
        "MAP": partial(average_precision, threshold=relevant),
        "RBP": partial(rbp, persistence=0.95, threshold=relevant),
    }
    found = {}
    for method, model in METHODS.items():
        if can_read(method, crowd.judgments):
            scores = fit(model, crowd.judgments, quick).scores
            found |= {(f"{measure} {method}", name): way(scores, grades) for measure, way in ways.items()}
    return found


def of_measure(found: Mapping[Key, list[float]], measure: str) -> dict[Key, list[float]]:
    """The rows of one measure, and the mean over the kinds of topics where a method read all of them."""
    cells = {(row.removeprefix(f"{measure} "), name): v for (row, name), v in found.items() if row.startswith(measure)}
    kinds = len({name for _, name in cells})
    means = {}
    for row in dict.fromkeys(row for row, _ in cells):
        columns = [values for (other, _), values in cells.items() if other == row]
        if len(columns) == kinds:
            means[row, MEAN] = np.mean(columns, axis=0).tolist()
    return cells | means


def best(cells: Mapping[Key, list[float]]) -> list[Check]:
    """In each kind of topics, the best of the others against Crowd-BT."""
    checks = []
    for column in dict.fromkeys(column for _, column in cells if column != MEAN):
        rows = {row: values for (row, name), values in cells.items() if name == column and row != PEER}
        row = max(rows, key=lambda name: float(np.mean(rows[name])))
        ahead = np.subtract(rows[row], cells[PEER, column])
        shown = f"{row}: {decimals(float(ahead.mean()))} ± {decimals(standard_error(ahead))}"
        checks.append(Check(f"{BEST}, {column}", "at least 0", shown, round(float(ahead.mean()), 3) >= 0))
    return checks


def aims(cells: Mapping[Key, list[float]]) -> list[Check]:
    met = float(np.mean(cells[OURS, MEAN])) >= 0.85
    printed = "; ".join(f"{row.removeprefix('crowd-agg, ')} {with_error(cells[row, MEAN])}" for row in PRINTED)
    shown = f"{with_error(cells[OURS, MEAN])} ({printed})"
    return [Check(f"{OURS}, NDCG@10, {MEAN} of the five", "at least .850", shown, met), *best(cells)]


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=30)
    found = over_seeds(trial, list(TOPICS), told)
    by_measure = {measure: of_measure(found, measure) for measure in MEASURES}
    first = by_measure[FIRST]
    tables = [Table(cells, title=measure) for measure, cells in by_measure.items()]
    tables.insert(1, Paired(less(first, PEER), title=f"NDCG@10 less {PEER}: paired, p of a two-sided t test"))
    report(told, f"{NOTES}\n{drawn(told)}", tables, aims(first))
