"""Gold: known true values of items, and metrics of scores against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data.labels import Items, encode_items
from crowdrank.data.tables import freeze, number_column
from crowdrank.errors import DataError
from crowdrank.evaluation.cross_validation import Estimate
from crowdrank.evaluation.metrics import (
    Gain,
    accuracy,
    average_precision,
    check_column,
    check_k,
    kendall_correlation,
    kendall_distance,
    ndcg,
    precision_at,
    rbp,
    spearman_correlation,
    top_k_overlap,
)
from crowdrank.results import Ranking
from crowdrank.results.parts import Tabular

Metric = Callable[[FloatArray, FloatArray], float]

# The gain 2^10 − 1 is a thousand times that of grade 1; with larger grades only the best item would count.
_MAX_GRADE = 10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gold:
    """True values of items within queries. Build one with `Gold.of` or `Gold.read`.

    Parameters
    ----------
    items : Items
        The items with known values.
    value : array of float
        Their values; larger is better.
    graded : bool
        Whether values are grades of relevance, where zero means not relevant. Only then are NDCG, precision, average
        precision and RBP computed: a true rank, a size or a price is not a grade.
    """

    items: Items
    value: FloatArray
    graded: bool

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
        """Build gold from columns.

        Parameters
        ----------
        item : sequence of str
            Labels of the items.
        value : sequence of float
            Their true values.
        query : sequence of str, optional
            Their queries.
        larger_is_better : bool, default True
            False for ranks, where 1 is the best.
        graded : bool, optional
            Whether values are grades of relevance. By default they are if larger is better and the values are whole
            numbers from 0 to at most 10, with 0 among them.

        Examples
        --------
        >>> Gold.of(item=["a", "b", "c"], value=[2, 0, 1])
        Gold(3 grades in 1 queries)
        """
        items, (codes,) = encode_items([item], ["item"], query)
        if not len(codes):
            raise DataError("The gold is empty: pass at least one item with its value.")
        _refuse_repeats(items, codes)
        given = number_column(value, "value", len(codes))
        values = np.empty(len(items))
        values[codes] = given if larger_is_better else -given
        if graded is None:
            graded = larger_is_better and _look_like_grades(values)
        elif graded and values.min() < 0:
            raise DataError(f"Grades must not be negative with larger being better, got {values.min():g}.")
        return cls(items=items, value=values, graded=graded)

    @classmethod
    def read(cls, source: Any, columns: Mapping[str, str | None] | None = None) -> Gold:
        """Build gold from a file, a data frame, or a dict from items to values.

        Parameters
        ----------
        source : path, data frame or dict
            A table with columns for item and value (or rank, where 1 is the best), or a dict ``{item: value}``. Keys of
            the dict may be pairs of query and item.
        columns : mapping of str to str, optional
            Roles of columns, for example ``{"item": "name", "rank": "place"}``.

        Examples
        --------
        >>> Gold.read({"a": 310.5, "b": 82.1})
        Gold(2 values in 1 queries)
        """
        if isinstance(source, Mapping) and columns is None and _is_item_dict(source):
            return _gold_of_dict(source)
        from crowdrank.io import read_gold

        found = read_gold(source, columns=columns)
        return cls.of(found.item, found.value, query=found.query)

    @property
    def gain(self) -> Gain:
        """Gain of NDCG: exponential as usual, linear if grades exceed 10."""
        return "exponential" if self.value.max() <= _MAX_GRADE else "linear"


def _is_item_dict(source: Mapping[Any, Any]) -> bool:
    """Whether a dict maps items to numbers, and not names to columns."""
    return all(isinstance(value, int | float | np.number) for value in source.values())


def _gold_of_dict(source: Mapping[Any, Any]) -> Gold:
    keys, values = list(source), [float(value) for value in source.values()]
    if keys and all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        return Gold.of([item for _, item in keys], values, query=[query for query, _ in keys])
    return Gold.of(keys, values)


@dataclass(frozen=True)
class Measure:
    """Mean of one metric over the queries in which it is defined.

    Parameters
    ----------
    metric : str
        Name of the metric.
    value : float
        Its mean.
    std_error : float
        Standard error of the mean from the spread between queries; nan for a single query.
    queries : int
        Number of queries in which the metric is defined.
    """

    metric: str
    value: float
    std_error: float
    queries: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Tabular):
    """Metrics of scores against gold. The mean of a metric is an attribute: ``evaluation.accuracy``.

    Parameters
    ----------
    measures : tuple of Measure
        The metrics.
    by_query : polars.DataFrame
        One row per query with gold, one column per metric; nan where a metric is not defined.
    k : int
        Cut-off of NDCG, precision and the top-k overlap.
    items : int
        Number of items with scores.
    items_with_gold : int
        Number of these items that have gold.
    gold_never_judged : int
        Number of items with gold but without a score.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    measures: tuple[Measure, ...]
    by_query: pl.DataFrame
    k: int
    items: int
    items_with_gold: int
    gold_never_judged: int
    native: str = "polars"

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

    def to_polars(self) -> pl.DataFrame:
        """Return one row per metric: metric, value, std_error, queries."""
        columns = {"metric": pl.String, "value": pl.Float64, "std_error": pl.Float64, "queries": pl.Int64}
        rows = [(m.metric, m.value, m.std_error, m.queries) for m in self.measures]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def table(self) -> Any:
        """Return one row per metric, as the kind of data frame that the judgments came in."""
        return self.frame()


def evaluate(
    ranking: Ranking, gold: Gold | str | PathLike[str] | Mapping[Any, Any] | Any, k: int = 10, *, threshold: float = 1
) -> Evaluation:
    """Compute metrics of a ranking against known true values.

    Parameters
    ----------
    ranking : Ranking
        The ranking.
    gold : Gold, path, dict or data frame
        True values of items: a `Gold`, or anything that `Gold.read` accepts.
    k : int, default 10
        Cut-off of NDCG, precision and the top-k overlap.
    threshold : float, default 1
        Items of at least this grade are relevant.

    Returns
    -------
    Evaluation
        Mean and standard error of each metric.

    Notes
    -----
    Items are matched by query and label. Each metric is computed per query over the items with gold and averaged over
    the queries in which it is defined, with equal weights. Rank correlations are always computed; NDCG,
    precision, average precision and RBP only if the gold is `graded`.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> ranking = BradleyTerry().fit(Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "a"]))
    >>> evaluate(ranking, {"a": 310.5, "b": 82.1, "c": 67.3}).accuracy
    1.0
    """
    known = gold if isinstance(gold, Gold) else Gold.read(gold)
    return evaluate_scores(ranking.scores, ranking.items, known, k, threshold=threshold, native=ranking.native)


def evaluate_scores(
    scores: npt.ArrayLike, items: Items, gold: Gold, k: int = 10, *, threshold: float = 1, native: str = "polars"
) -> Evaluation:
    """Compute metrics of scores against gold. See `evaluate`, which takes a ranking.

    Parameters
    ----------
    scores : array of float
        One score per item; larger is better.
    items : Items
        The items.
    gold : Gold
        True values of items.
    k : int, default 10
        Cut-off of NDCG, precision and the top-k overlap.
    threshold : float, default 1
        Items of at least this grade are relevant.
    native : str, default "polars"
        Data frame library of the result.

    Examples
    --------
    >>> gold = Gold.of(item=["a", "b", "c"], value=[310.5, 82.1, 67.3])
    >>> evaluate_scores([2.0, 1.0, 0.5], Items.of(["a", "b", "d"]), gold).accuracy
    1.0
    """
    estimate = _check_scores(scores, items)
    positions, truth = match_gold(items, gold)
    metrics = _metrics(gold, check_k(k), threshold)
    query = items.query[positions]
    starts = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
    parts = zip(np.split(estimate[positions], starts[1:]), np.split(truth, starts[1:]), strict=True)
    values = np.array([[metric(s, t) for metric in metrics.values()] for s, t in parts])
    by_query = pl.DataFrame({"query": items.queries[query[starts]].tolist()}).with_columns(
        pl.Series(name, values[:, n]) for n, name in enumerate(metrics)
    )
    return Evaluation(
        measures=tuple(_average(name, values[:, n]) for n, name in enumerate(metrics)),
        by_query=by_query,
        k=k,
        items=len(items),
        items_with_gold=len(positions),
        gold_never_judged=len(gold) - len(positions),
        native=native,
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
    """Return the positions of the items that have gold, ascending, and their true values."""
    scored = _names(items).with_row_index("position")
    both = scored.join(_names(gold.items).with_columns(value=gold.value), on=["query", "item"]).sort("position")
    if both.is_empty():
        raise DataError(f"None of the {len(items):,} items has gold: {_why_no_match(items, gold)}")
    return both["position"].to_numpy().astype(np.int64), both["value"].to_numpy()


def _names(items: Items) -> pl.DataFrame:
    names = {"query": items.queries[items.query].tolist(), "item": items.labels.tolist()}
    return pl.DataFrame(names, schema={"query": pl.String, "item": pl.String})


def _why_no_match(items: Items, gold: Gold) -> str:
    if items.has_queries and not gold.items.has_queries:
        return "the judgments have queries and the gold does not; pass query= to Gold.of."
    if gold.items.has_queries and not items.has_queries:
        return "the gold has queries and the judgments do not; drop the query of the gold."
    return f"for example, {items.name(0)!r} was judged and {gold.items.name(0)!r} has gold."


def _check_scores(scores: npt.ArrayLike, items: Items) -> FloatArray:
    estimate = check_column(scores, "scores")
    if len(estimate) != len(items):
        raise DataError(f"Pass one score per item, got {len(estimate)} scores for {len(items)} items.")
    return estimate


def _refuse_repeats(items: Items, codes: Int32Array) -> None:
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise DataError(f"Row {row + 1}: item {items.name(int(codes[row]))} already has gold.")


def _look_like_grades(values: FloatArray) -> bool:
    return bool(values.min() == 0 and values.max() <= _MAX_GRADE and np.all(values == np.round(values)))


_RESAMPLES = 100


def evaluate_all(rankings: Mapping[str, Ranking], gold: Gold) -> dict[str, Evaluation]:
    return {name: evaluate(ranking, gold) for name, ranking in rankings.items()}


def accuracy_gains(
    rankings: Mapping[str, Ranking], gold: Gold, baseline: str, rng: np.random.Generator
) -> dict[str, Estimate]:
    """Return the gain in accuracy over the baseline.

    The standard error comes from the spread between queries or, for a single query, from resampling its items.
    """
    found = evaluate_all(rankings, gold)
    by_query = {name: evaluation.by_query["accuracy"].to_numpy() for name, evaluation in found.items()}
    if len(by_query[baseline]) > 1:
        return {name: _mean_over_queries(values - by_query[baseline]) for name, values in by_query.items()}
    positions, truth = match_gold(rankings[baseline].items, gold)
    samples = [rng.integers(len(positions), size=len(positions)) for _ in range(_RESAMPLES)]
    resampled = {
        name: _resampled_accuracy(ranking.scores[positions], truth, samples) for name, ranking in rankings.items()
    }
    return {
        name: Estimate(found[name].accuracy - found[baseline].accuracy, float(np.nanstd(values - resampled[baseline])))
        for name, values in resampled.items()
    }


def _mean_over_queries(difference: FloatArray) -> Estimate:
    defined = difference[~np.isnan(difference)]
    if len(defined) < 2:
        return Estimate(float(np.mean(defined)) if len(defined) else np.nan, np.nan)
    return Estimate(float(np.mean(defined)), float(np.std(defined, ddof=1) / np.sqrt(len(defined))))


def _resampled_accuracy(scores: FloatArray, truth: FloatArray, samples: list[IntArray]) -> FloatArray:
    return np.array([accuracy(scores[rows], truth[rows]) for rows in samples])
