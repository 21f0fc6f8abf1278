"""Comparison of systems: each item is the output of a system for a query, and systems are compared over queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.results.parts import Tabular, as_native
from crowdrank.results.ranking import Ranking
from crowdrank.results.scales import link_of

_MAX_CELLS = 4_000_000
"""Size of the arrays that are held at once while the draws are processed."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Systems(Tabular):
    """Probabilities that an item of one system beats an item of another, averaged over queries.

    Parameters
    ----------
    labels : array of str
        Names of the systems, best first by `overall`.
    probabilities : array, systems × systems
        Probability that the row beats the column; nan on the diagonal and where the two share no query.
    low, high : array, systems × systems
        Interval of `probabilities`.
    queries : array of int, systems × systems
        Number of queries in which both systems have items.
    overall : array
        Mean probability of each system against the others with which it shares queries.
    overall_low, overall_high : array
        Interval of `overall`.
    level : float
        Coverage of the intervals.
    resampled : bool
        Whether the intervals are for queries like these, and not for these queries alone.
    native : str, default "polars"
        Data frame library of `frame` and `pairs`.
    """

    labels: ObjectArray
    probabilities: FloatArray
    low: FloatArray
    high: FloatArray
    queries: IntArray
    overall: FloatArray
    overall_low: FloatArray
    overall_high: FloatArray
    level: float
    resampled: bool
    native: str = "polars"

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Systems: {', '.join(map(str, self.labels))}>"

    def probability(self, a: object, b: object) -> tuple[float, float, float]:
        """Return the probability that system `a` beats system `b`, with the ends of its interval."""
        names = self.labels.tolist()
        for name in (str(a), str(b)):
            if name not in names:
                raise UnknownNameError("system", name, names)
        cell = names.index(str(a)), names.index(str(b))
        return float(self.probabilities[cell]), float(self.low[cell]), float(self.high[cell])

    def to_polars(self) -> pl.DataFrame:
        """Return one row per system, best first: its mean probability to beat the others."""
        return pl.DataFrame(
            {
                "system": self.labels.tolist(),
                "probability": self.overall,
                "low": self.overall_low,
                "high": self.overall_high,
            }
        )

    def pairs(self) -> Any:
        """Return one row per pair of systems that share queries, the better system first."""
        return as_native(self.pairs_to_polars(), self.native)

    def pairs_to_polars(self) -> pl.DataFrame:
        """Return `pairs` as a polars data frame."""
        first, second = np.triu_indices(len(self), 1)
        shared = self.queries[first, second] > 0
        cells = first[shared], second[shared]
        return pl.DataFrame(
            {
                "system": self.labels[cells[0]].tolist(),
                "other": self.labels[cells[1]].tolist(),
                "probability": self.probabilities[cells],
                "low": self.low[cells],
                "high": self.high[cells],
                "queries": self.queries[cells],
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON, nan as None."""
        tables = {"order": self.to_polars(), "pairs": self.pairs_to_polars()}
        return {name: table.fill_nan(None).to_dicts() for name, table in tables.items()} | {
            "level": self.level,
            "queries_resampled": self.resampled,
        }


def compare_systems(
    ranking: Ranking,
    system_of_item: Sequence[Any] | AnyArray,
    *,
    level: float = 0.95,
    queries: Literal["resampled", "fixed"] = "resampled",
    uncertainty: bool = True,
    seed: int = 0,
) -> Systems:
    """Estimate how often each system beats each other system.

    Parameters
    ----------
    ranking : Ranking
        A ranking of items by a model with a logistic or probit link.
    system_of_item : sequence of str
        One system per item, in the order of ``ranking.items``.
    level : float, default 0.95
        Coverage of the intervals.
    queries : {"resampled", "fixed"}, default "resampled"
        Whether the intervals also cover that other queries could have been drawn.
    uncertainty : bool, default True
        Whether to compute intervals.
    seed : int, default 0
        Seed of the query weights.

    Returns
    -------
    Systems
        The systems, best first.

    Notes
    -----
    The probability that system A beats B is the mean, over the queries in which both have items, of the probability
    that A's item beats B's given their scores (Bugakova et al. 2019, §6). Intervals come from the joint draws of the
    scores; "resampled" adds a Bayesian bootstrap over queries. A learnt spread of scores shrinks what all queries
    share: fit with a wide prior such as ``prior_scale=3``.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a1", "b2"] * 8, ["b1", "a2"] * 8, ["a1", "a2"] * 7 + ["b1", "b2"], query=[1, 2] * 8)
    >>> ranking = BradleyTerry(prior_scale=3).fit(votes)
    >>> compare_systems(ranking, [label[0] for label in ranking.items.labels])
    <Systems: a, b>
    """
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")
    if queries not in ("resampled", "fixed"):
        raise SettingError(f'queries must be "resampled" or "fixed", got {queries!r}.')
    link = link_of(ranking, "compare systems")
    labels, code = _system_codes(ranking.items, system_of_item)
    pairs = _item_pairs(ranking.items, code, len(labels))
    in_cells = _cell_means(pairs, link(ranking.scores[pairs.first] - ranking.scores[pairs.second]))
    average = pairs.average(in_cells)
    samples = np.full((1, len(average)), np.nan)
    resampled = queries == "resampled" and len(ranking.items.queries) > 1
    if uncertainty:
        draws = np.concatenate(list(_cells_of_draws(pairs, ranking.uncertainty.draws, link)))
        # Bayesian bootstrap: exponential weights, normalised by the weighted mean.
        weight = np.random.default_rng(seed).exponential(size=(len(draws), len(ranking.items.queries)))
        samples = _samples(pairs, in_cells, draws, weight if resampled else None)
    return _systems(labels, pairs, average, samples, level, resampled, ranking.native)


def _system_codes(items: Items, system_of_item: Sequence[Any] | AnyArray) -> tuple[ObjectArray, IntArray]:
    names = ["" if system is None or system != system else str(system) for system in system_of_item]
    if len(names) != len(items):
        got = "1 system label" if len(names) == 1 else f"{len(names):,} system labels"
        raise DataError(f"Got {got} for {len(items):,} items; pass one per item.")
    if missing := [items.name(n) for n, name in enumerate(names) if not name]:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise DataError(f"{len(missing):,} of {len(items):,} items have no system: {few}.")
    labels, code = np.unique(np.array(names, dtype=object), return_inverse=True)
    if len(labels) < 2:
        raise DataError(f"All items belong to the system {labels[0]!r}; comparing needs at least two systems.")
    return labels, code.astype(np.int64)


class _ItemPairs(NamedTuple):
    """Pairs of items of two systems in one query, sorted by cell: by the two systems, then by query."""

    first: IntArray
    second: IntArray
    starts: IntArray
    """First pair of each cell."""
    pair: IntArray
    """Pair of systems of each cell, numbered among the pairs that share queries."""
    query: IntArray
    """Query of each cell."""
    systems: tuple[IntArray, IntArray]
    """The two systems of each pair of systems."""

    def average(self, cells: FloatArray, weight: FloatArray | None = None) -> FloatArray:
        """Return the (weighted) mean over queries for each pair of systems, along the last axis."""
        begin = np.flatnonzero(np.append(True, self.pair[1:] != self.pair[:-1]))
        weights = np.ones(len(self.pair)) if weight is None else weight[..., self.query]
        return np.asarray(np.add.reduceat(cells * weights, begin, axis=-1) / np.add.reduceat(weights, begin, axis=-1))


def _item_pairs(items: Items, code: IntArray, count: int) -> _ItemPairs:
    by_query = [_pairs_of_query(items.of_query(query), code) for query in range(len(items.queries))]
    first, second = (np.concatenate(side) for side in zip(*by_query, strict=True))
    if not len(first):
        raise DataError("No query has items of two systems, so systems cannot be compared.")
    key = code[first] * count + code[second]
    order = np.lexsort((items.query[first], key))
    first, second, key, query = first[order], second[order], key[order], items.query[first][order].astype(np.int64)
    starts = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (query[1:] != query[:-1])))
    pairs, pair = np.unique(key[starts], return_inverse=True)
    return _ItemPairs(first, second, starts, pair, query[starts], (pairs // count, pairs % count))


def _pairs_of_query(block: slice, code: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of items of different systems in a query, the system with the lower code first."""
    order = block.start + np.argsort(code[block], kind="stable")
    first, second = (order[side] for side in np.triu_indices(len(order), 1))
    differ = code[first] != code[second]
    return first[differ], second[differ]


def _cell_means(pairs: _ItemPairs, probability: FloatArray) -> FloatArray:
    """Mean of each cell over its pairs of items."""
    size = np.diff(np.append(pairs.starts, len(pairs.first)))
    return np.asarray(np.add.reduceat(probability, pairs.starts, axis=-1) / size)


def _cells_of_draws(
    pairs: _ItemPairs, draws: FloatArray, link: Callable[[FloatArray], FloatArray]
) -> Iterator[FloatArray]:
    """Means of the cells in each draw, a block of draws at a time."""
    step = max(1, _MAX_CELLS // len(pairs.first))
    for begin in range(0, len(draws), step):
        block = draws[begin : begin + step]
        yield _cell_means(pairs, link(block[:, pairs.first] - block[:, pairs.second]))


def _samples(pairs: _ItemPairs, cells: FloatArray, draws: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Samples of the mean probability of each pair of systems under other scores and, with weights, other queries.

    Errors of the scores make queries look more different than they are. The draws cover that part already, so only the
    rest of the variance between queries is resampled.
    """
    centre = pairs.average(cells)
    fixed = pairs.average(draws)
    # By Jensen's inequality the mean of probabilities is nearer to one half than the probability at the mean: recentre.
    sample = fixed - fixed.mean(axis=0) + centre
    if weight is None:
        return np.asarray(np.clip(sample, 0.0, 1.0))
    deviation = cells - centre[pairs.pair]
    total = pairs.average(deviation**2)
    by_scores = pairs.average(np.var(draws, axis=0))
    count = np.bincount(pairs.pair)
    between = np.maximum(total * count / np.maximum(count - 1, 1) - by_scores, 0.0)
    # A mean under random weights has the variance total / (count + 1); between / count is the target.
    scale = np.sqrt(np.divide(between * (count + 1), total * count, out=np.zeros_like(total), where=total > 0))
    by_queries = scale * pairs.average(np.broadcast_to(deviation, draws.shape), weight)
    return np.asarray(np.clip(sample + by_queries, 0.0, 1.0))


def _systems(
    labels: ObjectArray,
    pairs: _ItemPairs,
    probability: FloatArray,
    samples: FloatArray,
    level: float,
    resampled: bool,
    native: str,
) -> Systems:
    count, (first, second) = len(labels), pairs.systems
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(samples, tails, axis=0)

    def square(above: FloatArray, below: FloatArray, empty: float = np.nan) -> FloatArray:
        table = np.full((count, count), empty)
        table[first, second], table[second, first] = above, below
        return table

    shared = np.bincount(pairs.pair).astype(np.float64)
    queries = square(shared, shared, 0.0).astype(np.int64)
    overall = _overall(first, second, count, probability[None, :])[0]
    ends = np.quantile(_overall(first, second, count, samples), tails, axis=0)
    order = np.argsort(-np.nan_to_num(overall, nan=-1.0), kind="stable")
    cells = np.ix_(order, order)
    return Systems(
        labels=labels[order],
        probabilities=square(probability, 1 - probability)[cells],
        low=square(low, 1 - high)[cells],
        high=square(high, 1 - low)[cells],
        queries=queries[cells],
        overall=overall[order],
        overall_low=ends[0][order],
        overall_high=ends[1][order],
        level=level,
        resampled=resampled,
        native=native,
    )


def _overall(first: IntArray, second: IntArray, count: int, probability: FloatArray) -> FloatArray:
    """Mean probability of each system against those with which it shares queries, row by row; nan without any."""
    total, opponents = np.zeros((len(probability), count)), np.zeros(count)
    for n, (a, b) in enumerate(zip(first, second, strict=True)):
        total[:, a] += probability[:, n]
        total[:, b] += 1 - probability[:, n]
        opponents[[a, b]] += 1
    return np.divide(total, opponents, out=np.full_like(total, np.nan), where=opponents > 0)
