"""Nonlinear conjugate gradients (Polak & Ribière 1969): a way up by slopes alone, with Newton's stopping rule."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crowdrank.solvers.newton import Found, Point

Vector = npt.NDArray[np.float64]

_FIRST_SLOPE = 1e-2
_UNSEEN = 1e-2


def climb_by_conjugate_gradients(
    objective: Callable[[Vector], Point],
    start: Vector,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 5_000,
) -> Found:
    """Climb until no combination of parameters is further than `tolerance` standard errors from the summit.

    The steps go by slopes alone. The curvature is asked only where the ground seems level, for how far the summit
    still is; if further than `tolerance`, the climb goes on from there until it is more level still.
    """
    from scipy.optimize import minimize

    def downhill(x: Vector) -> tuple[float, Vector]:
        point = objective(x)
        return -point.value, -point.gradient

    x, point, steps, level = start, objective(start), 0, _FIRST_SLOPE
    while True:
        distance = _distance(point)
        if distance <= tolerance or steps >= max_steps:
            return Found(x, point, steps, distance, distance <= tolerance)
        level = min(level, float(np.max(np.abs(point.gradient)))) * 0.1
        walked = minimize(downhill, x, jac=True, method="CG", options={"gtol": level, "maxiter": max_steps - steps})
        reached = objective(walked.x)
        if not walked.nit or not reached.value >= point.value:
            # no step improves: a line search sees no gain as small as the last hundredth of a standard error
            return Found(x, point, steps, distance, distance <= max(tolerance, _UNSEEN))
        x, point, steps = walked.x, reached, steps + int(walked.nit)


def _distance(point: Point) -> float:
    """√(gᵀH⁻¹g)."""
    return math.sqrt(max(float(point.gradient @ point.curvature.solve(point.gradient, 1e-6)), 0.0))
