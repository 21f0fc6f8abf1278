"""Borda 1781: a point for every item it was put above, less one for every item put above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Comparisons, Judgments, PairCounts, Rankings
from crowdrank.judgments.conversions import margins
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.conclude import conclude, need
from crowdrank.models.counting import fit_counts
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class Borda:
    """Items it was put above, less items put above it."""

    reads: ClassVar[tuple[type, ...]] = (Rankings, Comparisons)

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        if isinstance(judgments, Comparisons):
            return fit_counts(self, need(Comparisons, judgments, self), _net_wins, seed=self.seed)
        rankings = need(Rankings, judgments, self)
        return conclude(self, rankings, points(rankings), measure=lambda: bootstrap(rankings, points, seed=self.seed))


def _net_wins(counts: PairCounts) -> npt.NDArray[np.float64]:
    return counts.net_wins


def points(rankings: Rankings) -> npt.NDArray[np.float64]:
    """Items below less items above, over all lists: what all pairs of all lists would add up to."""
    value = margins(rankings) * rankings.weights[rankings.list_of_row]
    return np.bincount(rankings.item, value, len(rankings.items)).astype(np.float64)
