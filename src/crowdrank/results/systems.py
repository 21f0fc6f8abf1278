"""Systems, of which each query's items are the work: how often one beats another, over all queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import DataError, SettingError
from crowdrank.results.ranking import Ranking

# Models whose scores are strengths on a scale that turns margins into chances.
_LOGISTIC = (
    "bradley-terry",
    "crowd-bt",
    "bayesian-crowd-bt",
    "factor-bt",
    "variance-bt",
    "plackett-luce",
    "rank-centrality",
)
_PROBIT = ("thurstone",)
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Systems:
    """P(one system's item beats another's), as the mean over the queries in which both have some."""

    labels: ObjectArray
    """Best first, by the mean chance against the others."""
    chance: FloatArray
    """Row beats column; nan where the two never met, and on the diagonal."""
    low: FloatArray
    high: FloatArray
    queries: IntArray
    """In how many queries row and column met."""
    overall: FloatArray
    """The mean chance of each against the others it met, with the ends of its interval."""
    overall_low: FloatArray
    overall_high: FloatArray
    level: float
    resampled: bool
    """Whether intervals speak of queries like these, or of these queries alone."""

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Systems: {', '.join(map(str, self.labels))}>"

    def probability(self, a: object, b: object) -> tuple[float, float, float]:
        """P(a beats b), and its interval."""
        names = self.labels.tolist()
        for name in (str(a), str(b)):
            if name not in names:
                raise DataError(f"There is no system {name!r}: there are {', '.join(map(str, names))}.")
        at = names.index(str(a)), names.index(str(b))
        return float(self.chance[at]), float(self.low[at]), float(self.high[at])

    def frame(self) -> pl.DataFrame:
        """One row a system, best first: its mean chance against the others."""
        return pl.DataFrame(
            {"system": self.labels.tolist(), "chance": self.overall, "low": self.overall_low, "high": self.overall_high}
        )

    def pairs(self) -> pl.DataFrame:
        """One row for each two systems that met, the better placed first."""
        first, second = np.triu_indices(len(self), 1)
        met = self.queries[first, second] > 0
        at = first[met], second[met]
        return pl.DataFrame(
            {
                "system": self.labels[at[0]].tolist(),
                "other": self.labels[at[1]].tolist(),
                "chance": self.chance[at],
                "low": self.low[at],
                "high": self.high[at],
                "queries": self.queries[at],
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, nan as None."""
        tables = {"order": self.frame(), "pairs": self.pairs()}
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
    """How often each system beats each (Bugakova et al. 2019, §6): the chance by the scores, averaged over queries.

    `system_of_item` has one label for each of `ranking.items`. Intervals come from the joint draws of all scores; with
    queries "resampled" they also count in that other queries would have been drawn, where there are several.
    """
    if not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {level}.")
    if queries not in ("resampled", "fixed"):
        raise SettingError(f"queries must be resampled or fixed, got {queries!r}.")
    link = _link_of(ranking)
    labels, code = _codes(ranking.items, system_of_item)
    meetings = _meetings(ranking.items, code, len(labels))
    chance = _means(meetings, link(ranking.scores[meetings.first] - ranking.scores[meetings.second]))
    average = meetings.average(chance)
    samples = np.full((1, len(average)), np.nan)
    resampled = queries == "resampled" and len(ranking.items.queries) > 1
    if uncertainty:
        drawn = np.concatenate(list(_drawn(meetings, ranking.uncertainty.draws, link)))
        weight = np.random.default_rng(seed).exponential(size=(len(drawn), len(ranking.items.queries)))
        samples = _samples(meetings, chance, drawn, weight if resampled else None)
    return _conclude(labels, meetings, average, samples, level, resampled)


def _link_of(ranking: Ranking) -> Callable[[FloatArray], FloatArray]:
    probit = ranking.model in _PROBIT or ranking.settings.get("link") == "probit"
    if not probit and ranking.model not in _LOGISTIC:
        raise SettingError(
            f"Scores of {ranking.model} are no strengths, so they say who is ahead but not how often it wins: "
            f"compare systems by one of {', '.join((*_LOGISTIC, *_PROBIT))}."
        )
    return _normal if probit else _logistic


def _logistic(margin: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(margin / 2))


def _normal(margin: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(margin / np.sqrt(2)))


def _codes(items: Items, system_of_item: Sequence[Any] | AnyArray) -> tuple[ObjectArray, IntArray]:
    names = ["" if system is None or system != system else str(system) for system in system_of_item]
    if len(names) != len(items):
        raise DataError(f"There are {len(names):,} systems given for {len(items):,} items: one is needed for each.")
    if missing := [items.name(place) for place, name in enumerate(names) if not name]:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise DataError(f"{len(missing):,} of {len(items):,} items have no system: {few}.")
    labels, code = np.unique(np.array(names, dtype=object), return_inverse=True)
    if len(labels) < 2:
        raise DataError(f"All items are of one system, {labels[0]!r}: there is nothing to compare it with.")
    return labels, code.astype(np.int64)


class _Meetings(NamedTuple):
    """Pairs of items of two systems in one query, sorted by cell: by the two systems, then by query."""

    first: IntArray
    second: IntArray
    starts: IntArray
    """Where each cell begins."""
    pair: IntArray
    """Of each cell: which two systems, as a number below the count of pairs that met."""
    query: IntArray
    """Of each cell."""
    systems: tuple[IntArray, IntArray]
    """The two systems of each pair."""

    def average(self, cells: FloatArray, weight: FloatArray | None = None) -> FloatArray:
        """The mean over queries of each pair of systems, along the last axis."""
        begin = np.flatnonzero(np.append(True, self.pair[1:] != self.pair[:-1]))
        heavy = np.ones(len(self.pair)) if weight is None else weight[..., self.query]
        return np.asarray(np.add.reduceat(cells * heavy, begin, axis=-1) / np.add.reduceat(heavy, begin, axis=-1))


def _meetings(items: Items, code: IntArray, count: int) -> _Meetings:
    found = [_of_query(items.of_query(query), code) for query in range(len(items.queries))]
    first, second = (np.concatenate(side) for side in zip(*found, strict=True))
    if not len(first):
        raise DataError("No query has items of two systems, so nothing tells which is better.")
    key = code[first] * count + code[second]
    order = np.lexsort((items.query[first], key))
    first, second, key, query = first[order], second[order], key[order], items.query[first][order].astype(np.int64)
    starts = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (query[1:] != query[:-1])))
    pairs, pair = np.unique(key[starts], return_inverse=True)
    return _Meetings(first, second, starts, pair, query[starts], (pairs // count, pairs % count))


def _of_query(block: slice, code: IntArray) -> tuple[IntArray, IntArray]:
    """Every two items of a query that are of different systems, the system with the lower code first."""
    order = block.start + np.argsort(code[block], kind="stable")
    first, second = (order[side] for side in np.triu_indices(len(order), 1))
    apart = code[first] != code[second]
    return first[apart], second[apart]


def _means(meetings: _Meetings, chance: FloatArray) -> FloatArray:
    """Of each cell, over its pairs of items."""
    size = np.diff(np.append(meetings.starts, len(meetings.first)))
    return np.asarray(np.add.reduceat(chance, meetings.starts, axis=-1) / size)


def _drawn(meetings: _Meetings, draws: FloatArray, link: Callable[[FloatArray], FloatArray]) -> Iterator[FloatArray]:
    """The cells in each draw, a few draws at a time."""
    step = max(1, _CELLS_AT_ONCE // len(meetings.first))
    for begin in range(0, len(draws), step):
        some = draws[begin : begin + step]
        yield _means(meetings, link(some[:, meetings.first] - some[:, meetings.second]))


def _samples(meetings: _Meetings, chance: FloatArray, drawn: FloatArray, weight: FloatArray | None) -> FloatArray:
    """The mean chance of each pair of systems, were the scores otherwise and, with weights, the queries too.

    Scores that are not sure make queries seem to differ more than they do. Only the rest of the spread between
    queries is sampled, as the draws count in the first part already.
    """
    centre = meetings.average(chance)
    fixed = meetings.average(drawn)
    # a mean of chances lies nearer to one half than the chance at the mean: moved back to where it should be
    sample = fixed - fixed.mean(axis=0) + centre
    if weight is None:
        return np.asarray(np.clip(sample, 0.0, 1.0))
    away = chance - centre[meetings.pair]
    seen, unsure, met = meetings.average(away**2), meetings.average(np.var(drawn, axis=0)), np.bincount(meetings.pair)
    spread = np.maximum(seen * met / np.maximum(met - 1, 1) - unsure, 0.0)
    # a mean under random weights has the variance seen / (met + 1), where spread / met is meant
    kept = np.sqrt(np.divide(spread * (met + 1), seen * met, out=np.zeros_like(seen), where=seen > 0))
    elsewhere = kept * meetings.average(np.broadcast_to(away, drawn.shape), weight)
    return np.asarray(np.clip(sample + elsewhere, 0.0, 1.0))


def _conclude(
    labels: ObjectArray, meetings: _Meetings, chance: FloatArray, samples: FloatArray, level: float, resampled: bool
) -> Systems:
    count, (first, second) = len(labels), meetings.systems
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(samples, tails, axis=0)

    def square(above: FloatArray, below: FloatArray, empty: float = np.nan) -> FloatArray:
        table = np.full((count, count), empty)
        table[first, second], table[second, first] = above, below
        return table

    met = np.bincount(meetings.pair).astype(np.float64)
    queries = square(met, met, 0.0).astype(np.int64)
    overall = _overall(first, second, count, chance[None, :])[0]
    ends = np.quantile(_overall(first, second, count, samples), tails, axis=0)
    order = np.argsort(-np.nan_to_num(overall, nan=-1.0), kind="stable")
    at = np.ix_(order, order)
    return Systems(
        labels=labels[order],
        chance=square(chance, 1 - chance)[at],
        low=square(low, 1 - high)[at],
        high=square(high, 1 - low)[at],
        queries=queries[at],
        overall=overall[order],
        overall_low=ends[0][order],
        overall_high=ends[1][order],
        level=level,
        resampled=resampled,
    )


def _overall(first: IntArray, second: IntArray, count: int, chance: FloatArray) -> FloatArray:
    """The mean chance of each system against those it met, row by row; nan for one that met none."""
    total, met = np.zeros((len(chance), count)), np.zeros(count)
    for n, (a, b) in enumerate(zip(first, second, strict=True)):
        total[:, a] += chance[:, n]
        total[:, b] += 1 - chance[:, n]
        met[[a, b]] += 1
    return np.divide(total, met, out=np.full_like(total, np.nan), where=met > 0)
