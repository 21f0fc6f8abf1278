"""Rank centrality: stationary distribution of a random walk from losers to winners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Items, Judgments, PairCounts
from crowdrank.errors import DisconnectedError, SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, diagnose, require_kind
from crowdrank.models.bootstrap import affordable_replicates, bootstrap_counts
from crowdrank.results import CLOSED_FORM, Convergence, Ranking

# Up to this many items in a query the stationary distribution is computed directly; beyond it, by power iteration.
_LARGEST_SOLVED = 2_000
_BLOCK = 32
# Below this share of the largest probability, rounding may matter to a linear system.
_SMALLEST_MASS = 1e-9
# Two iterations agree when every stationary probability agrees to this relative difference.
_LARGEST_DIFFERENCE = 1e-4
# Resamples begin at the estimate, and their iterations stop sooner.
_RESAMPLED_TOLERANCE, _RESAMPLED_STEPS = 1e-5, 1_000

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
        With more than 2,000 items in a query: stop power iteration at this relative change.
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
        diagnostics, items = diagnose(comparisons), comparisons.items
        if diagnostics.disconnected_components:
            raise DisconnectedError(
                f"{diagnostics.describe_components()} Rank each by itself, or use a model with a prior."
            )
        scores, convergence = self._stationary(comparisons.counts, items)
        return build_ranking(
            self,
            comparisons,
            scores,
            convergence=convergence,
            measure=lambda: bootstrap_counts(
                comparisons,
                lambda counts: items.centre(self._resampled_stationary(counts, items, scores)),
                seed=self.seed,
                replicates=affordable_replicates(self._operations(comparisons.counts, items)),
            ),
        )

    def _stationary(self, counts: PairCounts, items: Items) -> tuple[FloatArray, Convergence]:
        if _is_solved(items):
            return np.concatenate([_log_stationary(rate) for rate in self._rates(counts, items)]), CLOSED_FORM
        # A slowly mixing walk looks converged long before it is. Two iterations from different starts, uniform and
        # proportional to wins, must agree before we stop.
        compared = counts.per_item(counts.total, counts.total) + 1
        starts = np.stack((np.ones(counts.size), (compared + counts.net_wins + 1) / compared), axis=1)
        return self._iterate(counts, items, starts, self.tolerance)

    def _resampled_stationary(self, counts: PairCounts, items: Items, scores: FloatArray) -> FloatArray:
        """Log stationary distribution of a resample, whose error is far larger than that of a quick solution."""
        if _is_solved(items):
            return np.concatenate([_log_solution(rate) for rate in self._rates(counts, items)])
        start = np.exp(scores - scores.max())[:, None]
        return self._iterate(counts, items, start, max(self.tolerance, _RESAMPLED_TOLERANCE))[0]

    def _operations(self, counts: PairCounts, items: Items) -> float:
        if _is_solved(items):
            return float(np.sum(np.diff(items.starts).astype(np.float64) ** 3))
        return _RESAMPLED_STEPS * 10.0 * len(counts)

    def _upsets(self, counts: PairCounts) -> FloatArray:
        """The share of the comparisons of each pair that its first item won."""
        return np.asarray((counts.first_wins + counts.ties / 2 + self.smoothing) / (counts.total + 2 * self.smoothing))

    def _rates(self, counts: PairCounts, items: Items) -> Iterator[FloatArray]:
        """Per query, the rate of moves from each item to each other, in any unit."""
        up = self._upsets(counts)
        ends = np.searchsorted(counts.first, items.starts)
        for query, (start, stop) in enumerate(pairwise(items.starts.tolist())):
            pairs = slice(ends[query], ends[query + 1])
            first, second = counts.first[pairs] - start, counts.second[pairs] - start
            rate = np.zeros((stop - start, stop - start))
            rate[second, first], rate[first, second] = up[pairs], 1 - up[pairs]
            yield rate

    def _iterate(
        self, counts: PairCounts, items: Items, mass: FloatArray, tolerance: float
    ) -> tuple[FloatArray, Convergence]:
        from scipy.sparse import coo_array

        size, up = counts.size, self._upsets(counts)
        source = np.concatenate((counts.second, counts.first))
        target = np.concatenate((counts.first, counts.second))
        degree = np.bincount(source, minlength=size)
        busiest = np.maximum.reduceat(degree, items.starts[:-1])[items.query]
        move = np.concatenate((up, 1 - up)) / busiest[source]
        stay = (1 - np.bincount(source, move, size))[:, None]
        step = coo_array((move, (target, source)), shape=(size, size)).tocsr()
        mass = mass / _sums(mass, items)
        for n in range(1, self.max_steps + 1):
            # the lazy walk (half a step): a periodic walk converges too
            after = 0.5 * (mass + stay * mass + step @ mass)
            moved = float(np.max(np.abs(after - mass) / after))
            mass = after
            if moved <= tolerance and float(np.max(np.abs(mass[:, -1] / mass[:, 0] - 1))) <= _LARGEST_DIFFERENCE:
                return np.log(mass[:, 0]), Convergence(True, n, moved, _UNIT)
        return np.log(mass[:, 0]), Convergence(False, self.max_steps, moved, _UNIT)


def _is_solved(items: Items) -> bool:
    return int(np.diff(items.starts).max(initial=0)) <= _LARGEST_SOLVED


def _sums(columns: FloatArray, items: Items) -> FloatArray:
    return np.asarray(np.add.reduceat(columns, items.starts[:-1], axis=0)[items.query])


def _log_stationary(rate: FloatArray) -> FloatArray:
    """Log stationary distribution of the chain that moves from i to j at rate[i, j] (Grassmann, Taksar & Heyman 1985).

    States are eliminated one by one. Nothing is subtracted, so no digits cancel however slowly the chain mixes. What
    the states of a block add to the others is one product of matrices.
    """
    size = len(rate)
    for end in range(size, 1, -_BLOCK):
        begin = max(end - _BLOCK, 1)
        for k in range(end - 1, begin - 1, -1):
            if (out := rate[k, :k].sum()) > 0:
                rate[:k, k] /= out
                rate[begin:k, :k] += rate[begin:k, k, None] * rate[k, :k]
                rate[:begin, begin:k] += rate[:begin, k, None] * rate[k, begin:k]
        rate[:begin, :begin] += rate[:begin, begin:end] @ rate[begin:end, :begin]
    with np.errstate(divide="ignore"):
        log_rate = np.log(rate)
    found = np.zeros(size)
    for k in range(1, size):
        found[k] = np.logaddexp.reduce(found[:k] + log_rate[:k, k])
    return found


def _log_solution(rate: FloatArray) -> FloatArray:
    """The same by one linear system; by elimination where that is not accurate."""
    size, out = len(rate), rate.sum(axis=1)
    known = int(np.argmax(rate.sum(axis=0) / out)) if size > 1 else 0
    balance = -rate.T
    np.fill_diagonal(balance, out)
    balance[known] = np.eye(1, size, known)[0]
    try:
        mass = np.linalg.solve(balance, np.eye(1, size, known)[0])
    except np.linalg.LinAlgError:
        return _log_stationary(rate)
    return np.log(mass) if mass.min() > _SMALLEST_MASS * mass.max() else _log_stationary(rate)
