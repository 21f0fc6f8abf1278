"""Gold: the known truth about items, and how scores fare against it, query by query.

Several models against the same gold: each metric, with the error of what sets them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data.labels import Items, encode_items
from crowdrank.data.tables import freeze, number_column
from crowdrank.errors import DataError
from crowdrank.evaluation.cross_validation import Estimate
from crowdrank.evaluation.rank_correlation import (
    accuracy,
    check_column,
    check_k,
    kendall_correlation,
    kendall_distance,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.evaluation.relevance import Gain, average_precision, ndcg, precision_at, rbp
from crowdrank.results import Ranking

Metric = Callable[[FloatArray, FloatArray], float]

# 2^10 - 1 is already a gain a thousand times that of grade 1; beyond it the best item alone would be judged.
_LARGEST_GRADE = 10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gold:
    """True values of items within queries. Build one with `Gold.of`."""

    items: Items
    value: FloatArray
    """Larger is better."""
    graded: bool
    """Whether values are grades of relevance, zero meaning worthless: only then do NDCG, precision, AP and RBP say
    something. A true rank, a measured size or a price is not a grade."""

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        kind = "grades" if self.graded else "values"
        return f"Gold({len(self):,} {kind} in {len(self.items.queries):,} queries)"

    @classmethod
    def of(
        cls,
        item: Any,
        value: Any,
        query: Any = None,
        larger_is_better: bool = True,
        graded: bool | None = None,
    ) -> Gold:
        """From columns of labels and values; for ranks, where 1 is the top, say `larger_is_better=False`.

        Unless told by `graded`, values are taken for grades of relevance where larger is better and they are whole
        numbers from 0 to at most 10, with 0 among them.

        >>> Gold.of(item=["a", "b", "c"], value=[2, 0, 1])
        Gold(3 grades in 1 queries)
        """
        items, (codes,) = encode_items([item], ["item"], query)
        if not len(codes):
            raise DataError("There is no gold: the columns are empty.")
        _refuse_repeats(items, codes)
        given = number_column(value, "value", len(codes))
        values = np.empty(len(items))
        values[codes] = given if larger_is_better else -given
        if graded is None:
            graded = larger_is_better and _look_like_grades(values)
        elif graded and values.min() < 0:
            raise DataError(f"Grades must not be negative with larger being better, got {values.min():g}.")
        return cls(items=items, value=values, graded=graded)

    @property
    def gain(self) -> Gain:
        """The gain of NDCG: exponential, as is usual, unless grades go beyond 10."""
        return "exponential" if self.value.max() <= _LARGEST_GRADE else "linear"


@dataclass(frozen=True)
class Measure:
    """One metric: its mean over the queries in which it is defined."""

    metric: str
    value: float
    std_error: float
    """Of the mean, from the spread between queries; nan for a single query."""
    queries: int
    """In how many queries it is defined."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation:
    """How scores fared against gold. The mean of a metric is an attribute by its name: `evaluation.accuracy`."""

    measures: tuple[Measure, ...]
    by_query: pl.DataFrame
    """One row a query that has gold, one column a metric; nan where it is not defined."""
    k: int
    items: int
    """How many items were judged."""
    items_with_gold: int
    gold_never_judged: int
    """How many items of the gold are not among those judged."""

    def __getattr__(self, name: str) -> float:
        measures: tuple[Measure, ...] = self.__dict__.get("measures", ())
        known = {m.metric: m.value for m in measures}
        if name in known:
            return known[name]
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
        raise AttributeError(f"No metric named {name!r} here; {hint}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{m.metric}={m.value:.3f}" for m in self.measures)
        return f"Evaluation({shown}; {self.items_with_gold:,} of {self.items:,} items have gold)"

    def table(self) -> pl.DataFrame:
        """One row a metric: metric, value, std_error, queries."""
        columns = {"metric": pl.String, "value": pl.Float64, "std_error": pl.Float64, "queries": pl.Int64}
        rows = [(m.metric, m.value, m.std_error, m.queries) for m in self.measures]
        return pl.DataFrame(rows, schema=columns, orient="row")


def evaluate(scores: npt.ArrayLike, items: Items, gold: Gold, k: int = 10, *, threshold: float = 1) -> Evaluation:
    """Grade scores (one an item, larger is better) against gold, items matched by query and label.

    Each metric is computed in every query over the items that have gold, then averaged over the queries in which it
    is defined, each query counting the same. Agreement with the true order is always told; NDCG, precision, AP and
    RBP only for gold that is `graded`. `k` is that of NDCG, precision and the top-k overlap; grades from `threshold`
    are relevant.

    >>> gold = Gold.of(item=["a", "b", "c"], value=[310.5, 82.1, 67.3])
    >>> evaluate([2.0, 1.0, 0.5], Items.of(["a", "b", "d"]), gold).accuracy
    1.0
    """
    estimate = _check_scores(scores, items)
    places, truth = match_gold(items, gold)
    metrics = _metrics(gold, check_k(k), threshold)
    query = items.query[places]
    starts = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
    parts = zip(np.split(estimate[places], starts[1:]), np.split(truth, starts[1:]), strict=True)
    values = np.array([[metric(s, t) for metric in metrics.values()] for s, t in parts])
    by_query = pl.DataFrame({"query": items.queries[query[starts]].tolist()}).with_columns(
        pl.Series(name, values[:, n]) for n, name in enumerate(metrics)
    )
    return Evaluation(
        measures=tuple(_average(name, values[:, n]) for n, name in enumerate(metrics)),
        by_query=by_query,
        k=k,
        items=len(items),
        items_with_gold=len(places),
        gold_never_judged=len(gold) - len(places),
    )


def _metrics(gold: Gold, k: int, threshold: float) -> dict[str, Metric]:
    chosen: dict[str, Metric] = {
        "accuracy": accuracy,
        "kendall_distance": kendall_distance,
        "kendall_correlation": kendall_correlation,
        "spearman_correlation": spearman_correlation,
        "top_k_overlap": partial(top_k_overlap, k=k),
    }
    if gold.graded:
        chosen |= {
            "ndcg": partial(ndcg, k=k, gain=gold.gain),
            "precision": partial(precision_at, k=k, threshold=threshold),
            "average_precision": partial(average_precision, threshold=threshold),
            "rbp": partial(rbp, threshold=threshold),
        }
    return chosen


def _average(name: str, values: FloatArray) -> Measure:
    defined = values[~np.isnan(values)]
    count = len(defined)
    mean = float(defined.mean()) if count else np.nan
    error = float(defined.std(ddof=1) / np.sqrt(count)) if count > 1 else np.nan
    return Measure(name, mean, error, count)


def match_gold(items: Items, gold: Gold) -> tuple[IntArray, FloatArray]:
    """The judged items that have gold, in order of their places, and what is true of them."""
    judged = _names(items).with_row_index("place")
    both = judged.join(_names(gold.items).with_columns(value=gold.value), on=["query", "item"]).sort("place")
    if both.is_empty():
        raise DataError(f"None of the {len(items):,} items judged has gold: {_why_no_match(items, gold)}")
    return both["place"].to_numpy().astype(np.int64), both["value"].to_numpy()


def _names(items: Items) -> pl.DataFrame:
    names = {"query": items.queries[items.query].tolist(), "item": items.labels.tolist()}
    return pl.DataFrame(names, schema={"query": pl.String, "item": pl.String})


def _why_no_match(items: Items, gold: Gold) -> str:
    if items.has_queries and not gold.items.has_queries:
        return "the judgments name queries and the gold does not; give Gold.of a query."
    if gold.items.has_queries and not items.has_queries:
        return "the gold names queries and the judgments do not; leave out the query of the gold."
    return f"for example {items.name(0)!r} was judged, and {gold.items.name(0)!r} has gold."


def _check_scores(scores: npt.ArrayLike, items: Items) -> FloatArray:
    estimate = check_column(scores, "scores")
    if len(estimate) != len(items):
        raise DataError(f"There must be one score an item, got {len(estimate)} scores for {len(items)} items.")
    return estimate


def _refuse_repeats(items: Items, codes: Int32Array) -> None:
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise DataError(f"Row {row + 1}: item {items.name(int(codes[row]))} already has gold.")


def _look_like_grades(values: FloatArray) -> bool:
    return bool(values.min() == 0 and values.max() <= _LARGEST_GRADE and np.all(values == np.round(values)))


_RESAMPLES = 100


def grades(rankings: Mapping[str, Ranking], gold: Gold) -> dict[str, Evaluation]:
    """Every ranking graded."""
    return {name: evaluate(ranking.scores, ranking.items, gold) for name, ranking in rankings.items()}


def accuracy_gains(
    rankings: Mapping[str, Ranking], gold: Gold, plain: str, rng: np.random.Generator
) -> dict[str, Estimate]:
    """How much more accurate than the plain model; the error is between queries or, of one, by resampling its items."""
    found = grades(rankings, gold)
    by_query = {name: grade.by_query["accuracy"].to_numpy() for name, grade in found.items()}
    queries = len(by_query[plain])
    if queries > 1:
        return {name: _between_queries(values - by_query[plain]) for name, values in by_query.items()}
    places, truth = match_gold(rankings[plain].items, gold)
    drawn = [rng.integers(len(places), size=len(places)) for _ in range(_RESAMPLES)]
    again = {name: _resampled(ranking.scores[places], truth, drawn) for name, ranking in rankings.items()}
    return {
        name: Estimate(found[name].accuracy - found[plain].accuracy, float(np.nanstd(values - again[plain])))
        for name, values in again.items()
    }


def _between_queries(difference: FloatArray) -> Estimate:
    told = difference[~np.isnan(difference)]
    if len(told) < 2:
        return Estimate(float(np.mean(told)) if len(told) else np.nan, np.nan)
    return Estimate(float(np.mean(told)), float(np.std(told, ddof=1) / np.sqrt(len(told))))


def _resampled(scores: FloatArray, truth: FloatArray, drawn: list[IntArray]) -> FloatArray:
    return np.array([accuracy(scores[rows], truth[rows]) for rows in drawn])
