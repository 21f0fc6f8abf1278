"""Least squares on score differences: signed answers per pair and annotator, and the graph Laplacian."""

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
from crowdrank.models.crowd.crowd_agg import compare_scores

# Up to this many items the normal equations are factored; beyond it, conjugate gradients are faster.
MAX_FACTORED_ITEMS = 2_000


@dataclass(frozen=True)
class SignedPairs:
    """Answers as signed weights per compared pair and annotator.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments. Without annotators they count as those of one annotator.
    pair_weight : array of float, optional
        Weight of each compared pair; 1 by default. In a bootstrap: how often it was drawn relative to its judgments.
    """

    comparisons: Comparisons
    pair_weight: FloatArray | None = None

    @cached_property
    def who(self) -> Int32Array:
        named = self.comparisons.annotator
        return np.zeros(len(self.comparisons), np.int32) if named is None else named

    @cached_property
    def weight_by_annotator(self) -> FloatArray:
        people = max(1, len(self.comparisons.annotators))
        return np.bincount(self.who, self.comparisons.weights, people).astype(np.float64)

    @cached_property
    def signed(self) -> Any:
        """Pairs × annotators: weight of answers for the pair's first item less those for its second. Ties are 0."""
        from scipy.sparse import coo_array

        table, counts, size = self.comparisons, self.comparisons.counts, len(self.comparisons.items)
        pair = np.searchsorted(pair_codes(table), pair_cells(size, table.left, table.right))
        sign = np.where(table.left < table.right, table.outcome, -table.outcome) * table.weights
        return coo_array((sign, (pair, self.who)), shape=(len(counts), len(self.weight_by_annotator))).tocsr()

    @cached_property
    def laplacian(self) -> Laplacian:
        counts = self.comparisons.counts
        weight = np.ones(len(counts)) if self.pair_weight is None else self.pair_weight
        return Laplacian(self.comparisons.items, counts.first, counts.second, weight)

    def scores(self, abilities: FloatArray) -> FloatArray:
        """Eq. 4 of Sunahase et al. by least squares, one equation per compared pair."""
        difference = self.signed @ abilities
        return self.laplacian.solve(self.comparisons.counts.per_item(difference, -difference))

    def signs(self, scores: FloatArray, tolerance: float) -> npt.NDArray[np.int8]:
        """Which item of each pair scores higher: 1 the first, −1 the second, 0 neither."""
        counts, items = self.comparisons.counts, self.comparisons.items
        size = np.full(len(items), float(counts.total.max()))
        return compare_scores(items, scores, counts.first, counts.second, tolerance, size)

    def abilities(self, signs: npt.NDArray[np.int8]) -> FloatArray:
        """Eq. 5: the share of answers that agree with the scores; a tie in answer or scores counts as half."""
        weight = self.weight_by_annotator
        lead = np.divide(self.signed.T @ signs.astype(np.float64), weight, out=np.zeros(len(weight)), where=weight > 0)
        return np.asarray(0.5 + 0.5 * lead)


def pair_codes(comparisons: Comparisons) -> IntArray:
    """Code of each compared pair, increasing."""
    return pair_cells(len(comparisons.items), comparisons.counts.first, comparisons.counts.second)


@dataclass(frozen=True)
class Laplacian:
    """Matrix of least squares on score differences: Σ weight·(eₐ − e_b)(eₐ − e_b)ᵀ + ridge·I.

    Parameters
    ----------
    items : Items
        The items.
    first, second : arrays of int
        Item codes of the compared pairs.
    weight : array of float
        Weight of each pair.
    ridge : float
        Penalty on squared scores.
    """

    items: Items
    first: Int32Array
    second: Int32Array
    weight: FloatArray
    ridge: float = 0.0

    @cached_property
    def matrix(self) -> Any:
        from scipy.sparse import coo_array, diags_array

        size = len(self.items)
        adjacency = coo_array((self.weight, (self.first, self.second)), shape=(size, size)).tocsr()
        adjacency = adjacency + adjacency.T
        return (diags_array(np.asarray(adjacency.sum(axis=1)).ravel() + self.ridge) - adjacency).tocsr()

    @cached_property
    def component(self) -> Int32Array:
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.matrix, directed=False)[1])

    def solve(self, target: FloatArray) -> FloatArray:
        """Solution of minimal norm, with mean 0 in each connected component; so must be the target."""
        if len(self.items) <= MAX_FACTORED_ITEMS:
            from scipy.linalg import cho_solve

            found = cho_solve((self._root, True), target, check_finite=False)
        else:
            diagonal = self.matrix.diagonal()
            scale = np.where(diagonal > 0, diagonal, 1.0)
            found = conjugate_gradients(lambda v: self.matrix @ v, target, scale, tolerance=1e-12)
        mean = np.bincount(self.component, found) / np.bincount(self.component)
        return np.asarray(found - mean[self.component])

    @cached_property
    def _root(self) -> FloatArray:
        from scipy.linalg import cholesky

        matrix = self.matrix.toarray()
        if not self.ridge:  # singular: a shift of all scores of a component changes nothing, so fix their mean
            matrix += (self.component[:, None] == self.component) * (
                max(float(np.trace(matrix)), 1.0) / len(matrix) ** 2
            )
        return np.asarray(cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))
