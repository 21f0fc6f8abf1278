"""Not in the paper: the order with the largest expected NDCG, from the draws of other models than CrowdAgg.

NDCG@10 of the plain order and of `--measure ndcg`, on the same fits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import Check, Key, Table, drawn, options, over_seeds, report, standard_error, with_error
from topics import METHODS, TOPICS, Paired, Topic, can_read, fit, shown

from crowdrank import Comparisons
from crowdrank.evaluation import ndcg
from crowdrank.results import order_for_ndcg
from crowdrank.simulation import Crowd

MODELS = {name: METHODS[name] for name in ("bradley-terry", "crowd-bt", "graded-response")}
ORDERED = ", for NDCG"


def uneven(seed: int, items: int = 30, annotators: int = 15, votes: int = 300) -> Crowd:
    """Logistic answers, qualities from Beta(4, 1), and items of which some are compared often and some hardly ever."""
    rng = np.random.default_rng([seed, 77])
    truth = rng.normal(0, 1.5, items)
    often = np.exp(2 * rng.normal(size=items))
    pairs = np.array([rng.choice(items, 2, replace=False, p=often / often.sum()) for _ in range(votes)])
    return answered(pairs, truth, annotators, rng, {"items": items, "seed": seed})


def answered(
    pairs: np.ndarray, truth: np.ndarray, annotators: int, rng: np.random.Generator, settings: dict[str, int]
) -> Crowd:
    """Annotators of quality Beta(4, 1), one for each pair."""
    who, quality = rng.integers(annotators, size=len(pairs)), rng.beta(4, 1, annotators)
    right = 1 / (1 + np.exp(truth[pairs[:, 1]] - truth[pairs[:, 0]]))
    first = rng.random(len(pairs)) < quality[who] * right + (1 - quality[who]) * (1 - right)
    names = np.array([f"item{n + 1:03d}" for n in range(len(truth))])
    left, right_item = names[pairs[:, 0]], names[pairs[:, 1]]
    winner = np.where(first, left, right_item)
    votes_of = Comparisons.of(left, right_item, winner, annotator=[f"annotator{n + 1}" for n in who])
    seen = np.array([int(str(label)[4:]) - 1 for label in votes_of.items.labels])
    return Crowd(judgments=votes_of, truth=truth[seen], settings=settings)


NOISY = {name: TOPICS[name] for name in ("preferences 30/40/10", "5 levels 30/15/20", "2 levels 100/40/10")} | {
    "uneven 30/15/20": Topic(uneven),
}
SHOWS = MODELS | shown(NOISY)

NOTES = """
Crowds as in table2.py, and *uneven*: logistic answers, in which some of 30 items are compared hundreds of times and
others hardly ever. NDCG@10 with gain 2^grade − 1, as many items of each grade. *for
NDCG* sorts the items by their expected gain over the draws of the same fit.
"""


def trial(name: str, seed: int, quick: bool) -> Mapping[Key, float]:
    return both_orders(name, NOISY[name], seed, quick)


def both_orders(name: str, topic: Topic, seed: int, quick: bool, top_grade: float = 4.0) -> dict[Key, float]:
    """NDCG@10 of the plain order and of that for NDCG."""
    crowd = topic.draw(seed=seed)
    grades, found = topic.grades(crowd.truth), {}
    for method, model in MODELS.items():
        if can_read(method, crowd.judgments):
            ranking = fit(model, crowd.judgments, quick)
            found[method, name] = ndcg(ranking.scores, grades, k=10)
            found[method + ORDERED, name] = ndcg(order_for_ndcg(ranking, top_grade).scores, grades, k=10)
    return found


def gained(found: Mapping[Key, list[float]]) -> dict[Key, list[float]]:
    """For NDCG less plain, crowd by crowd."""
    return {
        (f"{row}: for NDCG less plain", column): np.subtract(found[row + ORDERED, column], values).tolist()
        for (row, column), values in found.items()
        if (row + ORDERED, column) in found
    }


def aims(gains: Mapping[Key, list[float]]) -> list[Check]:
    return [
        Check(
            f"{row}, {column}",
            "ahead by two standard errors",
            with_error(values),
            bool(np.mean(values) > 2 * standard_error(values)),
        )
        for (row, column), values in gains.items()
    ]


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=60)
    found = over_seeds(trial, list(NOISY), told)
    gains = gained(found)
    tables = [Table(found, title="NDCG@10"), Paired(gains, title="Gain: paired, p of a two-sided t test")]
    report(told, f"{NOTES}\n{drawn(told)}", tables, aims(gains))
