"""The ways to learn a ranking function from a crowd, by name.

How well a function ranks queries that it was not trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation.relevance import ndcg
from crowdrank.ltr import baselines
from crowdrank.ltr.em import EM, Learnt, labels_of
from crowdrank.ltr.list_posterior import pair_weights
from crowdrank.ltr.ranking_function import Validation
from crowdrank.ltr.training_set import Crowd, Query

Run = Callable[[EM, Crowd, FloatArray, Callable[[int], None]], Learnt]
Side = Literal["", "known", "between", "better"]


def from_crowds(em: EM, crowd: Crowd, values: FloatArray, tell: Callable[[int], None]) -> Learnt:
    """EM; a ranker with a `teacher` is trained once, on the labels that EM reached with that."""
    teacher = getattr(em.ranker, "teacher", None)
    if teacher is None:
        return em.run(crowd, values, tell)
    learnt = replace(em, ranker=teacher).run(crowd, values, tell)
    lists = labels_of(crowd.queries, learnt.posteriors, em.labels)
    return learnt._replace(scorer=em.ranker.fit(lists, values, crowd.items.starts))


@dataclass(frozen=True)
class Method:
    """One way to learn, in a line."""

    run: Run
    about: str
    models_annotators: bool = False
    needs: Side = ""
    """The side information without which it is only ltr-crowds."""
    linear_only: bool = False

    def check(self, name: str, known: EncodedSideInformation, truth: bool) -> None:
        """Refuse a method whose side information was not given."""
        given = {"known": bool(known.quality) or truth, "between": bool(known.between), "better": bool(known.better)}
        say = {
            "known": "SideInformation(quality=…) or the truth of some queries",
            "between": "SideInformation(between=…)",
            "better": "SideInformation(better=…)",
        }
        if self.needs and not given[self.needs]:
            raise SettingError(
                f"{name} is ltr-crowds with side information: give {say[self.needs]}, or say ltr-crowds."
            )


METHODS: dict[str, Method] = {
    "ltr-crowds": Method(from_crowds, "true lists, expertise and function by EM (LTRMA-MLE)", True),
    "ltrma-s1": Method(from_crowds, "the same, with annotators or true lists that are known", True, "known"),
    "ltrma-s2": Method(from_crowds, "the same, with annotators known within a range", True, "between"),
    "ltrma-s3": Method(from_crowds, "the same, with annotators known to be better than others", True, "better"),
    "ltrma-d": Method(baselines.direct, "lists put together by Mallows first, then ListMLE", True),
    "pooled": Method(baselines.pooled, "ListMLE on all lists alike"),
    "borda": Method(baselines.borda, "ListMLE on Borda's lists"),
    "lregma": Method(baselines.regression, "regression on places (Raykar et al. 2010)", linear_only=True),
    "truth": Method(baselines.truth, "ListMLE on true lists"),
}


def by_name(name: str) -> Method:
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]


# Places that NDCG looks at.
_DEPTH = 5
# With fewer queries than this none are held out.
FEWEST_QUERIES = 10


def split(queries: int, share: float, seed: int) -> tuple[IntArray, IntArray] | None:
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
    values: FloatArray

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if len(self.values) else np.nan

    def validation(self) -> Validation | None:
        if len(self.values) < 2:
            return None
        error = float(np.std(self.values, ddof=1) / np.sqrt(len(self.values)))
        return Validation(self.metric, self.mean, error, len(self.values), self.against)


def grade(crowd: Crowd, scores: FloatArray, theta: FloatArray, grades: FloatArray | None) -> Held:
    """NDCG where items are graded; elsewhere how far the order agrees with the annotators, each by expertise."""
    parts = [slice(query.start, query.start + query.size) for query in crowd.queries]
    if grades is not None and not any(np.isnan(grades[part]).any() for part in parts):
        found = np.array([ndcg(scores[part], grades[part], _DEPTH) for part in parts])
        return Held(f"NDCG@{_DEPTH}", "grades", found[np.isfinite(found)])
    trust = theta if len(theta) and np.any(theta) else np.full(crowd.annotators, -1.0)
    found = np.array([_agreement(query, scores[part], trust) for query, part in zip(crowd.queries, parts, strict=True)])
    return Held("Kendall's tau", "the annotators' own lists", found[np.isfinite(found)])


def _agreement(query: Query, scores: FloatArray, theta: FloatArray) -> float:
    """Pairs that annotators put as the scores do, less those they put otherwise; items they left out count as last."""
    turned = pair_weights(query.item, query.place, query.offsets, query.theta(theta), query.size)
    most = pair_weights(query.item, query.place, query.offsets, np.abs(query.theta(theta)), query.size).sum()
    if query.top is not None:
        turned, most = _with_missing_last(query, turned, most, query.theta(theta))
    ahead = np.sign(scores[:, None] - scores)
    return float(np.sum(ahead * turned.T - ahead * turned) / 2 / -most * 1.0) if most > 0 else np.nan


def _with_missing_last(query: Query, turned: FloatArray, most: float, theta: FloatArray) -> tuple[FloatArray, float]:
    for first, weight in zip(query.tops, theta, strict=True):
        rest = np.ones(query.size, bool)
        rest[first] = False
        turned[np.ix_(rest, first)] += weight
        most += abs(weight) * rest.sum() * len(first)
    return turned, most
