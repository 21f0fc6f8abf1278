"""How sure the scores are: joint draws, and what follows from them.

How likely each rank is for each item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Items


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Joint draws of all scores, one row each, around the estimate."""

    draws: FloatArray
    std_error: FloatArray
    method: str
    """In words: "curvature", "bootstrap over 30 annotators" …"""
    sampled: bool = False
    """Whether the draws are the posterior's own, so that a share of them is a probability."""

    def ranks(self, items: Items) -> tuple[Int32Array, Int32Array]:
        """The best and the worst rank of every item within its query, in each draw; they differ where draws tie."""
        best, worst = np.empty(self.draws.shape, np.int32), np.empty(self.draws.shape, np.int32)
        for query in range(len(items.queries)):
            block = items.of_query(query)
            order = np.argsort(-self.draws[:, block], axis=1, kind="stable")
            first, last = _runs(np.take_along_axis(self.draws[:, block], order, axis=1))
            np.put_along_axis(best[:, block], order, first + 1, axis=1)
            np.put_along_axis(worst[:, block], order, last + 1, axis=1)
        return best, worst

    def rank_interval(self, items: Items, level: float = 0.95) -> tuple[Int32Array, Int32Array]:
        """Between which ranks each item lies, with probability `level`."""
        tail = (1 - level) / 2
        best, worst = self.ranks(items)
        low = np.quantile(best, tail, axis=0, method="nearest")
        high = np.quantile(worst, 1 - tail, axis=0, method="nearest")
        return low.astype(np.int32), high.astype(np.int32)

    def chance_above(self, scores: FloatArray, a: int, b: int) -> float:
        """P(item a truly scores above item b): the share of draws that say so, where they are the posterior's own.

        Else the difference is taken as normal. (Not where scores have no known unit: it may be sure which is better and
        open by how much.)
        """
        if self.sampled:
            above = np.sum(self.draws[:, a] > self.draws[:, b]) + 0.5 * np.sum(self.draws[:, a] == self.draws[:, b])
            return float((above + 0.5) / (len(self.draws) + 1))
        difference = float(scores[a] - scores[b])
        spread = float(np.std(self.draws[:, a] - self.draws[:, b]))
        if spread == 0:
            return 0.5 if difference == 0 else float(difference > 0)
        return 0.5 * math.erfc(-difference / spread / math.sqrt(2))


def _runs(ordered: FloatArray) -> tuple[Int32Array, Int32Array]:
    """Where the run of equal values that each value stands in begins and ends, row by row."""
    place = np.broadcast_to(np.arange(ordered.shape[1], dtype=np.int32), ordered.shape)
    same = ordered[:, 1:] == ordered[:, :-1]
    if not same.any():
        return place, place
    opens = np.pad(~same, ((0, 0), (1, 0)), constant_values=True)
    closes = np.pad(~same, ((0, 0), (0, 1)), constant_values=True)
    first = np.maximum.accumulate(np.where(opens, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, place, ordered.shape[1])[:, ::-1], axis=1)[:, ::-1]
    return first, last


@dataclass(frozen=True, eq=False, repr=False)
class RankDistributions:
    """A table of items × ranks for each query; every row adds up to one."""

    items: Items
    tables: Sequence[FloatArray]

    def __repr__(self) -> str:
        return f"<RankDistributions of {len(self.items):,} items>"

    def of(self, item: object, query: object | None = None) -> FloatArray:
        """The chances of the ranks 1, 2, … for one item."""
        code = self.items.query_code(query)
        return np.asarray(self.tables[code][self.items.index(item, query) - self.items.starts[code]])

    def frame(self, query: object | None = None) -> pl.DataFrame:
        """One row for each item of a query and each rank: item, rank and chance."""
        code = self.items.query_code(query)
        table, labels = self.tables[code], self.items.labels[self.items.of_query(code)]
        size = len(labels)
        return pl.DataFrame(
            {
                "item": np.repeat(labels, size).tolist(),
                "rank": np.tile(np.arange(1, size + 1), size),
                "chance": table.ravel(),
            }
        )
