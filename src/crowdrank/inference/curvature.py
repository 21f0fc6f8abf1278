"""Curvature (the negative Hessian) of an objective: linear systems in it, and its sum over pairwise terms.

`DenseCurvature` factors a matrix, `MatrixFreeCurvature` multiplies only and uses conjugate gradients, `DampedCurvature`
adds to the diagonal of a matrix that is not positive definite. The matrices are symmetric and positive semidefinite;
without a prior on scores, the common shift of a query's scores is their null space.

`PairCurvature` holds the curvature of one shard of pairwise terms. Each function of it takes one shard, so that an
engine can sum it over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled

# Solving with small positive definite matrices by NumPy, and with large ones by SciPy.
#
# Importing `scipy.linalg` takes longer than ranking a small file, so matrices below `SCIPY_MIN_SIZE` do without it.

SCIPY_MIN_SIZE = 256
"""Matrices of at least this many rows are solved by SciPy, which uses that they are symmetric or triangular."""


def solve_positive(matrix: FloatArray, vector: FloatArray) -> FloatArray | None:
    """matrix⁻¹ · vector for a symmetric matrix; None if it is not positive definite."""
    if len(matrix) < SCIPY_MIN_SIZE:
        try:
            np.linalg.cholesky(matrix)  # fails unless positive definite; the general solver does not notice
            return np.asarray(np.linalg.solve(matrix, vector))
        except np.linalg.LinAlgError:
            return None
    from scipy.linalg.lapack import dposv

    _, answer, failed = dposv(matrix, vector, lower=True)
    return None if failed else np.asarray(answer)


def solve_factored(factor: FloatArray, vector: FloatArray) -> FloatArray:
    """(LLᵀ)⁻¹ · vector for a lower triangular factor L."""
    if len(factor) < SCIPY_MIN_SIZE:
        return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, vector)))
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((factor, True), vector))


def solve_transposed(factor: FloatArray, vector: FloatArray) -> FloatArray:
    """L⁻ᵀ · vector for a lower triangular factor L."""
    if len(factor) < SCIPY_MIN_SIZE:
        return np.asarray(np.linalg.solve(factor.T, vector))
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, vector, lower=True, trans="T"))


def invert_triangular(factor: FloatArray) -> FloatArray:
    """L⁻¹ of a lower triangular matrix L."""
    if len(factor) < SCIPY_MIN_SIZE:
        # the general solver pivots, which leaves tiny numbers above the diagonal
        return np.tril(np.linalg.inv(factor))
    from scipy.linalg.lapack import dtrtri

    return np.asarray(dtrtri(factor, lower=1)[0])


class Curvature(Protocol):
    """A symmetric matrix that can be solved with."""

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        """Curvature⁻¹ · vector, to a relative residual of about `tolerance`."""
        ...


@dataclass(frozen=True)
class DenseCurvature:
    """A matrix small enough to factor, which is done if a few conjugate gradients do not suffice."""

    matrix: FloatArray

    def solve(self, vector: FloatArray, tolerance: float = 0.0) -> FloatArray:
        if tolerance and len(vector) >= _FEWEST_ITERATED:
            found = _few_conjugate_gradients(self.matrix, vector, min(tolerance, _ITERATED_TOLERANCE))
            if found is not None:
                return found
        answer = solve_positive(self.matrix, vector)
        if answer is not None:
            return answer
        scale = np.maximum(np.diag(self.matrix), 1e-12)
        return np.asarray(conjugate_gradients(lambda v: self.matrix @ v, vector, scale, tolerance or 1e-10))


# Smaller matrices are factored in less time than a few iterations take.
_FEWEST_ITERATED = 32
# Iterations that take about as long as factoring 100 rows; well connected items need six.
_MOST_ITERATIONS = 12
# Newton's method then takes as many steps as with exact solutions.
_ITERATED_TOLERANCE = 1e-4


def _few_conjugate_gradients(matrix: FloatArray, target: FloatArray, tolerance: float) -> FloatArray | None:
    """matrix⁻¹ · target by a few conjugate gradients; None if they do not converge or meet negative curvature."""
    scale = np.diagonal(matrix)
    x, residual = np.zeros(len(target)), target
    direction = target / scale
    energy = first = float(target @ direction)
    for _ in range(_MOST_ITERATIONS):
        image = matrix @ direction
        curved = float(direction @ image)
        if not curved > 0:
            return x if first == 0 else None
        step = energy / curved
        x = x + step * direction
        residual = residual - step * image
        preconditioned = residual / scale
        energy, before = float(residual @ preconditioned), energy
        if energy <= tolerance**2 * first:
            return x
        direction = preconditioned + (energy / before) * direction
    return None


@dataclass(frozen=True)
class MatrixFreeCurvature:
    """A matrix known by its products; preconditioned by its diagonal."""

    product: Callable[[FloatArray], FloatArray]
    diagonal: FloatArray

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        found: FloatArray = conjugate_gradients(self.product, vector, self.diagonal, tolerance)
        return found


dense, sparse = DenseCurvature, MatrixFreeCurvature


def conjugate_gradients(
    product: Callable[[Any], Any], target: Any, diagonal: FloatArray, tolerance: float, max_iterations: int = 20_000
) -> Any:
    """Solve product(x) = target for one right-hand side, or for each column of several at once.

    Stops at a direction of negative curvature and returns the current solution (Steihaug 1983).
    """
    scale = diagonal.astype(target.dtype) if target.ndim == 1 else diagonal.astype(target.dtype)[:, None]
    x = np.zeros_like(target)
    residual = target.copy()
    direction = residual / scale
    energy = np.sum(residual * direction, axis=0, dtype=np.float64)
    goal = tolerance**2 * energy
    for _ in range(max_iterations):
        if np.all(energy <= goal):
            break
        image = product(direction)
        energy_norm = np.sum(direction * image, axis=0, dtype=np.float64)
        if target.ndim == 1 and energy_norm <= 0:
            return x if x.any() else direction  # never zero, which Newton's method would take for convergence
        # converged columns are skipped: their residual energy may be zero
        step = np.divide(energy, energy_norm, where=energy > goal, out=np.zeros_like(energy))
        step = step.astype(target.dtype)
        x += step * direction
        residual -= step * image
        preconditioned = residual / scale
        new_energy = np.sum(residual * preconditioned, axis=0, dtype=np.float64)
        momentum = np.divide(new_energy, energy, where=energy > goal, out=np.zeros_like(energy))
        direction = preconditioned + momentum.astype(target.dtype) * direction
        energy = new_energy
    return x


# Multiples of the diagonal added to an indefinite matrix, tried in turn until it is positive definite.
DAMPINGS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class DampedCurvature:
    """A matrix that may be indefinite, damped by a positive diagonal (Levenberg-Marquardt).

    The solution is always an ascent direction, and the Newton step where the matrix is positive definite.

    Parameters
    ----------
    product : callable
        Multiplies the matrix with a vector.
    diagonal : array
        Positive diagonal used for damping.
    matrix : callable, optional
        Returns the matrix itself, if it is small enough to factor.
    scale : array, optional
        A better approximation of the diagonal, used as preconditioner.
    """

    product: Callable[[FloatArray], FloatArray]
    diagonal: FloatArray
    matrix: Callable[[], FloatArray] | None = None
    scale: FloatArray | None = None

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if self.matrix is not None:
            return solve_factored(self.cholesky(), vector)
        for damping in DAMPINGS:
            found = self._iterate(vector, tolerance, damping)
            if found is not None:
                return found
        return vector / self.diagonal

    def cholesky(self) -> FloatArray:
        """Cholesky factor L of the matrix with the least damping that makes it positive definite."""
        assert self.matrix is not None
        matrix = self.matrix()
        for damping in DAMPINGS:
            try:
                return np.asarray(np.linalg.cholesky(matrix + np.diag(damping * self.diagonal)))
            except np.linalg.LinAlgError:
                continue
        return np.diag(np.sqrt(self.diagonal))

    def _iterate(self, vector: FloatArray, tolerance: float, damping: float) -> FloatArray | None:
        indefinite = False
        scale = (self.diagonal if self.scale is None else self.scale) + damping * self.diagonal

        def multiply(v: FloatArray) -> FloatArray:
            nonlocal indefinite
            image = self.product(v) + damping * self.diagonal * v
            indefinite = indefinite or float(v @ image) <= 0
            return image

        answer = conjugate_gradients(multiply, vector, scale, tolerance)
        return None if indefinite else np.asarray(answer)


# Sums of pairwise terms, held as shards: products, dense blocks and random draws.


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
