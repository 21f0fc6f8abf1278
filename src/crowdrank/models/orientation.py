"""Which way is up: an order and its reverse fit alike where annotators may be reversed, so heads are counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

# Votes for both sides that differ by less than this are even: rounding must not turn an order round.
EVEN = 1e-9


def turned(agreed: Vector, judged: Vector) -> bool:
    """Whether more annotators go against the order than with it, which is upside down then.

    `agreed` is how much of what each one `judged` agrees with the order. Few who always answer the wrong way round must
    not outvote many who are right more often than not: however much or surely one answers, a head is a head.
    """
    return float(np.sum(votes(agreed, judged))) < -EVEN


def votes(agreed: Vector, judged: Vector) -> Vector:
    """1 for annotators with the order, −1 for those against it; in between for those who may be either.

    A head is whole from a chance of three to one on (of a uniform prior). Counted by their surety instead, few sure
    ones would outvote many; by the sign alone, those who guess would.
    """
    from scipy.special import betainc

    against = betainc(agreed + 1.0, judged - agreed + 1.0, 0.5)
    return np.asarray(np.clip(2.0 * (1.0 - 2.0 * against), -1.0, 1.0))
