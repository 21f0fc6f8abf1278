"""Laplace approximation: standard errors and draws from the normal distribution at the optimum.

`LaplaceApproximation` is for pairwise likelihoods, whose curvature is held as shards of `PairCurvature` plus the prior
on the diagonal; queries are its blocks. Small blocks are inverted. Large ones are sampled by perturbation: noise with
the curvature as its covariance, multiplied by the inverse curvature, has the inverse curvature as its covariance
(Papandreou & Yuille 2010). `draw_from_covariance` is for a covariance matrix that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.local import ShardedData, limit_blas_threads
from crowdrank.inference.curvature import conjugate_gradients
from crowdrank.inference.pair_curvature import (
    count_rows,
    hessian_blocks,
    hessian_product,
    hessian_rows,
    sample_with_curvature,
)

LARGEST_BLOCK = 1_000
MOST_CELLS = 20_000_000
LARGEST_MATRIX = 12_000
_CELLS_AT_ONCE = 1 << 23
_SOLVED_DRAWS = 192
_DRAWS = 1000


@dataclass(frozen=True)
class LaplaceApproximation:
    """Normal approximation of the scores of pairwise models at the optimum.

    Parameters
    ----------
    curvature : ShardedData
        Shards of `PairCurvature` of the likelihood.
    diagonal : array
        Diagonal of the curvature of likelihood and prior together.
    prior : array
        The prior's share of the diagonal; zero without a prior.
    starts : array of int
        Where each block (query) begins, and the end of the last.
    border : array, optional
        −∂²/∂sᵢ∂θ for one parameter θ that all blocks share.
    corner : float
        −∂²/∂θ².
    """

    curvature: ShardedData
    diagonal: FloatArray
    prior: FloatArray
    starts: IntArray
    border: FloatArray | None = None
    corner: float = 0.0

    def draw(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """Standard errors, and joint draws of the scores around zero, both with mean zero in each block."""
        sizes = np.diff(self.starts)
        rng = np.random.default_rng(seed)
        if sizes.max() <= LARGEST_BLOCK and int((sizes**2).sum()) <= MOST_CELLS:
            with limit_blas_threads(int(sizes.max())):
                return _by_inverting(self, rng)
        return _by_perturbation(self, rng)


def draw_from_covariance(
    covariance: FloatArray, centre: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[FloatArray, FloatArray]:
    """Standard errors and draws for a known covariance; `centre` subtracts the mean of each block from every row."""
    rng, size = np.random.default_rng(seed), len(covariance)
    with limit_blas_threads(size):
        around = centre(rng.standard_normal((_DRAWS, size)) @ np.linalg.cholesky(covariance).T)
    return np.sqrt(np.maximum(np.diag(centre(centre(covariance).T)), 0.0)), around


def _by_inverting(laplace: LaplaceApproximation, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    starts, size = laplace.starts, int(laplace.starts[-1])
    sizes = np.diff(starts)
    count = int(np.clip(4_000_000 // size, 200, 1000))
    ends = np.cumsum(sizes**2)
    local = np.arange(size) - np.repeat(starts[:-1], sizes)
    base = np.repeat(ends - sizes**2, sizes) + local * np.repeat(sizes, sizes)
    (cells,) = laplace.curvature.sum(hessian_blocks, base, local, int(ends[-1]))
    ranges = list(pairwise(starts))
    covariances = []
    sensitivity = np.zeros(size)  # ∂s/∂θ at the optimum: A⁻¹b
    for (a, b), end in zip(ranges, ends, strict=True):
        off = cells[end - (b - a) ** 2 : end].reshape(b - a, b - a)
        covariances.append(_inverse(off, laplace.diagonal[a:b], laplace.prior[a:b]))
        if laplace.border is not None:
            sensitivity[a:b] = covariances[-1] @ laplace.border[a:b]
    shared = 0.0 if laplace.border is None else 1.0 / max(laplace.corner - float(laplace.border @ sensitivity), 1e-12)
    theta_draw = rng.standard_normal((count, 1)) * np.sqrt(shared)
    error, drawn = np.empty(size), np.empty((count, size))
    for (a, b), covariance in zip(ranges, covariances, strict=True):
        centred_sensitivity = sensitivity[a:b] - sensitivity[a:b].mean()
        level = covariance.mean(axis=0)
        centred = np.diag(covariance) - 2 * level + level.mean()
        error[a:b] = np.sqrt(np.maximum(centred, 0.0) + shared * centred_sensitivity**2)
        around = rng.standard_normal((count, b - a)) @ np.linalg.cholesky(covariance).T
        drawn[:, a:b] = around - around.mean(axis=1, keepdims=True) + theta_draw * centred_sensitivity
    return error, drawn


def _inverse(off: Any, diagonal: FloatArray, prior: FloatArray) -> FloatArray:
    """Covariance of one block. Without a prior the common shift, which the likelihood leaves free, is held fixed."""
    matrix = -(off + off.T)
    np.fill_diagonal(matrix, diagonal)
    if not prior.any():
        matrix += diagonal.mean() / len(diagonal)
    return np.asarray(np.linalg.inv(matrix))


def _by_perturbation(laplace: LaplaceApproximation, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draws by perturbation: solve curvature·x = noise, with noise of covariance equal to the curvature."""
    size = len(laplace.diagonal)
    # single precision: these are random draws, and half the memory traffic doubles the speed
    prior = laplace.prior.astype(np.float32)[:, None]
    (noise,) = laplace.curvature.sum(sample_with_curvature, size, _SOLVED_DRAWS, int(rng.integers(1 << 62)))
    noise += np.sqrt(prior) * rng.standard_normal(noise.shape, np.float32)

    multiply = _multiplier(laplace, prior)
    solved = conjugate_gradients(multiply, noise, laplace.diagonal, tolerance=1e-3).astype(np.float64)
    around = solved - _block_means(solved, laplace.starts)
    # Rao-Blackwellised variance: given all other scores, score i has variance 1/Hᵢᵢ exactly; only the variance of its
    # conditional mean is estimated from draws. After centring, score i keeps a share 1 − 1/n of itself.
    own = np.repeat(1.0 - 1.0 / np.diff(laplace.starts), np.diff(laplace.starts))
    expected = around - (own / laplace.diagonal)[:, None] * noise
    variance = own**2 / laplace.diagonal + np.mean(expected**2, axis=1)
    if laplace.border is not None:  # the uncertainty of θ, as in _by_inverting
        border = laplace.border.astype(np.float32)[:, None]
        sensitivity = conjugate_gradients(multiply, border, laplace.diagonal, tolerance=1e-3)
        spread = 1.0 / max(laplace.corner - float(laplace.border @ sensitivity[:, 0]), 1e-12)
        centred_sensitivity = sensitivity - _block_means(sensitivity, laplace.starts)
        variance += spread * centred_sensitivity[:, 0] ** 2
        around += centred_sensitivity * rng.standard_normal(_SOLVED_DRAWS) * np.sqrt(spread)
    return np.sqrt(variance), np.ascontiguousarray(around.T)


def _multiplier(laplace: LaplaceApproximation, prior: Any) -> Callable[[Any], Any]:
    """Multiplication by the curvature: over the rows, or by a dense matrix where that fits in memory and is cheaper."""
    size = len(laplace.diagonal)
    too_large = size > LARGEST_MATRIX or 2 * 4 * size**2 > laplace.curvature.memory_left
    if too_large or size**2 > 2 * laplace.curvature.sum(count_rows)[0]:
        return lambda x: laplace.curvature.sum(hessian_product, x)[0] + prior * x
    matrix = np.empty((size, size), np.float32)
    wide = max(1, _CELLS_AT_ONCE // size)
    for low in range(0, size, wide):
        high = min(low + wide, size)
        (matrix[low:high],) = laplace.curvature.sum(hessian_rows, low, high, size)
    diagonal = (matrix.sum(axis=1, dtype=np.float64)).astype(np.float32)[:, None]
    return lambda x: diagonal * x - matrix @ x + prior * x


def _block_means(columns: FloatArray, starts: IntArray) -> FloatArray:
    """For every row the mean of its block, per column."""
    means = np.add.reduceat(columns, starts[:-1], axis=0) / np.diff(starts)[:, None]
    return np.repeat(means, np.diff(starts), axis=0)
