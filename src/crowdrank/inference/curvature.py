"""Linear systems in the curvature (negative Hessian) of an objective.

`DenseCurvature` factors a matrix, `MatrixFreeCurvature` multiplies only and uses conjugate gradients, `DampedCurvature`
adds to the diagonal of a matrix that is not positive definite. The matrices are symmetric and positive semidefinite;
without a prior on scores, the common shift of a query's scores is their null space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray

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
