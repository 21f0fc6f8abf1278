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
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class Curvature(Protocol):
    """A symmetric matrix one can solve with."""

    def solve(self, vector: Vector, tolerance: float) -> Vector:
        """Curvature⁻¹ · vector, to a relative residual of about `tolerance`."""
        ...


@dataclass(frozen=True)
class Dense:
    """A matrix small enough to factor."""

    matrix: Matrix

    def solve(self, vector: Vector, tolerance: float = 0.0) -> Vector:
        from scipy.linalg.lapack import dposv

        _, answer, failed = dposv(self.matrix, vector, lower=True)
        if failed:  # flat in some direction, to rounding
            answer = np.linalg.lstsq(self.matrix, vector, rcond=None)[0]
        return np.asarray(answer)


@dataclass(frozen=True)
class Sparse:
    """A matrix known by its products; preconditioned by its diagonal."""

    product: Callable[[Vector], Vector]
    diagonal: Vector

    def solve(self, vector: Vector, tolerance: float) -> Vector:
        found: Vector = conjugate_gradients(self.product, vector, self.diagonal, tolerance)
        return found


dense, sparse = Dense, Sparse


def conjugate_gradients(
    product: Callable[[Any], Any], target: Any, diagonal: Vector, tolerance: float, most_steps: int = 20_000
) -> Any:
    """Solve product(x) = target for one right-hand side, or for each column of several at once."""
    scale = diagonal if target.ndim == 1 else diagonal[:, None]
    x = np.zeros_like(target)
    residual = target.copy()
    direction = residual / scale
    energy = np.sum(residual * direction, axis=0)
    goal = tolerance**2 * energy
    for _ in range(most_steps):
        if np.all(energy <= goal):
            break
        pushed = product(direction)
        # a column that is done (or never needed doing) has no energy left to divide by
        step = np.divide(energy, np.sum(direction * pushed, axis=0), where=energy > goal, out=np.zeros_like(energy))
        x += step * direction
        residual -= step * pushed
        ready = residual / scale
        fresh = np.sum(residual * ready, axis=0)
        direction = ready + np.divide(fresh, energy, where=energy > goal, out=np.zeros_like(energy)) * direction
        energy = fresh
    return x
