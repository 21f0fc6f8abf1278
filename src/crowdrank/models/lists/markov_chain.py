"""Markov chain rank aggregation (Dwork, Kumar, Naor & Sivakumar 2001): score by the stationary distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Judgments, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import affordable_replicates, bootstrap_weights
from crowdrank.models.lists.mallows import check_pair_table_size, tie_sizes
from crowdrank.results import Ranking

# Majorities below this are rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class MarkovChain(Model):
    """Log stationary probability of a random walk that moves to higher-ranked items.

    Parameters
    ----------
    chain : {"mc1", "mc2", "mc3", "mc4"}, default "mc4"
        Which of the paper's four chains to use. From item i, the walk moves
        to an item that some list ranks at least as high as i, chosen among all such (list, item) pairs (mc1);
        to an item at least as high in a list that is drawn first (mc2);
        to an item of a list that is drawn first, if it is higher there, else stays (mc3);
        to any item of the query, if a majority of the lists that order the two ranks it higher, else stays (mc4).
    teleport : float, default 0.05
        Probability of jumping to a uniformly drawn item in each step, which makes the chain ergodic.
    seed : int, default 0
        Seed of the bootstrap.

    Notes
    -----
    The score of item i is log πᵢ, centred in each query, where π = teleport/n + (1 − teleport)·π·P and P is the
    transition matrix of the chain.

    Reference: Dwork, Kumar, Naor & Sivakumar (2001), Rank aggregation methods for the Web, section 4.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> MarkovChain().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    chain: Literal["mc1", "mc2", "mc3", "mc4"] = "mc4"
    teleport: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chain not in _CHAINS:
            raise SettingError(f"chain must be one of {', '.join(_CHAINS)}, got {self.chain!r}.")
        if not 0 < self.teleport < 1:
            raise SettingError(f"teleport must lie between 0 and 1, got {self.teleport}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        check_pair_table_size(lists.items, "borda")
        transitions = Transitions(lists)

        def score(weights: FloatArray) -> FloatArray:
            blocks = _CHAINS[self.chain](transitions, weights)
            logs = [np.log(stationary_distribution(block, self.teleport)) for block in blocks]
            return lists.items.centre(np.concatenate(logs))

        return build_ranking(
            self,
            lists,
            score(lists.weights),
            measure=lambda: bootstrap_weights(
                lists,
                score,
                seed=self.seed,
                replicates=affordable_replicates(float(np.sum(np.diff(lists.items.starts).astype(np.float64) ** 3))),
            ),
        )


class Transitions:
    """The moves that the lists allow, as pairs of rows (source, target) of one list.

    `up` leads to a better place, `stay` to the row itself, `not_down` to a place at least as good. Per row,
    `n_not_below` is the number of rows of its list that are at least as high, `n_higher` of those that are higher.
    """

    def __init__(self, lists: Rankings):
        first, second = pairs_within(lists.offsets)
        tied = lists.place[first] == lists.place[second]
        rows = np.arange(len(lists.item))
        self.up = (second[~tied], first[~tied])
        self.stay = (rows, rows)
        self.not_down = (
            np.concatenate((self.up[0], first[tied], second[tied], rows)),
            np.concatenate((self.up[1], second[tied], first[tied], rows)),
        )
        counts, list_of_tie = tie_sizes(lists)
        after = np.cumsum(counts) - lists.offsets[:-1][list_of_tie]
        self.n_not_below, self.n_higher = np.repeat(after, counts), np.repeat(after - counts, counts)
        self.list_of_row, self.length = lists.list_of_row, lists.lengths[lists.list_of_row]
        self.item, self.items = lists.item, lists.items
        self.list_of_up = self.list_of_row[self.up[0]]

        sizes = np.diff(self.items.starts)
        self._ends = np.cumsum(sizes**2)
        self.up_cells, self.stay_cells = self._cells(self.up), self._cells(self.stay)

    @cached_property
    def not_down_cells(self) -> IntArray:
        return self._cells(self.not_down)

    def _cells(self, moves: tuple[IntArray, IntArray]) -> IntArray:
        """Where moves are counted: tables of source and target item, those of all queries in one array."""
        source, target = (self.item[rows] for rows in moves)
        starts, query = self.items.starts, self.items.query[source]
        size = np.diff(starts)[query]
        return np.asarray(self._ends[query] - size**2 + (source - starts[query]) * size + target - starts[query])

    def tables(self, *parts: tuple[IntArray, FloatArray]) -> list[FloatArray]:
        """Sum values of moves by source and target item: one table per query."""
        total = np.zeros(self._ends[-1])
        for cells, value in parts:
            total += np.bincount(cells, value, len(total))
        sizes = np.diff(self.items.starts)
        return [part.reshape(n, n) for part, n in zip(np.split(total, self._ends[:-1]), sizes, strict=True)]


def _mc1(moves: Transitions, weights: FloatArray) -> list[FloatArray]:
    """To an item that some list ranks at least as high, in proportion to the lists that do."""
    source, _ = moves.not_down
    return _row_normalised(moves.tables((moves.not_down_cells, weights[moves.list_of_row[source]])))


def _mc2(moves: Transitions, weights: FloatArray) -> list[FloatArray]:
    """Draw a list, then an item that it ranks at least as high."""
    source, _ = moves.not_down
    value = weights[moves.list_of_row[source]] / moves.n_not_below[source]
    return _row_normalised(moves.tables((moves.not_down_cells, value)))


def _mc3(moves: Transitions, weights: FloatArray) -> list[FloatArray]:
    """Draw a list, then any item of it; move if that item is higher, else stay."""
    value = weights[moves.list_of_row] / moves.length
    source, _ = moves.up
    staying = value * (moves.length - moves.n_higher)
    return _row_normalised(moves.tables((moves.up_cells, value[source]), (moves.stay_cells, staying)))


def _mc4(moves: Transitions, weights: FloatArray) -> list[FloatArray]:
    """Draw any item of the query; move if a majority of the lists that order the two ranks it higher, else stay."""
    moving = []
    for table in moves.tables((moves.up_cells, weights[moves.list_of_up])):
        transition = (table - table.T > _ROUNDING) / len(table)
        np.fill_diagonal(transition, 1 - transition.sum(axis=1))
        moving.append(transition)
    return moving


_CHAINS: dict[str, Callable[[Transitions, FloatArray], list[FloatArray]]] = {
    "mc1": _mc1,
    "mc2": _mc2,
    "mc3": _mc3,
    "mc4": _mc4,
}


def _row_normalised(tables: list[FloatArray]) -> list[FloatArray]:
    """Transition matrices; the walk stays at an item that no list contains."""
    listed = [table + np.diag(table.sum(axis=1) == 0) for table in tables]
    return [table / table.sum(axis=1, keepdims=True) for table in listed]


def stationary_distribution(transition: FloatArray, teleport: float) -> FloatArray:
    """Solve π = teleport/n + (1 − teleport)·π·P for the stationary distribution π."""
    size = len(transition)
    with limit_blas_threads(size):
        return np.asarray(np.linalg.solve(np.eye(size) - (1 - teleport) * transition.T, np.full(size, teleport / size)))
