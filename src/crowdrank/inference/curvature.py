"""Curvature at a point (the negative Hessian): solved with, inverted, drawn from.

Two kinds with one face: `dense` factors the matrix, `sparse` knows only how to multiply and uses conjugate
gradients. Both stand for a symmetric matrix that is positive on everything but, where scores have no prior, a
common shift of a query's scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdrank.arrays import FloatArray


class Curvature(Protocol):
    """A symmetric matrix one can solve with."""

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        """Curvature⁻¹ · vector, to a relative residual of about `tolerance`."""
        ...


@dataclass(frozen=True)
class DenseCurvature:
    """A matrix small enough to factor."""

    matrix: FloatArray

    def solve(self, vector: FloatArray, tolerance: float = 0.0) -> FloatArray:
        from scipy.linalg.lapack import dposv

        _, answer, failed = dposv(self.matrix, vector, lower=True)
        if failed:  # flat in some direction, or bent the wrong way
            scale = np.maximum(np.diag(self.matrix), 1e-12)
            answer = conjugate_gradients(lambda v: self.matrix @ v, vector, scale, tolerance or 1e-10)
        return np.asarray(answer)


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
    product: Callable[[Any], Any], target: Any, diagonal: FloatArray, tolerance: float, most_steps: int = 20_000
) -> Any:
    """Solve product(x) = target for one right-hand side, or for each column of several at once.

    Where the matrix turns out to bend the wrong way it stops, with what it has.
    """
    scale = diagonal.astype(target.dtype) if target.ndim == 1 else diagonal.astype(target.dtype)[:, None]
    x = np.zeros_like(target)
    residual = target.copy()
    direction = residual / scale
    energy = np.sum(residual * direction, axis=0, dtype=np.float64)
    goal = tolerance**2 * energy
    for _ in range(most_steps):
        if np.all(energy <= goal):
            break
        pushed = product(direction)
        bend = np.sum(direction * pushed, axis=0, dtype=np.float64)
        if target.ndim == 1 and bend <= 0:
            return x if x.any() else direction  # never nothing: a climb would take that for its summit
        # a column that is done (or never needed doing) has no energy left to divide by
        step = np.divide(energy, bend, where=energy > goal, out=np.zeros_like(energy))
        step = step.astype(target.dtype)
        x += step * direction
        residual -= step * pushed
        ready = residual / scale
        fresh = np.sum(residual * ready, axis=0, dtype=np.float64)
        turn = np.divide(fresh, energy, where=energy > goal, out=np.zeros_like(energy))
        direction = ready + turn.astype(target.dtype) * direction
        energy = fresh
    return x


# How much of a positive diagonal is added to a matrix that bends the wrong way, until it does not.
DAMPINGS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class DampedCurvature:
    """A matrix that may bend the wrong way in places, held up there by a positive diagonal.

    What it solves to is always a way uphill, and Newton's own where the matrix allows.
    """

    product: Callable[[FloatArray], FloatArray]
    diagonal: FloatArray
    matrix: Callable[[], FloatArray] | None = None
    """The matrix itself, where it is small enough to factor."""
    scale: FloatArray | None = None
    """A better guess of the matrix's own diagonal, to precondition with."""

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        if self.matrix is not None:
            from scipy.linalg import cho_solve

            return np.asarray(cho_solve((self.root(), True), vector))
        for damping in DAMPINGS:
            found = self._iterate(vector, tolerance, damping)
            if found is not None:
                return found
        return vector / self.diagonal

    def root(self) -> FloatArray:
        """The Cholesky factor L of the matrix, held up as little as need be: LLᵀ."""
        assert self.matrix is not None
        matrix = self.matrix()
        for damping in DAMPINGS:
            try:
                return np.asarray(np.linalg.cholesky(matrix + np.diag(damping * self.diagonal)))
            except np.linalg.LinAlgError:
                continue
        return np.diag(np.sqrt(self.diagonal))

    def _iterate(self, vector: FloatArray, tolerance: float, damping: float) -> FloatArray | None:
        bent = False
        scale = (self.diagonal if self.scale is None else self.scale) + damping * self.diagonal

        def multiply(v: FloatArray) -> FloatArray:
            nonlocal bent
            pushed = self.product(v) + damping * self.diagonal * v
            bent = bent or float(v @ pushed) <= 0
            return pushed

        answer = conjugate_gradients(multiply, vector, scale, tolerance)
        return None if bent else np.asarray(answer)
