"""Dwork, Kumar, Naor & Sivakumar 2001: where a walk that moves to better placed items spends its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Judgments, Rankings
from crowdrank.data.conversions import pairs_within
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import bootstrap_weights
from crowdrank.models.lists.pair_tallies import check_tables_fit, tie_sizes
from crowdrank.results import Ranking

# A majority smaller than this is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class MarkovChain(Model):
    """How long a walk to better placed items stays at each, as a logarithm.

    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> MarkovChain().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings

    chain: Literal["mc1", "mc2", "mc3", "mc4"] = "mc4"
    """Which of the four walks."""
    teleport: float = 0.05
    """The chance that a step goes to any item, so that the walk gets everywhere."""
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if self.chain not in _WALKS:
            raise SettingError(f"chain must be {', '.join(_WALKS)}, got {self.chain!r}.")
        if not 0 < self.teleport < 1:
            raise SettingError(f"teleport must lie between 0 and 1, got {self.teleport}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        lists = require_kind(Rankings, judgments, self)
        check_tables_fit(lists.items, "borda")
        moves = Moves(lists)

        def score(weights: FloatArray) -> FloatArray:
            blocks = _WALKS[self.chain](moves, weights)
            return lists.items.centre(np.concatenate([np.log(time_spent(block, self.teleport)) for block in blocks]))

        return build_ranking(
            self, lists, score(lists.weights), measure=lambda: bootstrap_weights(lists, score, seed=self.seed)
        )


class Moves:
    """The moves that lists allow: from a row of a list to one on a better place, or on the same."""

    def __init__(self, lists: Rankings):
        first, second = pairs_within(lists.offsets)
        tied = lists.place[first] == lists.place[second]
        rows = np.arange(len(lists.item))
        self.up = (second[~tied], first[~tied])
        self.stay = (rows, rows)
        self.as_high = (
            np.concatenate((self.up[0], first[tied], second[tied], rows)),
            np.concatenate((self.up[1], second[tied], first[tied], rows)),
        )
        counts, of_list = tie_sizes(lists)
        after = np.cumsum(counts) - lists.offsets[:-1][of_list]
        self.not_below, self.higher = np.repeat(after, counts), np.repeat(after - counts, counts)
        """How many of its list stand as high as each row or higher, and how many higher."""
        self.of_list, self.length = lists.list_of_row, lists.lengths[lists.list_of_row]
        self.item, self.items = lists.item, lists.items

    def tables(self, *parts: tuple[tuple[IntArray, IntArray], FloatArray]) -> list[FloatArray]:
        """Values of moves added up by items: for each query a table, from whom and to whom."""
        starts, sizes = self.items.starts, np.diff(self.items.starts)
        ends = np.cumsum(sizes**2)
        total = np.zeros(ends[-1])
        for (source, target), value in parts:
            query = self.items.query[self.item[source]]
            begin, end = self.item[source] - starts[query], self.item[target] - starts[query]
            total += np.bincount((ends - sizes**2)[query] + begin * sizes[query] + end, value, len(total))
        return [part.reshape(n, n) for part, n in zip(np.split(total, ends[:-1]), sizes, strict=True)]


def _mc1(moves: Moves, weights: FloatArray) -> list[FloatArray]:
    """To any item that some list puts as high or higher, as often as lists do."""
    source, _ = moves.as_high
    return _shares(moves.tables((moves.as_high, weights[moves.of_list[source]])))


def _mc2(moves: Moves, weights: FloatArray) -> list[FloatArray]:
    """To any item as high or higher in a list, the list drawn first."""
    source, _ = moves.as_high
    return _shares(moves.tables((moves.as_high, weights[moves.of_list[source]] / moves.not_below[source])))


def _mc3(moves: Moves, weights: FloatArray) -> list[FloatArray]:
    """To any item of a list drawn first, if it is higher there."""
    chance = weights[moves.of_list] / moves.length
    source, _ = moves.up
    return _shares(moves.tables((moves.up, chance[source]), (moves.stay, chance * (moves.length - moves.higher))))


def _mc4(moves: Moves, weights: FloatArray) -> list[FloatArray]:
    """To any item of the query, if most lists that order the two put it higher."""
    source, _ = moves.up
    tables = moves.tables((moves.up, weights[moves.of_list[source]]))
    moving = [(table - table.T > _ROUNDING) / len(table) for table in tables]
    return _shares([table + np.diag(1 - table.sum(axis=1)) for table in moving])


_WALKS: dict[str, Callable[[Moves, FloatArray], list[FloatArray]]] = {
    "mc1": _mc1,
    "mc2": _mc2,
    "mc3": _mc3,
    "mc4": _mc4,
}


def _shares(tables: list[FloatArray]) -> list[FloatArray]:
    """Chances of a step; a walk stays at an item that no list names."""
    named = [table + np.diag(table.sum(axis=1) == 0) for table in tables]
    return [table / table.sum(axis=1, keepdims=True) for table in named]


def time_spent(chance: FloatArray, teleport: float) -> FloatArray:
    """The share of its time that the walk is at each item: π = teleport/n + (1 − teleport)·π·chance."""
    size = len(chance)
    with limit_blas_threads(size):
        return np.asarray(np.linalg.solve(np.eye(size) - (1 - teleport) * chance.T, np.full(size, teleport / size)))
