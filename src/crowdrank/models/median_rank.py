"""Fagin, Kumar & Sivakumar 2003: the median of the places an item was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Judgments, Rankings
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.conclude import conclude, need
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MedianRank:
    """The median place an item was given, as a share of the list's length."""

    reads: ClassVar[type] = Rankings

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        rankings = need(Rankings, judgments, self)
        return conclude(
            self, rankings, _score(rankings),
            measure=lambda: bootstrap(rankings, lambda r: r.items.centre(_score(r)), seed=self.seed),
        )  # fmt: skip


def _score(rankings: Rankings) -> Vector:
    weight = rankings.weights[rankings.list_of_row]
    return -weighted_medians(rankings.item, relative_places(rankings), weight, len(rankings.items))


def relative_places(rankings: Rankings) -> Vector:
    """Places from 0 (top) to 1 (bottom) of each list, tied items in the middle of theirs."""
    rows = np.arange(len(rankings.item))
    fresh = np.append(True, rankings.place[1:] != rankings.place[:-1])
    fresh[rankings.offsets[:-1]] = True
    tie = np.cumsum(fresh) - 1
    middle = np.bincount(tie, rows) / np.bincount(tie)
    lengths = rankings.lengths[rankings.list_of_row]
    return np.asarray((middle[tie] - rankings.offsets[:-1][rankings.list_of_row] + 0.5) / lengths)


def weighted_medians(group: npt.NDArray[np.int32], value: Vector, weight: Vector, size: int) -> Vector:
    """The weighted median of each group; halfway where the weight splits evenly; 0.5 for empty groups."""
    order = np.lexsort((value, group))
    group, value, weight = group[order], value[order], weight[order]
    found = np.full(size, 0.5)
    present, begins = np.unique(group, return_index=True)
    total = np.add.reduceat(weight, begins)
    running = np.cumsum(weight)
    before = running[begins] - weight[begins]
    half = before + total / 2
    slack = 1e-9 * np.maximum(total, 1.0)  # rounding must not decide between the two middle values
    ends = np.append(begins[1:], len(group)) - 1
    low = np.minimum(np.searchsorted(running, half - slack), ends)
    high = np.minimum(np.searchsorted(running, half + slack), ends)
    found[present] = (value[low] + value[high]) / 2
    return found
