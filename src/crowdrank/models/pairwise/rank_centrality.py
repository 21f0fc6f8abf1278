"""Rank centrality: stationary distribution of a random walk from losers to winners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts
from crowdrank.errors import IslandsError, SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, diagnose, require_kind
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.results import CLOSED_FORM, Convergence, Ranking

# Up to this many items the stationary distribution is computed directly; beyond it, by power iteration.
_LARGEST_SOLVED = 300
# Two iterations agree when every stationary probability agrees to this relative difference.
_LARGEST_DIFFERENCE = 1e-4

_UNIT = "relative change of a stationary probability"


@dataclass(frozen=True, kw_only=True)
class RankCentrality(Model):
    """Rank centrality: log of the stationary distribution of a random walk that moves from losers to winners.

    It estimates Bradley-Terry scores without a likelihood.

    Parameters
    ----------
    smoothing : float, default 0.5
        Wins added to both sides of every compared pair, so that every move has positive probability.
    tolerance : float, default 1e-8
        With more than 300 items: stop power iteration at this relative change.
    max_steps : int, default 20000
        Maximum number of power iterations.
    seed : int, default 0
        Seed of the bootstrap.

    Notes
    -----
    From item i the walk moves to an opponent j with probability (share of comparisons that j won) / d_max, and stays
    otherwise, where d_max is the largest number of opponents in the query.

    References
    ----------
    Negahban, Oh & Shah 2012.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> RankCentrality().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons

    smoothing: float = 0.5
    tolerance: float = 1e-8
    max_steps: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise SettingError(f"smoothing must be positive, got {self.smoothing}.")
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        health, items = diagnose(comparisons), comparisons.items
        if health.islands:
            raise IslandsError(f"{health.describe_islands()} Rank each by itself, or use a model with a prior.")
        scores, convergence = self._stationary(comparisons.counts, items)
        return build_ranking(
            self,
            comparisons,
            scores,
            convergence=convergence,
            measure=lambda: bootstrap_counts(
                comparisons, lambda counts: items.centre(self._stationary(counts, items)[0]), seed=self.seed
            ),
        )

    def _stationary(self, counts: PairCounts, items: Items) -> tuple[FloatArray, Convergence]:
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
            return _log_stationary(rate, items.starts), CLOSED_FORM
        return self._iterate(source, target, move, counts, items)

    def _iterate(
        self, source: Int32Array, target: Int32Array, move: FloatArray, counts: PairCounts, items: Items
    ) -> tuple[FloatArray, Convergence]:
        from scipy.sparse import coo_array

        size = counts.size
        stay = (1 - np.bincount(source, move, size))[:, None]
        step = coo_array((move, (target, source)), shape=(size, size)).tocsr()
        # A slowly mixing walk looks converged long before it is. Two iterations from different starts, uniform and
        # proportional to wins, must agree before we stop.
        compared = counts.per_item(counts.total, counts.total) + 1
        mass = np.stack((np.ones(size), (compared + counts.net_wins + 1) / compared), axis=1)
        mass /= _sums(mass, items)
        for n in range(1, self.max_steps + 1):
            # the lazy walk (half a step): a periodic walk converges too
            after = 0.5 * (mass + stay * mass + step @ mass)
            moved = float(np.max(np.abs(after - mass) / after))
            mass = after
            if moved <= self.tolerance:
                apart = float(np.max(np.abs(mass[:, 1] / mass[:, 0] - 1)))
                if apart <= _LARGEST_DIFFERENCE:
                    return np.log(mass[:, 0]), Convergence(True, n, moved, _UNIT)
        return np.log(mass[:, 0]), Convergence(False, self.max_steps, moved, _UNIT)


def _sums(columns: FloatArray, items: Items) -> FloatArray:
    return np.asarray(np.add.reduceat(columns, items.starts[:-1], axis=0)[items.query])


def _log_stationary(rate: FloatArray, starts: IntArray) -> FloatArray:
    """Log stationary distribution of the chain that moves from i to j at rate[i, j] (Grassmann, Taksar & Heyman 1985).

    States are eliminated one by one. Nothing is subtracted, so no digits cancel however slowly the chain mixes.
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
