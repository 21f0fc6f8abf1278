"""Factors of items from the factors of pairs, and their joint distribution in each query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.errors import DataError
from crowdrank.models.jury.cells import Cells

MAX_ITEMS = 1_500
"""Most items in a query: the covariance of their factors is a dense matrix."""
_PAIR_SHARES = (0.05, 0.2, 0.5, 0.8)


@dataclass(frozen=True, eq=False)
class ItemFactors:
    """Normal posterior of the factors of items: z_p = F_i − F_j + v_p, with v_p shared by all answers to pair p.

    Parameters
    ----------
    mean : array, items × factors
        Posterior means.
    covariance : tuple of arrays
        One matrix per query, (items · factors)², items in the order of the query.
    pair_share : float
        Variance of v_p as a share of the variance of z_p.
    """

    mean: FloatArray
    covariance: tuple[FloatArray, ...]
    pair_share: float

    def along(self, direction: FloatArray, query: int, size: int) -> FloatArray:
        """Covariance among the items of a query of their component along a direction."""
        blocks = self.covariance[query].reshape(size, len(direction), size, len(direction))
        return np.asarray(np.einsum("ikjl,k,l->ij", blocks, direction, direction))


def fit_items(cells: Cells, items: Items, precision: FloatArray, linear: FloatArray) -> ItemFactors:
    """Posterior of the factors of items, with the share of the pairs that makes the answers most probable."""
    sizes = np.diff(items.starts)
    if sizes.max() > MAX_ITEMS:
        raise DataError(f"jury ranks at most {MAX_ITEMS:,} items in a query, got {sizes.max():,}: use crowd-bt.")
    query = items.query[cells.first]
    # Pairs of a query are contiguous: they are sorted by their first item, and items by query.
    ends = np.searchsorted(query, np.arange(len(sizes) + 1))
    # With two items in a query, what is special to the pair cannot be told from what is special to its items.
    shares = _PAIR_SHARES if sizes.max() > 2 else (0.0,)
    found = [_fit_with_share(share, cells, items, ends, precision, linear) for share in shares]
    return max(found, key=lambda one: one[0])[1]


def _fit_with_share(
    share: float, cells: Cells, items: Items, ends: IntArray, precision: FloatArray, linear: FloatArray
) -> tuple[float, ItemFactors]:
    count = linear.shape[1]
    eye = np.eye(count)
    damped = np.linalg.inv(eye + share * precision)
    known, linear_term = damped @ precision, np.einsum("pkl,pl->pk", damped, linear)
    evidence = 0.5 * float(np.sum(np.linalg.slogdet(damped)[1]) + share * np.sum(linear_term * linear))
    mean, covariances = np.zeros((len(items), count)), []
    prior = 2 / (1 - share)
    for code, start in enumerate(items.starts[:-1]):
        own = slice(ends[code], ends[code + 1])
        size = int(items.starts[code + 1] - start)
        first, second = cells.first[own] - start, cells.second[own] - start
        matrix = np.zeros((size, size, count, count))
        np.add.at(matrix, (first, first), known[own])
        np.add.at(matrix, (second, second), known[own])
        np.add.at(matrix, (first, second), -known[own])
        np.add.at(matrix, (second, first), -known[own])
        target = np.zeros((size, count))
        np.add.at(target, first, linear_term[own])
        np.add.at(target, second, -linear_term[own])
        full = matrix.transpose(0, 2, 1, 3).reshape(size * count, size * count) + prior * np.eye(size * count)
        covariance = np.linalg.inv(full)
        best = covariance @ target.ravel()
        mean[start : start + size] = best.reshape(size, count)
        covariances.append((covariance + covariance.T) / 2)
        evidence += 0.5 * (best @ target.ravel() - np.linalg.slogdet(full)[1] + size * count * np.log(prior))
    return evidence, ItemFactors(mean, tuple(covariances), share)
