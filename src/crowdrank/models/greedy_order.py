"""Cohen, Schapire & Singer 1999: take the item most preferred over the rest, then go on without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Comparisons, Items, Judgments, PairCounts
from crowdrank.judgments.counts import ROUNDING
from crowdrank.models.conclude import need
from crowdrank.models.counting import fit_order
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class GreedyOrder:
    """Again and again the item most preferred over those left.

    Preference is the share of judgments; equals go by Borda, then by label.
    """

    reads: ClassVar[type] = Comparisons
    gives_order_only: ClassVar[bool] = True

    seed: int = 0
    """Of the bootstrap."""

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        return fit_order(self, comparisons, _greedy, self.seed)


def _greedy(counts: PairCounts, items: Items, lot: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    total = counts.total
    lead = np.divide(counts.net, total, out=np.zeros(len(counts)), where=total > 0)
    # laid out so that equal potentials go by Borda, then by lot: the first of equals is taken
    turn = np.lexsort((lot, -counts.net_win_levels, items.query))
    place = np.empty(counts.size, np.int64)
    place[turn] = np.arange(counts.size)
    one, other = place[counts.first], place[counts.second]
    by_one = np.argsort(np.concatenate((one, other)), kind="stable")
    rival, leads = np.concatenate((other, one))[by_one], np.concatenate((lead, -lead))[by_one]
    begins = np.searchsorted(np.concatenate((one, other))[by_one], np.arange(counts.size + 1))
    potential = counts.per_item(lead, -lead)[turn]
    scores = np.empty(counts.size)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        left = potential[block]
        for taken in range(len(left)):
            best = block.start + int(np.argmax(left >= left.max() - ROUNDING))
            scores[turn[best]] = -float(taken)
            rows = slice(begins[best], begins[best + 1])
            potential[rival[rows]] += leads[rows]
            potential[best] = -np.inf
    return scores
