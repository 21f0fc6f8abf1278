"""Volkovs & Zemel 2012: an annotator's preferences are drawn among all ordered pairs of a set of items,

    P(i ≻ j) = exp(θ·(sᵢ − sⱼ)/2) / Z,     Z = Σ_{k≠l} exp(θ·(sₖ − sₗ)/2) = (Σ e^x)·(Σ e^−x) − n,   x = θ·s/2

with adherence θ. Of what an annotator said about a set only the wins less losses of each item and the number of answers
count. The negative Hessian of log Z by x is F = diag(D) − e·fᵀ − f·eᵀ − p·pᵀ: products need no pairs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray


class Cells(NamedTuple):
    """One cell an annotator and a set of items to choose among; its items stand side by side."""

    items: int
    annotators: int
    who: IntArray
    """The annotator of each cell."""
    total: FloatArray
    """Answers of each cell, by weight."""
    start: IntArray
    """Where the items of each cell begin."""
    cell: IntArray
    """Of each item of each cell."""
    item: IntArray
    net: FloatArray
    """Half of its wins less losses there."""

    @property
    def rows(self) -> int:
        return len(self.item)

    def split(self, parts: int) -> list[Cells]:
        """Whole cells, about as many items in each part."""
        ends = np.append(self.start, self.rows)
        cuts = np.unique(np.searchsorted(ends, np.linspace(0, self.rows, parts + 1)))
        return [self._between(int(a), int(b), slice(ends[a], ends[b])) for a, b in pairwise(cuts)]

    def _between(self, a: int, b: int, own: slice) -> Cells:
        return self._replace(
            who=self.who[a:b],
            total=self.total[a:b],
            start=self.start[a:b] - own.start,
            cell=self.cell[own] - a,
            item=self.item[own],
            net=self.net[own],
        )


class LikelihoodTerms(NamedTuple):
    value: float
    by_score: FloatArray
    by_adherence: FloatArray


class Look(NamedTuple):
    """Cells at some scores and adherences, and what the curvature there is made of."""

    cells: Cells
    scores: FloatArray
    adherence: FloatArray
    rest: FloatArray
    """Of each item of each cell: what it won beyond what was expected."""
    weight: FloatArray
    """Of each cell's F: a quarter of its answers."""
    spread: FloatArray
    up: FloatArray
    down: FloatArray
    lean: FloatArray
    """D, e, f and p of F."""


def look(cells: Cells, scores: FloatArray, adherence: FloatArray) -> tuple[Look, LikelihoodTerms]:
    """Value and slopes of the log-likelihood, from one pass over the items of all cells."""
    slope, at = adherence[cells.who][cells.cell], scores[cells.item]
    x = 0.5 * slope * at
    top, low = np.maximum.reduceat(x, cells.start), np.minimum.reduceat(x, cells.start)
    # the largest power is e⁰: nothing overflows, and the smallest Z is 1
    up, down = np.exp(x - top[cells.cell]), np.exp(low[cells.cell] - x)
    ups, downs = _sums(cells, up), _sums(cells, down)
    size = np.diff(np.append(cells.start, len(cells.item)))
    normal = ups * downs - size * np.exp(low - top)
    for_all, against_all = (up * (downs / normal)[cells.cell], down * (ups / normal)[cells.cell])
    lean, root = for_all - against_all, np.sqrt(normal)[cells.cell]
    rest = cells.net - 0.5 * cells.total[cells.cell] * lean
    value = float(cells.net @ (slope * at) - cells.total @ (top - low + np.log(normal)))
    seen = Look(
        cells,
        scores,
        adherence,
        rest=rest,
        weight=0.25 * cells.total,
        spread=for_all + against_all,
        up=up / root,
        down=down / root,
        lean=lean,
    )
    by_score = _added(cells.item, slope * rest, cells.items)
    return seen, LikelihoodTerms(value, by_score, _added(cells.who[cells.cell], at * rest, cells.annotators))


def product(seen: Look, by_score: FloatArray, by_adherence: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Curvature times a direction."""
    cells = seen.cells
    who = cells.who[cells.cell]
    slope, at = seen.adherence[who], seen.scores[cells.item]
    along_score, along_slope = by_score[cells.item], by_adherence[who]
    bent = seen.weight[cells.cell] * _through(seen, slope * along_score + at * along_slope)
    return (
        _added(cells.item, slope * bent - seen.rest * along_slope, cells.items),
        _added(who, at * bent - seen.rest * along_score, cells.annotators),
    )


def diagonal(seen: Look) -> tuple[FloatArray, FloatArray]:
    """The diagonal of the curvature, which is never negative."""
    cells = seen.cells
    who, at = cells.who[cells.cell], seen.scores[cells.item]
    own = seen.weight[cells.cell] * (seen.spread - 2.0 * seen.up * seen.down - seen.lean**2)
    bent = seen.weight[cells.cell] * _through(seen, at)
    by_score = np.bincount(cells.item, seen.adherence[who] ** 2 * own, cells.items)
    return np.maximum(by_score, 0.0), np.maximum(np.bincount(who, at * bent, cells.annotators), 0.0)


def blocks(seen: Look) -> tuple[FloatArray, Any]:
    """The curvature items × items, and items × annotators (sparse); annotators × annotators it is diagonal."""
    from scipy.sparse import coo_array

    cells = seen.cells
    who = cells.who[cells.cell]
    slope, at = seen.adherence[who], seen.scores[cells.item]

    def summed(values: FloatArray) -> Any:
        return coo_array((values * slope, (cells.cell, cells.item)), shape=(len(cells.who), cells.items)).tocsr()

    up, down, lean = summed(seen.up), summed(seen.down), summed(seen.lean)
    crossed = (up.T @ down.multiply(seen.weight[:, None])).toarray()
    own = -(crossed + crossed.T) - (lean.T @ lean.multiply(seen.weight[:, None])).toarray()
    own.flat[:: cells.items + 1] += np.bincount(
        cells.item, slope**2 * (seen.weight[cells.cell] * seen.spread), cells.items
    )
    bent = slope * seen.weight[cells.cell] * _through(seen, at) - seen.rest
    return own, coo_array((bent, (cells.item, who)), shape=(cells.items, cells.annotators)).tocsr()


def _through(seen: Look, vector: FloatArray) -> FloatArray:
    """F times a vector, cell by cell."""
    cells = seen.cells
    up, down, lean = (_sums(cells, part * vector)[cells.cell] for part in (seen.up, seen.down, seen.lean))
    return np.asarray(seen.spread * vector - seen.up * down - seen.down * up - seen.lean * lean)


def _sums(cells: Cells, values: FloatArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values, cells.start))


def _added(where: IntArray, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, size), np.float64)
