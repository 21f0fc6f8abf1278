"""Maximisation: Newton's method and nonlinear conjugate gradients, with a stopping rule in standard errors.

Both stop when √(gᵀH⁻¹g), with g the gradient and H the negative Hessian, is at most `tolerance`. That is the length of
the Newton step in units of the estimate's own standard errors, so it means the same on any data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.local import limit_blas_threads
from crowdrank.inference.curvature import Curvature

_SMALLEST_STEP = 2.0**-20
_SMALLEST_MOVE = 1e-3


@dataclass(frozen=True)
class Evaluation:
    """Value, gradient and curvature (negative Hessian) of an objective at one evaluation."""

    value: float
    gradient: FloatArray
    curvature: Curvature


@dataclass(frozen=True)
class OptimizeResult:
    """Outcome of a maximisation.

    Parameters
    ----------
    parameters : array
        The best parameters found.
    evaluation : Evaluation
        The objective there.
    steps : int
        Number of iterations.
    distance : float
        Estimated distance to the optimum in standard errors, √(gᵀH⁻¹g).
    converged : bool
        Whether `distance` is at most the tolerance.
    """

    parameters: FloatArray
    evaluation: Evaluation
    steps: int
    distance: float
    converged: bool


def maximize(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 100,
    max_step: float = float("inf"),
    cg_tolerance: float = 0.05,
    evaluation: Evaluation | None = None,
) -> OptimizeResult:
    """Maximise an objective by Newton's method with a backtracking line search.

    Parameters
    ----------
    objective : callable
        Returns an `Evaluation` at given parameters.
    start : array
        Starting values.
    tolerance : float, default 1e-4
        Stop when the estimated distance to the optimum is at most this many standard errors.
    max_steps : int, default 100
        Maximum number of iterations.
    max_step : float, optional
        Largest change of any parameter in one step, for objectives that are not concave everywhere.
    cg_tolerance : float, default 0.05
        Relative residual to which the first Newton systems are solved; later ones are solved more accurately.
    evaluation : Evaluation, optional
        The objective at the starting values, if it is known.

    Returns
    -------
    OptimizeResult
    """
    with limit_blas_threads(len(start)):
        return _newton(objective, start, tolerance, max_steps, max_step, cg_tolerance, evaluation)


def _newton(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    tolerance: float,
    max_steps: int,
    max_step: float,
    cg_tolerance: float,
    evaluation: Evaluation | None,
) -> OptimizeResult:
    x, evaluation = start, evaluation or objective(start)
    distance = float("inf")
    for step in range(max_steps + 1):
        # Inexact Newton: solve loosely far from the optimum and accurately near it, which keeps the fast convergence,
        # but never more accurately than the final tolerance needs.
        residual = min(cg_tolerance, max(0.3 * distance / len(x) ** 0.5, 0.3 * tolerance / distance))
        direction = evaluation.curvature.solve(evaluation.gradient, max(residual, 1e-10))
        distance = max(float(evaluation.gradient @ direction), 0.0) ** 0.5
        if distance <= tolerance:
            return OptimizeResult(x, evaluation, step, distance, True)
        if step == max_steps:
            break
        reach = float(np.max(np.abs(direction)))
        if reach > max_step:
            direction = direction * (max_step / reach)
        moved = _line_search(objective, x, evaluation, direction)
        if moved is None:  # no step improves: converged only if the remaining gain is below rounding error
            return OptimizeResult(x, evaluation, step, distance, distance**2 <= 1e-11 * max(1.0, abs(evaluation.value)))
        x, evaluation = moved
    return OptimizeResult(x, evaluation, max_steps, distance, False)


def _line_search(
    objective: Callable[[FloatArray], Evaluation], x: FloatArray, evaluation: Evaluation, direction: FloatArray
) -> tuple[FloatArray, Evaluation] | None:
    """The full step, or the first of 1/2, 1/4, … of it with sufficient increase; None if there is none."""
    predicted_gain, reach = float(evaluation.gradient @ direction), float(np.max(np.abs(direction)))
    length = 1.0
    # where the objective is nearly flat the Newton step may be huge, and only a tiny fraction of it useful
    while length >= _SMALLEST_STEP or length * reach >= _SMALLEST_MOVE:
        candidate = x + length * direction
        reached = objective(candidate)
        rounding = 1e-13 * abs(evaluation.value)
        if reached.value >= evaluation.value + 1e-4 * length * predicted_gain - rounding:
            return candidate, reached
        length /= 2
    return None


_FIRST_GRADIENT_TOLERANCE = 1e-2
_LINE_SEARCH_RESOLUTION = 1e-2


def maximize_nonlinear_cg(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 5_000,
) -> OptimizeResult:
    """Maximise an objective by nonlinear conjugate gradients (Polak & Ribière 1969), with Newton's stopping rule.

    The steps use gradients only. The curvature is evaluated only where the gradient is nearly zero, to estimate the
    distance to the optimum; if that exceeds `tolerance`, the search continues with a smaller gradient tolerance.
    """
    from scipy.optimize import minimize

    def negated(x: FloatArray) -> tuple[float, FloatArray]:
        evaluation = objective(x)
        return -evaluation.value, -evaluation.gradient

    x, evaluation, steps, gradient_tolerance = start, objective(start), 0, _FIRST_GRADIENT_TOLERANCE
    while True:
        distance = _distance(evaluation)
        if distance <= tolerance or steps >= max_steps:
            return OptimizeResult(x, evaluation, steps, distance, distance <= tolerance)
        gradient_tolerance = min(gradient_tolerance, float(np.max(np.abs(evaluation.gradient)))) * 0.1
        options = {"gtol": gradient_tolerance, "maxiter": max_steps - steps}
        found = minimize(negated, x, jac=True, method="CG", options=options)
        reached = objective(found.x)
        if not found.nit or not reached.value >= evaluation.value:
            # no step improves: a line search cannot resolve gains below about 0.01 standard errors
            return OptimizeResult(x, evaluation, steps, distance, distance <= max(tolerance, _LINE_SEARCH_RESOLUTION))
        x, evaluation, steps = found.x, reached, steps + int(found.nit)


def _distance(evaluation: Evaluation) -> float:
    """√(gᵀH⁻¹g)."""
    return math.sqrt(max(float(evaluation.gradient @ evaluation.curvature.solve(evaluation.gradient, 1e-6)), 0.0))


# Derivatives by finite differences, and maximisation with them, for smooth functions of a few coordinates.

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
