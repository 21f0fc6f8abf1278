"""Newton's method for concave objectives, with a line search and a stopping rule in units of standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.solvers.curvature import Curvature
from crowdrank.solvers.threads import alone

Vector = npt.NDArray[np.float64]

_SMALLEST_STEP = 2.0**-20
_SMALLEST_MOVE = 1e-3


@dataclass(frozen=True)
class Point:
    """An objective at some parameters."""

    value: float
    gradient: Vector
    curvature: Curvature


@dataclass(frozen=True)
class Found:
    """Where a climb ended."""

    parameters: Vector
    point: Point
    steps: int
    distance: float
    """How far the summit still is, in standard errors: √(gᵀH⁻¹g)."""
    converged: bool


def climb(
    objective: Callable[[Vector], Point],
    start: Vector,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 100,
    longest: float = float("inf"),
    loosest: float = 0.05,
) -> Found:
    """Climb until no combination of parameters is further than `tolerance` standard errors from the summit.

    `longest` limits how far one step moves any parameter, for objectives that are not concave everywhere; `loosest`
    is how roughly the first steps are solved for.
    """
    with alone(len(start)):
        return _climb(objective, start, tolerance, max_steps, longest, loosest)


def _climb(
    objective: Callable[[Vector], Point],
    start: Vector,
    tolerance: float,
    max_steps: int,
    longest: float,
    loosest: float,
) -> Found:
    x, point = start, objective(start)
    distance = float("inf")
    for step in range(max_steps + 1):
        # Solve loosely far from the summit and tightly near it: the error of a step then falls as fast as Newton's,
        # but never more tightly than the end of the climb asks for.
        looseness = min(loosest, max(0.3 * distance / len(x) ** 0.5, 0.3 * tolerance / distance))
        direction = point.curvature.solve(point.gradient, max(looseness, 1e-10))
        distance = max(float(point.gradient @ direction), 0.0) ** 0.5
        if distance <= tolerance:
            return Found(x, point, step, distance, True)
        if step == max_steps:
            break
        reach = float(np.max(np.abs(direction)))
        moved = _uphill(objective, x, point, direction if reach <= longest else direction * (longest / reach))
        if moved is None:  # no step improves: at the summit only if what is left to gain drowns in rounding
            return Found(x, point, step, distance, distance**2 <= 1e-11 * max(1.0, abs(point.value)))
        x, point = moved
    return Found(x, point, max_steps, distance, False)


def _uphill(
    objective: Callable[[Vector], Point], x: Vector, point: Point, direction: Vector
) -> tuple[Vector, Point] | None:
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
