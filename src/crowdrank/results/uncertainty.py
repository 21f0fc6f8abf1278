"""How sure the scores are: joint draws, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Items

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Joint draws of all scores, one row each, around the estimate."""

    draws: npt.NDArray[np.float64]
    std_error: Vector
    method: str
    """In words: "curvature", "bootstrap over 30 annotators" …"""

    def ranks(self, items: Items) -> npt.NDArray[np.int32]:
        """The rank of every item within its query, in each draw."""
        found = np.empty(self.draws.shape, np.int32)
        for query in range(len(items.queries)):
            block = items.of_query(query)
            order = np.argsort(-self.draws[:, block], axis=1, kind="stable")
            places = np.arange(1, order.shape[1] + 1, dtype=np.int32)
            np.put_along_axis(found[:, block], order, np.broadcast_to(places, order.shape), axis=1)
        return found

    def rank_interval(self, items: Items, level: float = 0.95) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Between which ranks each item lies, with probability `level`."""
        tail = (1 - level) / 2
        low, high = np.quantile(self.ranks(items), [tail, 1 - tail], axis=0, method="nearest")
        return low.astype(np.int32), high.astype(np.int32)

    def chance_above(self, scores: Vector, a: int, b: int) -> float:
        """P(item a truly scores above item b), the difference taken as normal."""
        difference = float(scores[a] - scores[b])
        spread = float(np.std(self.draws[:, a] - self.draws[:, b]))
        if spread == 0:
            return 0.5 if difference == 0 else float(difference > 0)
        return 0.5 * math.erfc(-difference / spread / math.sqrt(2))
