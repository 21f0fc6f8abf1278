"""Derivatives by finite differences, and maximisation with them, for smooth functions of a few coordinates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from crowdrank.arrays import FloatArray

# Newton's method: its most steps, the distance between points, the longest step, and one that ends the search.
_MAX_STEPS, _DIFFERENCE, _LONGEST_STEP, _CLOSE = 15, 0.05, 0.5, 0.01
_LEAST_CURVATURE, _MAX_HALVINGS = 1e-3, 6


def derivatives(
    function: Callable[[FloatArray], float], value: float, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient and negative Hessian at zero, where the function has this value, by central and mixed differences."""
    size = len(steps)
    unit = np.diag(steps)
    ahead = np.array([function(row) for row in unit])
    behind = np.array([function(-row) for row in unit])
    gradient = (ahead - behind) / (2.0 * steps)
    hessian = np.diag((ahead + behind - 2.0 * value) / steps**2)
    for i, j in combinations(range(size), 2):
        mixed = function(unit[i] + unit[j]) - ahead[i] - ahead[j] + value
        hessian[i, j] = hessian[j, i] = mixed / (steps[i] * steps[j])
    return gradient, -hessian


def maximize_within(
    function: Callable[[FloatArray], float],
    start: FloatArray,
    free: list[int],
    bounds: tuple[tuple[float, float], ...],
) -> FloatArray:
    """Maximise a smooth function of some of the coordinates, within bounds, by Newton's method.

    For two or three coordinates this is as fast as SciPy's methods, and small rankings need not wait for SciPy.

    Parameters
    ----------
    function : callable
        The function of all coordinates.
    start : array of float
        Starting values; those of the coordinates that are not free are kept.
    free : list of int
        The coordinates to maximise over.
    bounds : tuple of (float, float)
        Lowest and highest value of every coordinate.
    """

    def place(values: FloatArray) -> FloatArray:
        found = start.copy()
        found[free] = values
        return found

    low, high = np.array(bounds)[free].reshape(-1, 2).T
    x = np.clip(start[free], low, high)
    value = function(place(x))
    for _ in range(_MAX_STEPS):

        def nearby(shift: FloatArray, at: FloatArray = x) -> float:
            return function(place(at + shift))

        gradient, curvature = derivatives(nearby, value, np.full(len(x), _DIFFERENCE))
        inner = ~(((x >= high) & (gradient > 0)) | ((x <= low) & (gradient < 0)))
        if not inner.any():
            break
        direction = np.zeros_like(x)
        values, axes = np.linalg.eigh(curvature[np.ix_(inner, inner)])
        direction[inner] = axes @ ((axes.T @ gradient[inner]) / np.maximum(np.abs(values), _LEAST_CURVATURE))
        direction *= min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(direction))), 1e-300))
        candidates = (np.clip(x + 0.5**n * direction, low, high) for n in range(_MAX_HALVINGS))
        better = next(((one, reached) for one in candidates if (reached := function(place(one))) > value), None)
        if better is None:
            break
        moved, (x, value) = float(np.max(np.abs(better[0] - x))), better
        if moved < _CLOSE:
            break
    return place(x)
