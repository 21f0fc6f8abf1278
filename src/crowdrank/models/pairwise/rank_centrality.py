"""Negahban, Oh & Shah 2012: where a walk that moves from losers to winners spends its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts
from crowdrank.engines import Engine, here
from crowdrank.errors import DisconnectedError, SettingError
from crowdrank.models.base import BaseModel, check_solver, conclude, health_of, need
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.results import OUTRIGHT, Convergence, Ranking

# Up to this many items the walk is solved outright; beyond it, it is followed until it settles.
_LARGEST_SOLVED = 300
# Two walks have met when they give every item the same time, to this share of it.
_LARGEST_DIFFERENCE = 1e-4

_UNIT = "of some item's time still moving"


@dataclass(frozen=True, kw_only=True)
class RankCentrality(BaseModel):
    """How long a walk from losers to winners stays at an item.

    The logarithm of that time estimates Bradley-Terry's scores.
    """

    reads: ClassVar[type] = Comparisons

    smoothing: float = 0.5
    """Wins added to both sides of every compared pair, so that no way is closed."""
    tolerance: float = 1e-8
    """With more than 300 items: stop when a step moves less than this share of the walk."""
    max_steps: int = 20_000
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise SettingError(f"smoothing must be positive, got {self.smoothing}.")
        check_solver(self)

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        health, items = health_of(comparisons), comparisons.items
        if health.disconnected_components:
            raise DisconnectedError(f"{health.describe_components()} Rank each by itself, or use a model with a prior.")
        scores, convergence = self._walk(comparisons.counts, items)
        return conclude(
            self,
            comparisons,
            scores,
            convergence=convergence,
            measure=lambda: bootstrap_counts(
                comparisons, lambda counts: items.centre(self._walk(counts, items)[0]), seed=self.seed
            ),
        )

    def _walk(self, counts: PairCounts, items: Items) -> tuple[FloatArray, Convergence]:
        total = counts.total + 2 * self.smoothing
        up = (counts.first_wins + counts.ties / 2 + self.smoothing) / total
        source = np.concatenate((counts.second, counts.first))
        target = np.concatenate((counts.first, counts.second))
        degree = np.bincount(source, minlength=counts.size)
        busiest = np.maximum.reduceat(degree, items.starts[:-1])[items.query]
        move = np.concatenate((up, 1 - up)) / busiest[source]
        if counts.size <= _LARGEST_SOLVED:
            rate = np.zeros((counts.size, counts.size))
            rate[source, target] = move
            return _log_time(rate, items.starts), OUTRIGHT
        return self._iterate(source, target, move, counts, items)

    def _iterate(
        self, source: Int32Array, target: Int32Array, move: FloatArray, counts: PairCounts, items: Items
    ) -> tuple[FloatArray, Convergence]:
        from scipy.sparse import coo_array

        size = counts.size
        stay = (1 - np.bincount(source, move, size))[:, None]
        step = coo_array((move, (target, source)), shape=(size, size)).tocsr()
        # Where a walk can hardly leave one corner for another it looks settled long before it is: two walks that
        # start apart, everywhere alike and where the wins are, have settled only when they agree.
        met = counts.per_item(counts.total, counts.total) + 1
        time = np.stack((np.ones(size), (met + counts.net_wins + 1) / met), axis=1)
        time /= _sums(time, items)
        for n in range(1, self.max_steps + 1):
            # half a step at a time: a walk that swings between two sides settles too
            after = 0.5 * (time + stay * time + step @ time)
            moved = float(np.max(np.abs(after - time) / after))
            time = after
            if moved <= self.tolerance:
                apart = float(np.max(np.abs(time[:, 1] / time[:, 0] - 1)))
                if apart <= _LARGEST_DIFFERENCE:
                    return np.log(time[:, 0]), Convergence(True, n, moved, _UNIT)
        return np.log(time[:, 0]), Convergence(False, self.max_steps, moved, _UNIT)


def _sums(columns: FloatArray, items: Items) -> FloatArray:
    return np.asarray(np.add.reduceat(columns, items.starts[:-1], axis=0)[items.query])


def _log_time(rate: FloatArray, starts: IntArray) -> FloatArray:
    """Log of the time spent at each item, the walk moving from i to j at rate[i, j].

    Grassmann, Taksar & Heyman 1985: items are taken out one by one. Nothing is subtracted, so no digit is lost
    however rarely the walk gets from one corner to another.
    """
    for k in range(len(rate) - 1, 0, -1):
        if (out := rate[k, :k].sum()) > 0:
            rate[:k, k] /= out
            rate[:k, :k] += np.outer(rate[:k, k], rate[k, :k])
    with np.errstate(divide="ignore"):
        log_rate = np.log(rate)
    found = np.zeros(len(rate))
    for k in np.setdiff1d(np.arange(len(rate)), starts):
        found[k] = np.logaddexp.reduce(found[:k] + log_rate[:k, k])
    return found
