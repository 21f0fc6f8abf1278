"""Draws from the normal approximation at a summit: exact where the matrix can be inverted, else by solving for noise.

The curvature is held as shards of `PairCurvature` plus what the prior adds to its diagonal; queries are its blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.base import ShardedData
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.inference.curvature import conjugate_gradients
from crowdrank.models.pairwise.likelihood import blocks, noise, product, rows_of, strip

LARGEST_BLOCK = 1_000
MOST_CELLS = 20_000_000
LARGEST_MATRIX = 12_000
_CELLS_AT_ONCE = 1 << 23
_SOLVED_DRAWS = 192
_DRAWS = 1000


@dataclass(frozen=True)
class Summit:
    """Curvature at the optimum, block by block."""

    bends: ShardedData
    diagonal: FloatArray
    """Of the likelihood and the prior together."""
    prior: FloatArray
    """The prior's share of the diagonal; zero where there is none."""
    starts: IntArray
    """Where each block begins, and the end of the last."""
    border: FloatArray | None = None
    """−∂²/∂sᵢ∂θ for a parameter θ shared by all blocks, and its own curvature."""
    corner: float = 0.0


def draw(summit: Summit, seed: int) -> tuple[FloatArray, FloatArray]:
    """Standard errors, and joint draws of the scores around zero, both with mean zero in each block."""
    sizes = np.diff(summit.starts)
    rng = np.random.default_rng(seed)
    if sizes.max() <= LARGEST_BLOCK and int((sizes**2).sum()) <= MOST_CELLS:
        with limit_blas_threads(int(sizes.max())):
            return _by_inverting(summit, rng)
    return _by_solving(summit, rng)


def draw_from(
    covariance: FloatArray, centre: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[FloatArray, FloatArray]:
    """The same where the whole covariance is known; `centre` takes the mean of each block out of every row."""
    rng, size = np.random.default_rng(seed), len(covariance)
    with limit_blas_threads(size):
        around = centre(rng.standard_normal((_DRAWS, size)) @ np.linalg.cholesky(covariance).T)
    return np.sqrt(np.maximum(np.diag(centre(centre(covariance).T)), 0.0)), around


def _by_inverting(summit: Summit, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    starts, size = summit.starts, int(summit.starts[-1])
    sizes = np.diff(starts)
    count = int(np.clip(4_000_000 // size, 200, 1000))
    ends = np.cumsum(sizes**2)
    local = np.arange(size) - np.repeat(starts[:-1], sizes)
    base = np.repeat(ends - sizes**2, sizes) + local * np.repeat(sizes, sizes)
    (cells,) = summit.bends.sum(blocks, base, local, int(ends[-1]))
    ranges = list(pairwise(starts))
    covariances = []
    lean = np.zeros(size)  # how the scores move with θ: A⁻¹b
    for (a, b), end in zip(ranges, ends, strict=True):
        off = cells[end - (b - a) ** 2 : end].reshape(b - a, b - a)
        covariances.append(_inverse(off, summit.diagonal[a:b], summit.prior[a:b]))
        if summit.border is not None:
            lean[a:b] = covariances[-1] @ summit.border[a:b]
    shared = 0.0 if summit.border is None else 1.0 / max(summit.corner - float(summit.border @ lean), 1e-12)
    push = rng.standard_normal((count, 1)) * np.sqrt(shared)
    error, drawn = np.empty(size), np.empty((count, size))
    for (a, b), covariance in zip(ranges, covariances, strict=True):
        tilt = lean[a:b] - lean[a:b].mean()
        level = covariance.mean(axis=0)
        centred = np.diag(covariance) - 2 * level + level.mean()
        error[a:b] = np.sqrt(np.maximum(centred, 0.0) + shared * tilt**2)
        around = rng.standard_normal((count, b - a)) @ np.linalg.cholesky(covariance).T
        drawn[:, a:b] = around - around.mean(axis=1, keepdims=True) + push * tilt
    return error, drawn


def _inverse(off: Any, diagonal: FloatArray, prior: FloatArray) -> FloatArray:
    """Covariance of one block; without a prior a common shift is held fixed."""
    matrix = -(off + off.T)
    np.fill_diagonal(matrix, diagonal)
    if not prior.any():
        matrix += diagonal.mean() / len(diagonal)
    return np.asarray(np.linalg.inv(matrix))


def _by_solving(summit: Summit, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Noise with the curvature as its covariance, solved for, has the inverse as its covariance."""
    size = len(summit.diagonal)
    # single precision throughout: these are random draws, and half the memory is twice the speed
    prior = summit.prior.astype(np.float32)[:, None]
    (shaken,) = summit.bends.sum(noise, size, _SOLVED_DRAWS, int(rng.integers(1 << 62)))
    shaken += np.sqrt(prior) * rng.standard_normal(shaken.shape, np.float32)

    multiply = _multiplying(summit, prior)
    solved = conjugate_gradients(multiply, shaken, summit.diagonal, tolerance=1e-3).astype(np.float64)
    around = solved - _block_means(solved, summit.starts)
    # Given all other scores, score i varies by 1/Hᵢᵢ exactly; only the rest is left to chance (Rao and Blackwell).
    # Less the mean of its n, it has a share of 1 − 1/n in itself.
    share = np.repeat(1.0 - 1.0 / np.diff(summit.starts), np.diff(summit.starts))
    expected = around - (share / summit.diagonal)[:, None] * shaken
    variance = share**2 / summit.diagonal + np.mean(expected**2, axis=1)
    if summit.border is not None:  # and how the scores move with θ, as when inverting
        border = summit.border.astype(np.float32)[:, None]
        lean = conjugate_gradients(multiply, border, summit.diagonal, tolerance=1e-3)
        spread = 1.0 / max(summit.corner - float(summit.border @ lean[:, 0]), 1e-12)
        tilt = lean - _block_means(lean, summit.starts)
        variance += spread * tilt[:, 0] ** 2
        around += tilt * rng.standard_normal(_SOLVED_DRAWS) * np.sqrt(spread)
    return np.sqrt(variance), np.ascontiguousarray(around.T)


def _multiplying(summit: Summit, prior: Any) -> Callable[[Any], Any]:
    """Curvature times columns: over the rows, or by one matrix where there is room for it, and it has fewer cells."""
    size = len(summit.diagonal)
    too_large = size > LARGEST_MATRIX or 2 * 4 * size**2 > summit.bends.spare
    if too_large or size**2 > 2 * summit.bends.sum(rows_of)[0]:
        return lambda x: summit.bends.sum(product, x)[0] + prior * x
    matrix = np.empty((size, size), np.float32)
    wide = max(1, _CELLS_AT_ONCE // size)
    for low in range(0, size, wide):
        high = min(low + wide, size)
        (matrix[low:high],) = summit.bends.sum(strip, low, high, size)
    diagonal = (matrix.sum(axis=1, dtype=np.float64)).astype(np.float32)[:, None]
    return lambda x: diagonal * x - matrix @ x + prior * x


def _block_means(columns: FloatArray, starts: IntArray) -> FloatArray:
    """For every row the mean over its block, column by column."""
    means = np.add.reduceat(columns, starts[:-1], axis=0) / np.diff(starts)[:, None]
    return np.repeat(means, np.diff(starts), axis=0)
