"""Cormack, Clarke & Büttcher 2009: reciprocal ranks added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import SettingError
from crowdrank.judgments import Judgments, Rankings
from crowdrank.models.bootstrap import bootstrap_weights
from crowdrank.models.conclude import conclude, need
from crowdrank.models.list_counts import tie_sizes
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReciprocalRankFusion:
    """1 / (k + rank), added up over the lists that name the item.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"]]])
    >>> ReciprocalRankFusion().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    k: float = 60.0
    """The larger, the less the first places count beyond the others."""
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if not 0 <= self.k < np.inf:
            raise SettingError(f"k must not be negative, got {self.k}.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        lists = need(Rankings, judgments, self)
        worth, of_list = worths(lists, self.k), lists.list_of_row

        def score(weights: Vector) -> Vector:
            return np.bincount(lists.item, worth * weights[of_list], len(lists.items)).astype(np.float64)

        return conclude(
            self, lists, score(lists.weights), centred=False,
            measure=lambda: bootstrap_weights(lists, score, seed=self.seed),
        )  # fmt: skip


def worths(lists: Rankings, k: float) -> Vector:
    """What each row of the lists is worth; tied items share what their places are worth together."""
    rank = np.arange(len(lists.item)) - lists.offsets[:-1][lists.list_of_row] + 1
    tied, _ = tie_sizes(lists)
    place = np.repeat(np.arange(len(tied)), tied)
    return np.asarray((np.bincount(place, 1 / (k + rank)) / tied)[place])
