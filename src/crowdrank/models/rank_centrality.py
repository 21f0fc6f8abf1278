"""Negahban, Oh & Shah 2012: where a walk that moves from losers to winners spends its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import IslandsError, SettingError
from crowdrank.judgments import Comparisons, Items, Judgments, PairCounts
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.models.conclude import conclude, health_of, need
from crowdrank.results import Convergence, Ranking

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RankCentrality:
    """How long a walk from losers to winners stays at an item.

    The logarithm of that time estimates Bradley-Terry's scores.
    """

    reads: ClassVar[type] = Comparisons

    smoothing: float = 0.5
    """Wins added to both sides of every compared pair, so that no way is closed."""
    tolerance: float = 1e-8
    """Stop when a step moves less than this share of the walk."""
    max_steps: int = 20_000
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise SettingError(f"smoothing must be positive, got {self.smoothing}.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        health, items = health_of(comparisons), comparisons.items
        if health.islands:
            raise IslandsError(f"{health.describe_islands()} Rank each by itself, or use a model with a prior.")
        scores, convergence = self._walk(comparisons.counts, items)
        return conclude(
            self, comparisons, scores, convergence=convergence,
            measure=lambda: bootstrap_counts(
                comparisons, lambda counts: items.centre(self._walk(counts, items)[0]), seed=self.seed
            ),
        )  # fmt: skip

    def _walk(self, counts: PairCounts, items: Items) -> tuple[Vector, Convergence]:
        from scipy.sparse import coo_array

        total = counts.total + 2 * self.smoothing
        up = (counts.first_wins + counts.ties / 2 + self.smoothing) / total
        source = np.concatenate((counts.second, counts.first))
        target = np.concatenate((counts.first, counts.second))
        degree = np.bincount(source, minlength=counts.size)
        busiest = np.maximum.reduceat(degree, items.starts[:-1])[items.query]
        move = np.concatenate((up, 1 - up)) / busiest[source]
        stay = 1 - np.bincount(source, move, counts.size)
        step = coo_array((move, (target, source)), shape=(counts.size, counts.size)).tocsr()
        time = np.ones(counts.size)
        for n in range(1, self.max_steps + 1):
            # half a step at a time: a walk that swings between two sides settles too
            after = 0.5 * (time + stay * time + step @ time)
            moved = float(np.max(np.abs(after - time) / after))
            time = after
            if moved <= self.tolerance:
                return np.log(time), Convergence(True, n, moved)
        return np.log(time), Convergence(False, self.max_steps, moved)
