"""One factor for much at once: a step of Newton's on its logarithm, with its noise, taken or not (Qi & Minka 2002).

Of each judgment's margin one part is fixed and one is multiplied by the factor.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crowdrank.likelihoods.hazard import hazard_by_table, log_cdf_by_table


class Powers(NamedTuple):
    """What is believed of a factor f beforehand: a log density by log f, as a sum of its powers and its logarithm."""

    square: float
    plain: float
    log: float
    inverse_square: float
    """Of f⁻², which is taken away."""


def _bend(fixed: Any, moved: Any, prior: Any, log_factor: Any) -> Any:
    """The log posterior of log f, its slope, and how it is bent, as far as that is down."""
    factor = math.exp(log_factor)
    likely, slope, bent = 0.0, 0.0, 0.0
    for row in range(len(moved)):
        part = factor * moved[row]
        x = fixed[row] + part
        hazard = hazard_by_table(x)
        likely += log_cdf_by_table(x)
        slope += hazard * part
        bent += max(0.0, hazard * (hazard + x)) * part * part
    square, plain, inverse = prior.square * factor**2, prior.plain * factor, prior.inverse_square / factor**2
    likely += square + plain + prior.log * log_factor - inverse
    slope += 2.0 * square + plain + prior.log + 2.0 * inverse
    bent += max(0.0, -4.0 * square - plain) + 4.0 * inverse
    return likely, slope, bent + 1e-3


def stretch(rng: Any, fixed: Any, moved: Any, prior: Any) -> Any:
    """The factor: 1 where the step was not taken."""
    here, slope, bent = _bend(fixed, moved, prior, 0.0)
    step = slope / bent + rng.standard_normal() / math.sqrt(bent)
    if not abs(step) < 3.0:
        return 1.0
    there, back_slope, back_bent = _bend(fixed, moved, prior, step)
    gain = there - here + 0.5 * math.log(back_bent / bent)
    gain += 0.5 * bent * (step - slope / bent) ** 2 - 0.5 * back_bent * (step + back_slope / back_bent) ** 2
    return math.exp(step) if math.log(rng.random()) < gain else 1.0


STRETCHING = (hazard_by_table, log_cdf_by_table, _bend, stretch)
