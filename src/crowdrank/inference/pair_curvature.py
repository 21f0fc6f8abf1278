"""Curvature of sums of pairwise terms, held as shards: products, dense blocks, and random draws.

Every function takes one shard, so that an engine can sum it over all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled


class PairCurvature(NamedTuple):
    """Curvature of pairwise terms over one shard: row r adds curvature[r]·(eₗ − eᵣ)(eₗ − eᵣ)ᵀ to the negative Hessian.

    This is a weighted graph Laplacian with items as nodes and comparisons as edges.
    """

    left: Int32Array
    right: Int32Array
    curvature: AnyArray
    start: int = 0

    @property
    def rows(self) -> int:
        return len(self.left)


class MatrixCurvature(NamedTuple):
    """Curvature of pairwise terms among a few items, as a full matrix."""

    matrix: FloatArray

    @property
    def rows(self) -> int:
        return len(self.matrix)

    def pairs(self) -> PairCurvature:
        """The same curvature, one row per pair."""
        left, right = (ends.astype(np.int32) for ends in np.nonzero(np.triu(self.matrix, 1)))
        return PairCurvature(left, right, -self.matrix[left, right])


def hessian_product(shard: PairCurvature | MatrixCurvature, vector: AnyArray) -> tuple[AnyArray]:
    """Curvature times a vector, or times each column of a matrix: Σ curvature·(vₗ − vᵣ)·(eₗ − eᵣ)."""
    if isinstance(shard, MatrixCurvature):
        return (shard.matrix @ vector,)
    left, right, curvature, _ = shard
    if vector.ndim == 1 and shard.rows < COMPILE_MIN_ROWS:
        force = curvature * (vector[left] - vector[right])
        return (np.bincount(left, force, len(vector)) - np.bincount(right, force, len(vector)),)
    out = np.zeros_like(vector)
    (_product_loop if vector.ndim == 1 else _block_product_loop)(left, right, curvature, vector, out)
    return (out,)


@compiled()
def _product_loop(left, right, curvature, vector, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j = left[row], right[row]
        force = curvature[row] * (vector[i] - vector[j])
        out[i] += force
        out[j] -= force


@compiled()
def _block_product_loop(left, right, curvature, vectors, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, b = left[row], right[row], curvature[row]
        for k in range(vectors.shape[1]):
            force = b * (vectors[i, k] - vectors[j, k])
            out[i, k] += force
            out[j, k] -= force


def hessian_matrix(shard: PairCurvature | MatrixCurvature, size: int) -> tuple[AnyArray]:
    """The curvature as a full matrix, for few items."""
    if isinstance(shard, MatrixCurvature):
        return (shard.matrix.copy(),)
    left, right, curvature, _ = shard
    out = np.bincount(left * np.int64(size) + right, -curvature, size * size).reshape(size, size)
    out += out.T
    out.flat[:: size + 1] -= out.sum(axis=1)
    return (out,)


def hessian_blocks(
    shard: PairCurvature | MatrixCurvature, base: IntArray, local: IntArray, cells: int
) -> tuple[AnyArray]:
    """Off-diagonal curvature as one small matrix per query, in one flat array: row `left`, column `right`."""
    left, right, curvature, _ = shard.pairs() if isinstance(shard, MatrixCurvature) else shard
    return (np.bincount(base[left] + local[right], curvature, cells),)


def count_rows(shard: PairCurvature) -> tuple[int]:
    """The number of rows of a shard."""
    return (shard.rows,)


def hessian_rows(shard: PairCurvature, low: int, high: int, size: int) -> tuple[AnyArray]:
    """Rows `low` to `high` of the off-diagonal curvature as a dense symmetric matrix."""
    left, right, curvature, _ = shard
    out = np.zeros(((high - low), size), np.float32)
    if shard.rows >= COMPILE_MIN_ROWS:
        _rows_loop(left, right, curvature, low, high, out)
        return (out,)
    for one, other in ((left, right), (right, left)):
        inside = np.flatnonzero((one >= low) & (one < high))
        np.add.at(out, (one[inside] - low, other[inside]), curvature[inside])
    return (out,)


@compiled()
def _rows_loop(left, right, curvature, low, high, out):  # type: ignore[no-untyped-def]
    for row in range(len(left)):
        i, j, b = left[row], right[row], curvature[row]
        if low <= i < high:
            out[i - low, j] += b
        if low <= j < high:
            out[j - low, i] += b


def sample_with_curvature(shard: PairCurvature, size: int, columns: int, seed: int) -> tuple[AnyArray]:
    """Vectors with this shard's curvature as covariance: Σ ±√curvature·(eₗ − eᵣ), with random signs."""
    out = np.zeros((size, columns), np.float32)
    # a separate stream of signs for each shard
    first = np.random.default_rng([seed, shard.start]).integers(1 << 63, dtype=np.uint64)
    _noise_loop(shard.left, shard.right, shard.curvature, out, first)
    return (out,)


@compiled()
def _noise_loop(left, right, curvature, out, seed):  # type: ignore[no-untyped-def]
    state = seed
    for row in range(len(left)):
        i, j, root = left[row], right[row], np.sqrt(curvature[row])
        for k in range(out.shape[1]):
            if k % 64 == 0:  # splitmix64: sixty-four signs at a time
                state += np.uint64(0x9E3779B97F4A7C15)
                bits = state
                bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                bits = bits ^ (bits >> np.uint64(31))
            step = root if bits & np.uint64(1) else -root
            bits >>= np.uint64(1)
            out[i, k] += step
            out[j, k] -= step
