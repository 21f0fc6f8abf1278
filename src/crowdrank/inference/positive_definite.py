"""Solving with small positive definite matrices by NumPy, and with large ones by SciPy.

Importing `scipy.linalg` takes longer than ranking a small file, so matrices below `SCIPY_MIN_SIZE` do without it.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray

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
