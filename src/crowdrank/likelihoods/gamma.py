"""How far log Γ lies above its tangent: lnΓ(x) − lnΓ(y) − (x − y)ψ(y), without the digits that its terms would cancel.

Divergences of Betas are sums of it. lnΓ(x) = lnΓ(x + 1) − ln x moves both up until Stirling's series holds, and every
term of the sum is itself the height of a convex function above its tangent:

x(t) = t − ln(1 + t) for −ln,   y(t² − (1 + t)·x(t)) + x(t)/2 for (y − ½)ln y with t = (x − y)/y,
(ρ − 1)²(ρᵐ⁻¹ + 2ρᵐ⁻² + … + m)/(ρyᵐ) for y⁻ᵐ with ρ = y/x.

Elementwise, so that one text serves arrays and compiled loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# How far up: from here on the first term of Stirling's series that is left out is below 1e-14 of the sum.
_STEPS = 10
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def excess(t: Any) -> Any:
    """t − ln(1 + t), for t > −1."""
    # the series where the difference would lose more than a digit or two
    small = (np.abs(t) < 0.01) * 1.0
    tail = 1 / 6 - t * (1 / 7 - t * (1 / 8 - t / 9))
    series = t * t * (0.5 - t * (1 / 3 - t * (1 / 4 - t * (1 / 5 - t * tail))))
    return small * series + (1.0 - small) * (t - np.log1p(t))


def above_tangent(x: Any, y: Any) -> Any:
    """lnΓ(x) − lnΓ(y) − (x − y)ψ(y), for positive x and y."""
    gap = x - y
    total = 0.0 * gap
    for step in range(_STEPS):
        total = total + excess(gap / (y + step))
    y = y + _STEPS
    t = gap / y
    bent = excess(t)
    total = total + y * (t * t - (1.0 + t) * bent) + 0.5 * bent
    ratio = 1.0 / (1.0 + t)
    weight = (ratio - 1.0) * (ratio - 1.0) / (ratio * y)
    heap, power = 1.0, 1.0
    for coefficient in _STIRLING:
        total = total + coefficient * weight * heap
        heap = ratio * (ratio * heap + (power + 1.0)) + (power + 2.0)
        power = power + 2.0
        weight = weight / (y * y)
    return total
