"""How well a function ranks queries that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.evaluation.relevance import ndcg
from crowdrank.learning.crowd import Crowd, Query
from crowdrank.learning.function import Validation
from crowdrank.likelihoods.list_posterior import pair_weights

Vector = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Places that NDCG looks at.
_DEPTH = 5
# With fewer queries than this none are held out.
FEWEST_QUERIES = 10


def split(queries: int, share: float, seed: int) -> tuple[Integers, Integers] | None:
    """Queries to train on, and queries held out; None where there are too few."""
    out = round(queries * share)
    if queries < FEWEST_QUERIES or out < 2:
        return None
    order = np.random.default_rng([seed, 7]).permutation(queries)
    return np.sort(order[out:]), np.sort(order[:out])


@dataclass(frozen=True)
class Held:
    """Queries held out, each graded by itself."""

    metric: str
    against: str
    values: Vector

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if len(self.values) else np.nan

    def validation(self) -> Validation | None:
        if len(self.values) < 2:
            return None
        error = float(np.std(self.values, ddof=1) / np.sqrt(len(self.values)))
        return Validation(self.metric, self.mean, error, len(self.values), self.against)


def grade(crowd: Crowd, scores: Vector, theta: Vector, grades: Vector | None) -> Held:
    """NDCG where items are graded; elsewhere how far the order agrees with the annotators, each by expertise."""
    parts = [slice(query.start, query.start + query.size) for query in crowd.queries]
    if grades is not None and not any(np.isnan(grades[part]).any() for part in parts):
        found = np.array([ndcg(scores[part], grades[part], _DEPTH) for part in parts])
        return Held(f"NDCG@{_DEPTH}", "grades", found[np.isfinite(found)])
    trust = theta if len(theta) and np.any(theta) else np.full(crowd.annotators, -1.0)
    found = np.array([_agreement(query, scores[part], trust) for query, part in zip(crowd.queries, parts, strict=True)])
    return Held("Kendall's tau", "the annotators' own lists", found[np.isfinite(found)])


def _agreement(query: Query, scores: Vector, theta: Vector) -> float:
    """Pairs that annotators put as the scores do, less those they put otherwise; items they left out count as last."""
    turned = pair_weights(query.item, query.place, query.offsets, query.theta(theta), query.size)
    most = pair_weights(query.item, query.place, query.offsets, np.abs(query.theta(theta)), query.size).sum()
    if query.top is not None:
        turned, most = _with_missing_last(query, turned, most, query.theta(theta))
    ahead = np.sign(scores[:, None] - scores)
    return float(np.sum(ahead * turned.T - ahead * turned) / 2 / -most * 1.0) if most > 0 else np.nan


def _with_missing_last(query: Query, turned: Vector, most: float, theta: Vector) -> tuple[Vector, float]:
    for first, weight in zip(query.tops, theta, strict=True):
        rest = np.ones(query.size, bool)
        rest[first] = False
        turned[np.ix_(rest, first)] += weight
        most += abs(weight) * rest.sum() * len(first)
    return turned, most
