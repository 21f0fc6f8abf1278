"""CrowdAgg, §6.3.2: how close the estimated qualities of annotators are to the true ones.

The preferences of [table 2](table2.md): items / annotators / answers of each annotator.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import Key, Table, drawn, options, over_seeds, report
from topics import BASELINES, OURS, PEER, TOPICS, Paired, fit, less, shown

from crowdrank import Comparisons, CrowdAgg, EMElo
from crowdrank.models import Model
from crowdrank.results import Ranking

NAMES = [name for name in TOPICS if name.startswith("preferences")]
METHODS: dict[str, Model] = {
    OURS: CrowdAgg(),
    "crowd-agg, no prior": CrowdAgg(quality_prior=None),
    **{name: BASELINES[name] for name in ("mpm", "em-elo", PEER, "bayesian-crowd-bt")},
}
SHOWS = METHODS | shown({name: TOPICS[name] for name in NAMES})
BY_ORDER = "by agreement with the order of "
BINS = 10
KL, ERROR, MEAN = "Kullback-Leibler divergence", "Root mean square error", "mean"

NOTES = f"""
The true quality is the one that annotators were simulated with. The estimated quality is the probability, under the
model, that the annotator names the item that it ranks higher, averaged over the pairs they answered (in crowd-agg and
em-elo this is η). *{BY_ORDER.strip()}* a model is the share of answers that agree with its order, the paper's ACC, and
needs no estimate. As in the paper, the divergence is between distributions of the qualities of all annotators in a
topic, here over {BINS} bins of equal width with half an annotator added to each: KL(true ‖ estimated), in nats; smaller
is better. It measures whether the numbers of good and bad annotators are right, not who they are; the error per
annotator does. The paper has 1.43 for CrowdAgg, 2.86 for Crowd-BT, 2.14 for EMeloRating and 1.93 for MPM, on music data
that are not available and with bins that it does not specify.
"""


def trial(name: str, seed: int, quick: bool) -> Mapping[Key, float]:
    crowd = TOPICS[name].draw(seed=seed)
    votes, true = crowd.judgments, crowd.annotators["quality"]
    assert isinstance(votes, Comparisons)
    found = {}
    for method, model in METHODS.items():
        ranking = fit(model, votes, quick)
        for row, estimate in ((method, estimated(model, ranking, votes)), (BY_ORDER + method, agreed(ranking, votes))):
            found[f"{KL} {row}", name] = divergence(true, estimate)
            found[f"{ERROR} {row}", name] = float(np.sqrt(np.mean((estimate - true) ** 2)))
    return found


def estimated(model: Model, ranking: Ranking, votes: Comparisons) -> np.ndarray:
    """How often each annotator names the item that is ranked higher, by the model."""
    if isinstance(model, (CrowdAgg, EMElo)):
        return ranking.annotators["quality"]
    left, _, right = model.predict(ranking, votes).T
    lead = np.sign(ranking.scores[votes.left] - ranking.scores[votes.right])
    chance = np.where(lead > 0, left, np.where(lead < 0, right, 0.5))
    return np.bincount(votes.annotator, chance) / np.bincount(votes.annotator)


def agreed(ranking: Ranking, votes: Comparisons) -> np.ndarray:
    lead = np.sign(ranking.scores[votes.left] - ranking.scores[votes.right])
    return np.bincount(votes.annotator, 0.5 + 0.5 * lead * votes.outcome) / np.bincount(votes.annotator)


def divergence(true: np.ndarray, estimate: np.ndarray) -> float:
    p, q = (np.histogram(values, BINS, (0, 1))[0] + 0.5 for values in (true, estimate))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum(p * np.log(p / q)))


def of_measure(found: Mapping[Key, list[float]], measure: str, names: list[str]) -> dict[Key, list[float]]:
    cells = {(row.removeprefix(f"{measure} "), name): v for (row, name), v in found.items() if row.startswith(measure)}
    rows = dict.fromkeys(row for row, _ in cells)
    return cells | {(row, MEAN): np.mean([cells[row, name] for name in names], axis=0).tolist() for row in rows}


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=30)
    names = NAMES[:1] if told.quick else NAMES
    found = over_seeds(trial, names, told)
    tables = []
    for measure in (KL, ERROR):
        cells = of_measure(found, measure, names)
        own = {(row, name): values for (row, name), values in cells.items() if not row.startswith(BY_ORDER)}
        tables += [Table(cells, title=measure), Paired(less(own, PEER), title=f"{measure}: less {PEER}")]
    report(told, f"{NOTES}\n{drawn(told)}", tables)
