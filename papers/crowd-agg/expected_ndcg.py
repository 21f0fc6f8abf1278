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
MORE = 5
"""Times as many trials of newcomers, where the differences are small next to those between crowds."""


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


def newcomers(seed: int, items: int = 20, annotators: int = 15, votes: int = 600) -> Crowd:
    """Logistic answers, qualities from Beta(4, 1). Half of the items were compared with one another often, each of the
    others once with one of them."""
    rng = np.random.default_rng([seed, 78])
    truth, known, new = rng.normal(0, 2, items), *np.split(rng.permutation(items), 2)
    pairs = np.array([rng.choice(known, 2, replace=False) for _ in range(votes)])
    pairs = np.vstack((pairs, np.stack((new, rng.choice(known, len(new))), axis=1)))
    return answered(pairs, truth, annotators, rng, {"items": items, "seed": seed})


NOISY = {name: TOPICS[name] for name in ("preferences 30/40/10", "5 levels 30/15/20", "2 levels 100/40/10")} | {
    "uneven 30/15/20": Topic(uneven),
    "newcomers, 5 grades": Topic(newcomers),
    "newcomers, 10 grades": Topic(newcomers, 10),
}
TOP_GRADE = {"newcomers, 10 grades": 9.0}
"""Where it is not the default, 4."""
SHOWS = MODELS | shown(NOISY)

NOTES = """
Crowds as in table2.py, and *uneven*: logistic answers, in which some of 30 items are compared hundreds of times and
others hardly ever. *newcomers*: ten items are known from 600 answers, ten others from one answer each; the order is
for grades of 0 to 4 and of 0 to 9 (`top_grade=9`). NDCG@10 with gain 2^grade − 1, as many items of each grade. *for
NDCG* sorts the items by their expected gain over the draws of the same fit.

Where can it gain? Gains are convex in the rank, so among items of similar posterior mean those with a wider posterior
should come first. With a normal posterior that is exactly right (20 items, half of them measured with an error of .1
standard deviations, half with 1.5), the gain in 400 simulations is .015 ± .002 with 10 grades and .028 ± .003 with 20.
Where all items are known equally well it is zero: −.003 ± .002 to .000 ± .001, for errors of .3, 1 and 2. *newcomers*
is that setting; its numbers of answers were chosen on seeds 1 to 400, and it has five times as many trials.
"""


def trial(name: str, seed: int, quick: bool) -> Mapping[Key, float]:
    topic = NOISY[name]
    crowd = topic.draw(seed=seed)
    grades, found = topic.grades(crowd.truth), {}
    for method, model in MODELS.items():
        if can_read(method, crowd.judgments):
            ranking = fit(model, crowd.judgments, quick)
            found[method, name] = ndcg(ranking.scores, grades, k=10)
            found[method + ORDERED, name] = ndcg(order_for_ndcg(ranking, TOP_GRADE.get(name, 4.0)).scores, grades, k=10)
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
    newcomers_only = [name for name in NOISY if NOISY[name].draw is newcomers]
    found = over_seeds(trial, [name for name in NOISY if name not in newcomers_only], told)
    about = drawn(told)
    told.trials *= 1 if told.quick else MORE
    found |= over_seeds(trial, newcomers_only, told)
    gains = gained(found)
    tables = [Table(found, title="NDCG@10"), Paired(gains, title="Gain: paired, p of a two-sided t test")]
    report(told, f"{NOTES}\n{about}", tables, aims(gains))
