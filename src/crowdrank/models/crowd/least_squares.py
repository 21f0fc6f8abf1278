"""Answers as differences of scores: who leaned which way on which pair, and least squares on the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.pair_counts import pair_cells
from crowdrank.inference.curvature import conjugate_gradients
from crowdrank.models.crowd_agg.query_blocks import compare_scores

# Up to this many items the matrix of least squares is factored; beyond it, conjugate gradients are quicker.
LARGEST_FACTORED = 2_000


@dataclass(frozen=True)
class Leanings:
    """Who leaned which way on which pair. Judgments that name no annotators are taken as one annotator's."""

    comparisons: Comparisons
    drawn: FloatArray | None = None
    """In a resample: how much oftener than it was judged each pair was drawn."""

    @cached_property
    def who(self) -> Int32Array:
        named = self.comparisons.annotator
        return np.zeros(len(self.comparisons), np.int32) if named is None else named

    @cached_property
    def weight_of_annotator(self) -> FloatArray:
        people = max(1, len(self.comparisons.annotators))
        return np.bincount(self.who, self.comparisons.weights, people).astype(np.float64)

    @cached_property
    def lean(self) -> Any:
        """Rows are pairs, columns annotators: weight of answers for `first` less for `second`; a tie leans nowhere."""
        from scipy.sparse import coo_array

        table, counts, size = self.comparisons, self.comparisons.counts, len(self.comparisons.items)
        pair = np.searchsorted(cells_of(table), pair_cells(size, table.left, table.right))
        towards = np.where(table.left < table.right, table.outcome, -table.outcome) * table.weights
        return coo_array((towards, (pair, self.who)), shape=(len(counts), len(self.weight_of_annotator))).tocsr()

    @cached_property
    def laplacian(self) -> Laplacian:
        counts = self.comparisons.counts
        weight = np.ones(len(counts)) if self.drawn is None else self.drawn
        return Laplacian(self.comparisons.items, counts.first, counts.second, weight)

    def scores(self, abilities: FloatArray) -> FloatArray:
        """Eq. 4 by least squares, an equation a compared pair."""
        difference = self.lean @ abilities
        return self.laplacian.solve(self.comparisons.counts.per_item(difference, -difference))

    def signs(self, scores: FloatArray, tolerance: float) -> npt.NDArray[np.int8]:
        """Which of each pair scores higher: 1 the first, -1 the second, 0 neither."""
        counts, items = self.comparisons.counts, self.comparisons.items
        size = np.full(len(items), float(counts.total.max()))
        return compare_scores(items, scores, counts.first, counts.second, tolerance, size)

    def abilities(self, signs: npt.NDArray[np.int8]) -> FloatArray:
        """Eq. 5: the share of answers that agree; a tie, in the answer or in the scores, agrees by half."""
        weight = self.weight_of_annotator
        lead = np.divide(self.lean.T @ signs.astype(np.float64), weight, out=np.zeros(len(weight)), where=weight > 0)
        return np.asarray(0.5 + 0.5 * lead)


def cells_of(comparisons: Comparisons) -> IntArray:
    """The number of each compared pair, rising."""
    return pair_cells(len(comparisons.items), comparisons.counts.first, comparisons.counts.second)


@dataclass(frozen=True)
class Laplacian:
    """The matrix of least squares on score differences: Σ weight·(eₐ − e_b)(eₐ − e_b)ᵀ + ridge·I."""

    items: Items
    first: Int32Array
    second: Int32Array
    weight: FloatArray
    ridge: float = 0.0

    @cached_property
    def matrix(self) -> Any:
        from scipy.sparse import coo_array, diags_array

        size = len(self.items)
        beside = coo_array((self.weight, (self.first, self.second)), shape=(size, size)).tocsr()
        beside = beside + beside.T
        return (diags_array(np.asarray(beside.sum(axis=1)).ravel() + self.ridge) - beside).tocsr()

    @cached_property
    def island(self) -> Int32Array:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.matrix, directed=False)[1])

    def solve(self, target: FloatArray) -> FloatArray:
        """For a target that adds up to zero on each island; of all solutions the smallest, so that each island does."""
        if len(self.items) <= LARGEST_FACTORED:
            from scipy.linalg import cho_solve

            found = cho_solve((self._root, True), target, check_finite=False)
        else:
            diagonal = self.matrix.diagonal()
            scale = np.where(diagonal > 0, diagonal, 1.0)
            found = conjugate_gradients(lambda v: self.matrix @ v, target, scale, tolerance=1e-12)
        level = np.bincount(self.island, found) / np.bincount(self.island)
        return np.asarray(found - level[self.island])

    @cached_property
    def _root(self) -> FloatArray:
        from scipy.linalg import cholesky

        matrix = self.matrix.toarray()
        if not self.ridge:  # a common shift of an island's scores changes nothing: hold it fixed
            matrix += (self.island[:, None] == self.island) * (max(float(np.trace(matrix)), 1.0) / len(matrix) ** 2)
        return np.asarray(cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))
