"""Newton's method for concave objectives, with a line search and a stopping rule in units of standard errors.

Nonlinear conjugate gradients (Polak & Ribière 1969): a way up by slopes alone, with Newton's stopping rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.engines.threads import limit_blas_threads
from crowdrank.inference.curvature import Curvature

_SMALLEST_STEP = 2.0**-20
_SMALLEST_MOVE = 1e-3


@dataclass(frozen=True)
class Evaluation:
    """An objective at some parameters."""

    value: float
    gradient: FloatArray
    curvature: Curvature


@dataclass(frozen=True)
class OptimizeResult:
    """Where a climb ended."""

    parameters: FloatArray
    point: Evaluation
    steps: int
    distance: float
    """How far the summit still is, in standard errors: √(gᵀH⁻¹g)."""
    converged: bool


def maximize(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 100,
    max_step: float = float("inf"),
    cg_tolerance: float = 0.05,
) -> OptimizeResult:
    """Climb until no combination of parameters is further than `tolerance` standard errors from the summit.

    `max_step` limits how far one step moves any parameter, for objectives that are not concave everywhere; `cg_tolerance`
    is how roughly the first steps are solved for.
    """
    with limit_blas_threads(len(start)):
        return _climb(objective, start, tolerance, max_steps, max_step, cg_tolerance)


def _climb(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    tolerance: float,
    max_steps: int,
    max_step: float,
    cg_tolerance: float,
) -> OptimizeResult:
    x, point = start, objective(start)
    distance = float("inf")
    for step in range(max_steps + 1):
        # Solve loosely far from the summit and tightly near it: the error of a step then falls as fast as Newton's,
        # but never more tightly than the end of the climb asks for.
        looseness = min(cg_tolerance, max(0.3 * distance / len(x) ** 0.5, 0.3 * tolerance / distance))
        direction = point.curvature.solve(point.gradient, max(looseness, 1e-10))
        distance = max(float(point.gradient @ direction), 0.0) ** 0.5
        if distance <= tolerance:
            return OptimizeResult(x, point, step, distance, True)
        if step == max_steps:
            break
        reach = float(np.max(np.abs(direction)))
        moved = _uphill(objective, x, point, direction if reach <= max_step else direction * (max_step / reach))
        if moved is None:  # no step improves: at the summit only if what is left to gain drowns in rounding
            return OptimizeResult(x, point, step, distance, distance**2 <= 1e-11 * max(1.0, abs(point.value)))
        x, point = moved
    return OptimizeResult(x, point, max_steps, distance, False)


def _uphill(
    objective: Callable[[FloatArray], Evaluation], x: FloatArray, point: Evaluation, direction: FloatArray
) -> tuple[FloatArray, Evaluation] | None:
    """The full step, or the first half, quarter, … of it that gains at least a little of what it promised."""
    promised, reach = float(point.gradient @ direction), float(np.max(np.abs(direction)))
    length = 1.0
    # where the ground is nearly level a direction may reach absurdly far: then its share may have to be tiny
    while length >= _SMALLEST_STEP or length * reach >= _SMALLEST_MOVE:
        there = x + length * direction
        reached = objective(there)
        rounding = 1e-13 * abs(point.value)
        if reached.value >= point.value + 1e-4 * length * promised - rounding:
            return there, reached
        length /= 2
    return None


_FIRST_SLOPE = 1e-2
_UNSEEN = 1e-2


def maximize_nonlinear_cg(
    objective: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 5_000,
) -> OptimizeResult:
    """Climb until no combination of parameters is further than `tolerance` standard errors from the summit.

    The steps go by slopes alone. The curvature is asked only where the ground seems level, for how far the summit
    still is; if further than `tolerance`, the climb goes on from there until it is more level still.
    """
    from scipy.optimize import minimize

    def downhill(x: FloatArray) -> tuple[float, FloatArray]:
        point = objective(x)
        return -point.value, -point.gradient

    x, point, steps, level = start, objective(start), 0, _FIRST_SLOPE
    while True:
        distance = _distance(point)
        if distance <= tolerance or steps >= max_steps:
            return OptimizeResult(x, point, steps, distance, distance <= tolerance)
        level = min(level, float(np.max(np.abs(point.gradient)))) * 0.1
        walked = minimize(downhill, x, jac=True, method="CG", options={"gtol": level, "maxiter": max_steps - steps})
        reached = objective(walked.x)
        if not walked.nit or not reached.value >= point.value:
            # no step improves: a line search sees no gain as small as the last hundredth of a standard error
            return OptimizeResult(x, point, steps, distance, distance <= max(tolerance, _UNSEEN))
        x, point, steps = walked.x, reached, steps + int(walked.nit)


def _distance(point: Evaluation) -> float:
    """√(gᵀH⁻¹g)."""
    return math.sqrt(max(float(point.gradient @ point.curvature.solve(point.gradient, 1e-6)), 0.0))
