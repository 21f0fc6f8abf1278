"""Methods of learning a ranking function from a crowd, by name, and their validation on held-out queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation.metrics import ndcg
from crowdrank.ltr import baselines
from crowdrank.ltr.boosted import Boosted
from crowdrank.ltr.em import EM, EMResult, training_lists
from crowdrank.ltr.list_posterior import pair_weights
from crowdrank.ltr.ranking_function import Validation
from crowdrank.ltr.training_set import CrowdLists, QueryLists

Run = Callable[[EM, CrowdLists, FloatArray, Callable[[int], None]], EMResult]
SideInformation = Literal["", "known", "between", "better"]


def learn_by_em(em: EM, crowd: CrowdLists, features: FloatArray, progress: Callable[[int], None]) -> EMResult:
    """EM. Boosted trees with an `em_ranker` are trained once, on the labels that EM found with that ranker."""
    if not isinstance(em.ranker, Boosted) or em.ranker.em_ranker is None:
        return em.run(crowd, features, progress)
    result = replace(em, ranker=em.ranker.em_ranker).run(crowd, features, progress)
    lists = training_lists(crowd.queries, result.posteriors, em.labels)
    return result._replace(scorer=em.ranker.fit(lists, features, crowd.items.starts))


@dataclass(frozen=True)
class Method:
    """A method of learning.

    Parameters
    ----------
    run : callable
        Trains the ranking function.
    description : str
        One line for users.
    models_annotators : bool, default False
        Whether it estimates the expertise of the annotators.
    needs : {"", "known", "between", "better"}, default ""
        Side information that it requires; without it, it would equal ltr-crowds.
    linear_only : bool, default False
        Whether it can only train a linear function.
    """

    run: Run
    description: str
    models_annotators: bool = False
    needs: SideInformation = ""
    linear_only: bool = False

    def check(self, name: str, known: EncodedSideInformation, truth: bool) -> None:
        """Raise an error if the side information that the method needs is missing."""
        given = {"known": bool(known.quality) or truth, "between": bool(known.between), "better": bool(known.better)}
        remedy = {
            "known": "SideInformation(quality=…), or truth=… for some queries",
            "between": "SideInformation(between=…)",
            "better": "SideInformation(better=…)",
        }
        if self.needs and not given[self.needs]:
            raise SettingError(
                f"{name} is ltr-crowds with side information: pass {remedy[self.needs]}, or use ltr-crowds."
            )


AUTO, EM_METHOD, POOLED = "auto", "ltr-crowds", "pooled"

METHODS: dict[str, Method] = {
    AUTO: Method(learn_by_em, "ltr-crowds, or pooled where that predicts held-out lists better", True),
    "ltr-crowds": Method(learn_by_em, "true lists, expertise and function by EM (LTRMA-MLE)", True),
    "ltrma-s1": Method(learn_by_em, "the same, with known annotators or true lists", True, "known"),
    "ltrma-s2": Method(learn_by_em, "the same, with annotators known within a range", True, "between"),
    "ltrma-s3": Method(learn_by_em, "the same, with annotators known to be better than others", True, "better"),
    "ltrma-d": Method(baselines.aggregate_then_train, "aggregate lists by a Mallows model, then ListMLE", True),
    "pooled": Method(baselines.pooled, "ListMLE on all lists with equal weights"),
    "borda": Method(baselines.borda, "ListMLE on Borda orders"),
    "lregma": Method(baselines.regression, "regression on positions (Raykar et al. 2010)", linear_only=True),
    "truth": Method(baselines.truth, "ListMLE on true lists"),
}


def by_name(name: str) -> Method:
    """The method with this name."""
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]


# Cut-off of NDCG.
_NDCG_CUTOFF = 5
# From this number of held-out queries on, the better mean decides between EM and equal weights.
_MANY_QUERIES = 30
# Minimum number of queries for holding some out.
MIN_QUERIES = 10


def split_queries(queries: int, fraction: float, seed: int) -> tuple[IntArray, IntArray] | None:
    """Queries to train on and queries to hold out; None if there are too few."""
    out = round(queries * fraction)
    if queries < MIN_QUERIES or out < 2:
        return None
    order = np.random.default_rng([seed, 7]).permutation(queries)
    return np.sort(order[out:]), np.sort(order[:out])


@dataclass(frozen=True)
class HeldOutScores:
    """A metric on each held-out query."""

    metric: str
    against: str
    values: FloatArray

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if len(self.values) else np.nan

    def validation(self) -> Validation | None:
        """Mean and standard error; None for fewer than two queries."""
        if len(self.values) < 2:
            return None
        error = float(np.std(self.values, ddof=1) / np.sqrt(len(self.values)))
        return Validation(self.metric, self.mean, error, len(self.values), self.against)


def score_held_out(
    crowd: CrowdLists, scores: FloatArray, theta: FloatArray, grades: FloatArray | None
) -> HeldOutScores:
    """NDCG if the items have grades; otherwise Kendall's tau with the annotators' lists, weighted by expertise."""
    parts = [slice(query.start, query.start + query.size) for query in crowd.queries]
    if grades is not None and not any(np.isnan(grades[part]).any() for part in parts):
        found = np.array([ndcg(scores[part], grades[part], _NDCG_CUTOFF) for part in parts])
        return HeldOutScores(f"NDCG@{_NDCG_CUTOFF}", "grades", found[np.isfinite(found)])
    weight = theta if len(theta) and np.any(theta) else np.full(crowd.annotators, -1.0)
    found = np.array(
        [_weighted_tau(query, scores[part], weight) for query, part in zip(crowd.queries, parts, strict=True)]
    )
    return HeldOutScores("Kendall's tau", "the annotators' own lists", found[np.isfinite(found)])


def prefers_pooled(crowd: CrowdLists, by_em: FloatArray, pooled: FloatArray) -> bool:
    """Whether scores by pooling predict the lists of held-out queries better than those by EM.

    With few held-out queries they must do so by two standard errors, because by chance pooling may look better there
    where annotators are independent. With many, the mean decides.

    Every list counts alike here. EM weights annotators by how well they agree with the lists that it infers from them,
    so annotators who copy one another, or share their errors, gain weight by agreeing; weighting the held-out lists in
    the same way would confirm it. If errors are independent, the better function also predicts equally weighted lists
    better.
    """
    found = [_mean_taus(query, by_em, pooled) for query in crowd.queries]
    ahead = np.array([theirs - ours for ours, theirs in found if np.isfinite(ours) and np.isfinite(theirs)])
    if len(ahead) < 2:
        return False
    margin = 0.0 if len(ahead) >= _MANY_QUERIES else 2 * float(np.std(ahead, ddof=1) / np.sqrt(len(ahead)))
    return float(ahead.mean()) > margin


def _mean_taus(query: QueryLists, *functions: FloatArray) -> list[float]:
    """For each function, the mean Kendall's tau with the annotators' lists of a query; nan if none has two items."""
    found = []
    for n in np.flatnonzero(query.annotator >= 0):
        rows = slice(query.offsets[n], query.offsets[n + 1])
        place = np.full(query.size, -1)
        place[query.item[rows]] = query.place[rows]
        if query.top is not None:
            place[place < 0] = query.size  # items that a top-k list leaves out come after it
        seen = np.flatnonzero(place >= 0)
        order = np.sign(place[seen] - place[seen, None])
        if pairs := np.count_nonzero(order):
            own = [scores[query.start + seen] for scores in functions]
            found.append([float(np.sum(np.sign(s[:, None] - s) * order)) / pairs for s in own])
    return np.mean(found, axis=0).tolist() if found else [np.nan] * len(functions)


def _weighted_tau(query: QueryLists, scores: FloatArray, theta: FloatArray) -> float:
    """Weighted fraction of concordant minus discordant pairs; items missing from top-k lists count as last."""
    weights = pair_weights(query.item, query.place, query.offsets, query.theta(theta), query.size)
    total = pair_weights(query.item, query.place, query.offsets, np.abs(query.theta(theta)), query.size).sum()
    if query.top is not None:
        weights, total = _with_missing_last(query, weights, total, query.theta(theta))
    sign = np.sign(scores[:, None] - scores)
    return float(np.sum(sign * weights.T - sign * weights) / 2 / -total * 1.0) if total > 0 else np.nan


def _with_missing_last(
    query: QueryLists, weights: FloatArray, total: float, theta: FloatArray
) -> tuple[FloatArray, float]:
    for first, weight in zip(query.tops, theta, strict=True):
        missing = np.ones(query.size, bool)
        missing[first] = False
        weights[np.ix_(missing, first)] += weight
        total += abs(weight) * missing.sum() * len(first)
    return weights, total
