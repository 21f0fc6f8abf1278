"""The share of comparisons an item won, ties counted half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Comparisons, Judgments, PairCounts
from crowdrank.models.conclude import need
from crowdrank.models.counting import fit_counts
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """The share of its comparisons an item won, whoever it met."""

    reads: ClassVar[type] = Comparisons

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        return fit_counts(self, need(Comparisons, judgments, self), _share, seed=self.seed, centred=False)


def _share(counts: PairCounts) -> npt.NDArray[np.float64]:
    won = counts.per_item(counts.first_wins + counts.ties / 2, counts.second_wins + counts.ties / 2)
    met = counts.per_item(counts.total, counts.total)
    share = np.full(counts.size, 0.5)
    np.divide(won, met, out=share, where=met > 0)
    return share
