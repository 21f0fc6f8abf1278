"""Uncertainty of scores and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Items
from crowdrank.results.frames import as_native


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty:
    """Joint draws of all scores around the estimate.

    Parameters
    ----------
    draws : array of float, draws × items
        Draws from the posterior, from its normal approximation, or estimates from bootstrap samples.
    std_error : array of float
        Standard error of each score.
    method : str
        How the draws were made, for example "curvature at the optimum" or "bootstrap over 30 annotators".
    sampled : bool, default False
        Whether the draws come from the posterior itself, so that a fraction of draws is a posterior probability.
    """

    draws: FloatArray
    std_error: FloatArray
    method: str
    sampled: bool = False

    def __repr__(self) -> str:
        count, items = self.draws.shape
        return f"<Uncertainty: {count:,} draws of {items:,} scores by {self.method}>"

    def ranks(self, items: Items) -> tuple[Int32Array, Int32Array]:
        """Return the best and the worst rank of every item within its query in each draw; they differ in ties."""
        best, worst = np.empty(self.draws.shape, np.int32), np.empty(self.draws.shape, np.int32)
        for query in range(len(items.queries)):
            block = items.of_query(query)
            order = np.argsort(-self.draws[:, block], axis=1, kind="stable")
            first, last = _tie_bounds(np.take_along_axis(self.draws[:, block], order, axis=1))
            np.put_along_axis(best[:, block], order, first + 1, axis=1)
            np.put_along_axis(worst[:, block], order, last + 1, axis=1)
        return best, worst

    def rank_interval(self, items: Items, level: float = 0.95) -> tuple[Int32Array, Int32Array]:
        """Return the lower and upper end of an interval that contains the rank of an item with probability `level`."""
        tail = (1 - level) / 2
        best, worst = self.ranks(items)
        low = np.quantile(best, tail, axis=0, method="nearest")
        high = np.quantile(worst, 1 - tail, axis=0, method="nearest")
        return low.astype(np.int32), high.astype(np.int32)

    def probability_above(self, scores: FloatArray, a: int, b: int) -> float:
        """Return the probability that item `a` truly scores above item `b`.

        Posterior draws are counted; otherwise the difference of the scores is taken as normal. Counting is right even
        where the scores have no fixed unit: the order may be certain while the size of the difference is not.
        """
        if self.sampled:
            above = np.sum(self.draws[:, a] > self.draws[:, b]) + 0.5 * np.sum(self.draws[:, a] == self.draws[:, b])
            return float((above + 0.5) / (len(self.draws) + 1))
        difference = float(scores[a] - scores[b])
        spread = float(np.std(self.draws[:, a] - self.draws[:, b]))
        if spread == 0:
            return 0.5 if difference == 0 else float(difference > 0)
        return 0.5 * math.erfc(-difference / spread / math.sqrt(2))


def _tie_bounds(ordered: FloatArray) -> tuple[Int32Array, Int32Array]:
    """Return, row by row, the first and last position of the run of equal values around each value."""
    position = np.broadcast_to(np.arange(ordered.shape[1], dtype=np.int32), ordered.shape)
    same = ordered[:, 1:] == ordered[:, :-1]
    if not same.any():
        return position, position
    opens = np.pad(~same, ((0, 0), (1, 0)), constant_values=True)
    closes = np.pad(~same, ((0, 0), (0, 1)), constant_values=True)
    first = np.maximum.accumulate(np.where(opens, position, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, position, ordered.shape[1])[:, ::-1], axis=1)[:, ::-1]
    return first, last


@dataclass(frozen=True, eq=False, repr=False)
class RankDistributions:
    """The probability of every rank for every item.

    Parameters
    ----------
    items : Items
        The items.
    tables : sequence of arrays, items × ranks
        One table per query; every row sums to one.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    items: Items
    tables: Sequence[FloatArray]
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<RankDistributions of {len(self.items):,} items>"

    def of(self, item: object, query: object | None = None) -> FloatArray:
        """Return the probabilities of the ranks 1, 2, … for one item."""
        code = self.items.query_code(query)
        return np.asarray(self.tables[code][self.items.index(item, query) - self.items.starts[code]])

    def frame(self, query: object | None = None) -> Any:
        """Return one row per item and rank of a query: item, rank, chance."""
        code = self.items.query_code(query)
        table, labels = self.tables[code], self.items.labels[self.items.of_query(code)]
        size = len(labels)
        columns = {
            "item": np.repeat(labels, size).tolist(),
            "rank": np.tile(np.arange(1, size + 1), size),
            "chance": table.ravel(),
        }
        return as_native(pl.DataFrame(columns), self.native)
