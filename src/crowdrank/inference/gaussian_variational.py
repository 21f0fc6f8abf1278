"""Normal approximation of a posterior by variational inference, as a refinement of Laplace's.

Laplace's method takes the mode and the curvature there. Where a parameter has few data its posterior is skewed and
wider than that. The normal distribution q = N(m, P⁻¹) that is closest to the posterior in the sense of
KL(q ‖ posterior) has a zero mean gradient, and a precision P that is the mean curvature, both under q itself (Opper &
Archambeau 2009). Here the means are taken over a few pairs of opposite draws. The draws are made from the same random
numbers in every round, so that the iteration converges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.curvature import DampedCurvature
from crowdrank.inference.newton import Evaluation
from crowdrank.inference.positive_definite import solve_factored

# Share of the former precision that is kept in each round, and the largest change of a parameter in one.
_KEPT, _MAX_STEP = 0.5, 1.0


class MatrixCurvature(Protocol):
    """A curvature known as a matrix, with a positive diagonal for damping."""

    @property
    def matrix(self) -> FloatArray: ...

    @property
    def diagonal(self) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class NormalApproximation:
    """A normal distribution that approximates a posterior.

    Parameters
    ----------
    mean : array of float
        Its mean.
    root : array of float
        Cholesky factor L of its precision, LLᵀ.
    shift : float
        How far the last round moved the mean, in standard errors: √((m′−m)ᵀP(m′−m) / n).
    evaluations : list of Evaluation
        The log posterior at the draws of the last round.
    """

    mean: FloatArray
    root: FloatArray
    shift: float
    evaluations: list[Evaluation]


def refine(
    objective: Callable[[FloatArray], Evaluation],
    curvature_of: Callable[[Evaluation], MatrixCurvature],
    mean: FloatArray,
    root: FloatArray,
    noise: FloatArray,
    prior_precision: float,
) -> NormalApproximation:
    """One round of variational inference.

    Parameters
    ----------
    objective : callable
        Log posterior density: an `Evaluation` at given parameters.
    curvature_of : callable
        The curvature of an evaluation, as a matrix.
    mean, root : arrays of float
        The approximation so far.
    noise : array of float, pairs × parameters
        Random numbers of mean 0 and variance 1; each row is used with both signs.
    prior_precision : float
        Precision of the prior of each parameter. The approximation is nowhere wider than the prior.
    """
    size = len(mean)
    with limit_blas_threads(size):
        around = np.linalg.solve(root.T, noise.T).T
        gradient, diagonal = np.zeros(size), np.zeros(size)
        matrix: FloatArray = np.zeros((size, size))
        share = 0.5 / len(noise)
        evaluations = [objective(mean + one) for one in (*around, *-around)]
        for found in evaluations:
            curvature = curvature_of(found)
            gradient += share * found.gradient
            matrix += share * curvature.matrix
            diagonal += share * curvature.diagonal
        matrix = _KEPT * root @ root.T + (1.0 - _KEPT) * matrix
        matrix.flat[:: size + 1] -= 0.99 * prior_precision
        of_likelihood = DampedCurvature(lambda x: matrix @ x, diagonal, lambda: matrix).cholesky()
        precision = of_likelihood @ of_likelihood.T
        precision.flat[:: size + 1] += 0.99 * prior_precision
        new_root = np.asarray(np.linalg.cholesky(precision))
        step = solve_factored(new_root, gradient)
        step *= min(1.0, _MAX_STEP / max(float(np.max(np.abs(step))), 1e-300))
        shift = float(np.linalg.norm(new_root.T @ step)) / size**0.5
    return NormalApproximation(mean + step, new_root, shift, evaluations)
