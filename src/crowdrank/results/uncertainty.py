"""How sure the scores are: joint draws, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Items

Vector = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Joint draws of all scores, one row each, around the estimate."""

    draws: npt.NDArray[np.float64]
    std_error: Vector
    method: str
    """In words: "curvature", "bootstrap over 30 annotators" …"""
    sampled: bool = False
    """Whether the draws are the posterior's own, so that a share of them is a probability."""

    def ranks(self, items: Items) -> tuple[Ranks, Ranks]:
        """The best and the worst rank of every item within its query, in each draw; they differ where draws tie."""
        best, worst = np.empty(self.draws.shape, np.int32), np.empty(self.draws.shape, np.int32)
        for query in range(len(items.queries)):
            block = items.of_query(query)
            order = np.argsort(-self.draws[:, block], axis=1, kind="stable")
            first, last = _runs(np.take_along_axis(self.draws[:, block], order, axis=1))
            np.put_along_axis(best[:, block], order, first + 1, axis=1)
            np.put_along_axis(worst[:, block], order, last + 1, axis=1)
        return best, worst

    def rank_interval(self, items: Items, level: float = 0.95) -> tuple[Ranks, Ranks]:
        """Between which ranks each item lies, with probability `level`."""
        tail = (1 - level) / 2
        best, worst = self.ranks(items)
        low = np.quantile(best, tail, axis=0, method="nearest")
        high = np.quantile(worst, 1 - tail, axis=0, method="nearest")
        return low.astype(np.int32), high.astype(np.int32)

    def chance_above(self, scores: Vector, a: int, b: int) -> float:
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


def _runs(ordered: npt.NDArray[np.float64]) -> tuple[Ranks, Ranks]:
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
