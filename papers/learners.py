"""Shared code of the scripts on learning to rank from crowds: training data, methods by name, and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from measure import FIRST_SEED, Check, Key, Sampled, Table, standard_error
from topics import p_value

from crowdrank import Gold, Rankings, SideInformation
from crowdrank.data import Items
from crowdrank.evaluation.metrics import Gain, ndcg
from crowdrank.ltr import CrowdRanker, Features, RankingFunction
from crowdrank.simulation import Crowd, list_crowd
from crowdrank.simulation.crowd import draw, items_in_queries, numbered_labels
from crowdrank.simulation.lists import mallows_lists

OURS, DIRECT, TRUTH = "ltr-crowds", "ltrma-d", "truth"
WITH_SIDE = ("ltrma-s1", "ltrma-s2", "ltrma-s3")
METHODS = (OURS, *WITH_SIDE, DIRECT, "pooled", "borda", "lregma", TRUTH)
WEIGHING = (OURS, *WITH_SIDE, DIRECT)
"""Methods that say how good annotators are."""

PEAKED, HARD = "uniform(-2.5,-0.5)", "uniform(-0.4,-0.02)"
TEST_QUERIES = 500
ANOTHER_SEED = 100_000
"""Further on: the crowds of which the queries to test on are taken."""
TOLD_SHARE, ABOUT = 0.25, 0.25
"""The share of the queries whose truth is told (S1), and how near θ of the best annotator is (S2)."""

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Lesson:
    """Annotators' lists with the truth behind them, and other queries to test on."""

    lists: Rankings
    features: Features
    truth: Vector
    """A value for every item, larger is better."""
    expertise: Vector
    """True θ of the annotators; the lower, the better."""
    tested: Features
    grades: Vector
    """Of every item that is tested."""

    def gold(self, share: float = 1.0) -> Gold:
        """The truth of the first queries."""
        items = self.features.items
        rows = np.flatnonzero(items.query < share * len(items.queries))
        return Gold.of(
            item=items.labels[rows], value=self.truth[rows], query=items.queries[items.query[rows]], graded=False
        )

    @cached_property
    def side_information(self) -> dict[str, SideInformation]:
        """What S2 and S3 know about the best annotator."""
        names, best = self.lists.annotators, int(np.argmin(self.expertise))
        low, high = self.expertise[best] * (1 + ABOUT), self.expertise[best] * (1 - ABOUT)
        others = [(names[best], name) for n, name in enumerate(names) if n != best]
        return {
            "ltrma-s2": SideInformation(between={names[best]: (float(low), float(high))}),
            "ltrma-s3": SideInformation(better=others),
        }

    def fit(self, method: str, settings: CrowdRanker | None = None) -> RankingFunction:
        """By the method's name, with the side information that belongs to it."""
        known = self.side_information.get(method, SideInformation())
        told = replace(settings or CrowdRanker(), method=method, side_information=known)
        if method not in (OURS, *WITH_SIDE):
            told = replace(told, held_out=0)  # they have nothing to choose
        gold = self.gold(TOLD_SHARE) if method == "ltrma-s1" else self.gold() if method == TRUTH else None
        return told.fit(self.lists, self.features, gold)

    def fits(self, methods: Sequence[str], settings: CrowdRanker | None = None) -> dict[str, RankingFunction]:
        """All of them; those with side information learn from what ltr-crowds chose to, and hold out no query again."""
        settings = settings or CrowdRanker()
        found = {OURS: self.fit(OURS, settings)}
        same = replace(settings, labels=found[OURS].settings["labels"], held_out=0)
        return found | {method: self.fit(method, same) for method in methods if method != OURS}

    def ndcg(self, function: RankingFunction, k: int, gain: Gain = "exponential") -> float:
        """Mean over the tested queries that have something to find."""
        scores, starts = function.scores(self.tested), self.tested.items.starts
        found = [ndcg(scores[a:b], self.grades[a:b], k, gain) for a, b in pairwise(starts) if self.grades[a:b].any()]
        return float(np.mean(found))

    def error(self, function: RankingFunction) -> float:
        """Root mean square, of θ."""
        return float(np.sqrt(np.mean((function.annotators["expertise"] - self.expertise) ** 2)))

    def told_apart(self, function: RankingFunction, k: int = 5) -> float:
        """The paper's measure of expertise: NDCG of annotators by estimated θ, graded by their true order."""
        return ndcg(-function.annotators["expertise"], places_from_below(-self.expertise[None])[0], k)


def synthetic(seed: int, best: int | None = None, test_queries: int = TEST_QUERIES, **settings: Any) -> Lesson:
    """The paper's synthetic data. The i-th best of n items has the grade n + 1 − i; of the first `best` alone, where
    that is told, b + 1 − i, and all others 0."""
    crowd = list_crowd(seed=seed, **settings)
    size = int(crowd.settings["items"])
    test = list_crowd(queries=test_queries, items=size, annotators=1, seed=seed + ANOTHER_SEED)
    grades = places_from_below(test.truth.reshape(-1, size))
    if best is not None:
        grades = np.maximum(grades - size + best, 0)
    assert isinstance(crowd.judgments, Rankings)
    return Lesson(
        crowd.judgments,
        features_of(crowd),
        crowd.truth,
        crowd.annotators["expertise"],
        features_of(test),
        grades.ravel().astype(float),
    )


def noisy(
    seed: int,
    queries: int,
    items: int,
    expertise: str,
    annotators: int = 10,
    features: int = 6,
    best: int | None = None,
    test_queries: int = TEST_QUERIES,
    shown: int | None = None,
    top: int | None = None,
) -> Lesson:
    """What the model itself assumes: normal features, true lists drawn from Plackett-Luce with scores of spread 2, and
    Mallows lists about them. Tested queries are graded by the scores."""
    rng = np.random.default_rng([seed, 11])
    weights = rng.normal(size=features)
    weights *= 2 / np.linalg.norm(weights)
    values, tested = (rng.normal(size=(count, items, features)) for count in (queries, test_queries))
    truth = (values @ weights + rng.gumbel(size=(queries, items))).ravel()
    theta = draw(expertise, "expertise", rng, annotators)
    grades = places_from_below(tested @ weights)
    if best is not None:
        grades = np.maximum(grades - items + best, 0)
    taught = matrix_of(values)
    lists = lists_about(taught.items, truth, theta, rng, shown, top)
    return Lesson(lists, taught, truth, theta, matrix_of(tested), grades.ravel())


@dataclass(frozen=True)
class Taught(Sampled):
    """Scores and expertise that two iterations learn from a small lesson, for `SHOWS`."""

    settings: CrowdRanker = field(default_factory=CrowdRanker)
    method: str = OURS

    def draw(self, seed: int) -> Vector:
        lesson = noisy(FIRST_SEED, queries=8, items=6, expertise=HARD, test_queries=4)
        labels = "expected" if self.settings.labels == "auto" else self.settings.labels
        function = lesson.fit(self.method, replace(self.settings, labels=labels, held_out=0, iterations=2, seed=seed))
        told = function.annotators["expertise"] if self.method in WEIGHING else []
        return np.concatenate((function.scores(lesson.tested), told))


def matrix_of(values: Vector) -> Features:
    """Features of queries of equally many items."""
    queries, items, width = values.shape
    named = items_in_queries(queries, items)
    return Features.of(values.reshape(-1, width), item=named.labels, query=named.queries[named.query])


def lists_about(
    items: Items,
    truth: Vector,
    theta: Vector,
    rng: np.random.Generator,
    shown: int | None = None,
    top: int | None = None,
) -> Rankings:
    """A Mallows list of every annotator in every query; of `shown` items by lot, and the `top` of these."""
    lists: list[np.ndarray] = []
    for a, b in pairwise(items.starts):
        best = a + np.argsort(-truth[a:b], kind="stable")
        size = shown or len(best)
        seen = np.sort(np.argsort(rng.random((len(theta), len(best))), axis=1)[:, :size], axis=1)
        order = np.argsort(mallows_lists(rng, size, theta), axis=1)
        lists += list(np.take_along_axis(best[seen], order, axis=1)[:, :top])
    return rankings_of(items, lists, len(theta))


def rankings_of(items: Items, lists: Sequence[np.ndarray], annotators: int) -> Rankings:
    """Lists of item codes, query by query one of each annotator."""
    lengths = np.array([len(one) for one in lists])
    return Rankings(
        items=items,
        offsets=np.append(0, np.cumsum(lengths)),
        item=np.concatenate(lists).astype(np.int32),
        place=np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        annotators=numbered_labels("annotator", annotators),
        annotator=np.tile(np.arange(annotators, dtype=np.int32), len(lists) // annotators),
    )


def features_of(crowd: Crowd) -> Features:
    items = crowd.judgments.items
    return Features.of({"query": items.queries[items.query], "item": items.labels, **crowd.features})


def places_from_below(values: Vector) -> Vector:
    """Row by row, 1 for the lowest."""
    return np.asarray(values.argsort(axis=1).argsort(axis=1) + 1.0)


@dataclass(frozen=True)
class Fine(Table):
    """Four decimals."""

    def _cell(self, row: str, column: str) -> str:
        return fine(self.found[row, column]) if (row, column) in self.found else ""


@dataclass(frozen=True)
class Paired(Fine):
    """Differences trial by trial, with the p of a t test that there is none."""

    def _cell(self, row: str, column: str) -> str:
        shown = super()._cell(row, column)
        if not shown or np.isnan(p := p_value(self.found[row, column])):
            return shown
        return f"{shown} (p < .001)" if p < 0.001 else f"{shown} (p {f'{p:.3f}'.replace('0.', '.', 1)})"


def fine(values: Sequence[float]) -> str:
    error = standard_error(values)
    return _four(float(np.mean(values))) + ("" if np.isnan(error) else f" ± {_four(error)}")


def _four(value: float) -> str:
    return f"{value:.4f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.4f}"


def less(found: Mapping[Key, Sequence[float]], row: str, others: Sequence[str]) -> dict[Key, list[float]]:
    """A row less others, trial by trial."""
    return {
        (f"{row} less {other}", column): np.subtract(values, found[other, column]).tolist()
        for other in others
        for (name, column), values in found.items()
        if name == row and (other, column) in found
    }


def at_least(what: str, aim: float, values: Sequence[float]) -> Check:
    return Check(what, f"at least {_four(aim)}", fine(values), float(np.mean(values)) >= aim)


def at_most(what: str, aim: float, values: Sequence[float]) -> Check:
    return Check(what, f"at most {_four(aim)}", fine(values), float(np.mean(values)) <= aim)


def measured(found: Mapping[Key, list[float]], measure: str) -> dict[Key, list[float]]:
    """The cells of one measure; rows are "measure: method"."""
    start = f"{measure}: "
    return {(row.removeprefix(start), column): v for (row, column), v in found.items() if row.startswith(start)}


def ahead(found: Mapping[Key, list[float]], row: str = OURS, level: float = 0.01) -> Iterator[str]:
    """Claim by claim, how many columns a row is surely ahead of each other one in, and surely behind."""
    rows = dict.fromkeys(name for name, _ in found if name != row)
    for other in rows:
        gaps = list(less(found, row, [other]).values())
        signs = [np.sign(np.mean(gap)) * (p_value(gap) < level) for gap in gaps]
        yield f"{other}: ahead in {sum(s > 0 for s in signs)}, behind in {sum(s < 0 for s in signs)} of {len(signs)}"
