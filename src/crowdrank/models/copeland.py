"""Copeland 1951: opponents beaten by a majority less opponents lost to."""

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
class Copeland:
    """Opponents beaten by majority, less opponents lost to."""

    reads: ClassVar[type] = Comparisons

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        return fit_counts(self, need(Comparisons, judgments, self), _victories, seed=self.seed)


def _victories(counts: PairCounts) -> npt.NDArray[np.float64]:
    sign = np.sign(counts.net)  # exactly 0 where a pair is tied but for rounding
    return counts.per_item(sign, -sign)
