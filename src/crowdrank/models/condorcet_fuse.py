"""Montague & Aslam 2002: an order in which each item beats the next by majority (a Hamiltonian path)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Comparisons, Items, Judgments, PairCounts
from crowdrank.models.conclude import need
from crowdrank.models.counting import fit_order
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class CondorcetFuse:
    """An order in which no item loses by majority to the next.

    Pairs without a majority go by Borda, then by label.
    """

    reads: ClassVar[type] = Comparisons
    gives_order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        return fit_order(self, comparisons, _path, self.seed)


def _path(counts: PairCounts, items: Items, lot: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    net = counts.net
    margin = dict(zip(zip(counts.first.tolist(), counts.second.tolist(), strict=True), net.tolist(), strict=True))
    borda = np.lexsort((lot, -counts.net_win_levels, items.query))
    turn = np.empty(counts.size, np.int64)
    turn[borda] = np.arange(counts.size)

    def beats(a: int, b: int) -> bool:
        majority = margin.get((a, b), 0.0) if a < b else -margin.get((b, a), 0.0)
        return bool(majority > 0 or (majority == 0 and turn[a] < turn[b]))

    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        path: list[int] = []
        for item in borda[items.of_query(query)].tolist():
            low, high = 0, len(path)  # everything found: path[low-1] beats item, item beats path[high]
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if beats(item, path[middle]) else (middle + 1, high)
            path.insert(low, item)
        scores[path] = -np.arange(len(path), dtype=np.float64)
    return scores
