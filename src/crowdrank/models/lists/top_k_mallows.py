"""Klementiev et al. 2008 (Wu et al. 2016, Definition 1): Mallows for top-k lists, P(σ | π) = e^(θ·d(σ, π)) / Z.

With r items of π not in σ (and r of σ not in π), d counts the pairs that σ turns round, of two items in both lists, or
of one in both and one in one, and r(r+1)/2. Over all σ of k among n items, with q = e^θ and [m]! the normaliser of
lists of m items, Z = Σᵣ C(n−k, r)·r!·q^(r(r+1)/2)·([k]! / [r]! / [k−r]!)²·[k−r]!.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.models.lists import mallows_likelihood

# The steepest θ looked for: a float cannot tell e^θ from 0.
_STEEPEST = 740.0


def distance(first: Any, second: Any) -> int:
    """Definition 1, of two lists of as many items, best first."""
    place = {item: p for p, item in enumerate(second)}
    below = len(place)
    missing = len(set(first) - set(second))
    turned = sum(
        place.get(a, below) > place.get(b, below)
        for i, a in enumerate(first)
        for b in [*first[i + 1 :], *(set(second) - set(first))]
        if a in place or b in set(first)  # one of two only in the first, and one only in the second: counted below
    )
    return turned + missing * (missing + 1) // 2


def log_normaliser(theta: Any, items: int, top: int) -> FloatArray:
    """log Z(θ) of lists of `top` among `items`, for numbers or arrays of θ."""
    return np.asarray(np.logaddexp.reduce(_log_parts(theta, items, top), axis=-1))


def expected_distance(theta: Any, items: int, top: int) -> FloatArray:
    """E(d) = d log Z / dθ."""
    parts = _log_parts(theta, items, top)
    chance = np.exp(parts - np.logaddexp.reduce(parts, axis=-1, keepdims=True))
    return np.asarray((chance * _given_missing(theta, items, top)).sum(axis=-1))


def theta_of(total: float, items: Any, top: Any, weight: Any = 1.0) -> float:
    """The θ at which Σ weight·E(d), over lists of `top` among `items`, is this distance in total; ∓∞ at the ends."""
    from scipy.optimize import brentq

    weight, items, top = np.broadcast_arrays(np.asarray(weight, np.float64), items, top)
    kinds, row = np.unique(np.stack((items.ravel(), top.ravel())), axis=1, return_inverse=True)
    share = np.bincount(row.ravel(), weight.ravel())
    rows: list[tuple[float, int, int]] = list(zip(share.tolist(), *kinds.tolist(), strict=True))
    if total <= 0 or total >= sum(w * farthest(n, k) for w, n, k in rows):
        return -float(np.inf) if total <= 0 else float(np.inf)

    def short(theta: float) -> float:
        return -total + sum(w * float(expected_distance(theta, n, k)) for w, n, k in rows)

    low, high = -1.0, 1.0
    while short(low) > 0 and low > -_STEEPEST:
        low *= 2
    while short(high) < 0 and high < _STEEPEST:
        high *= 2
    if short(low) > 0 or short(high) < 0:
        return float(low if short(low) > 0 else high)
    return float(brentq(short, low, high, xtol=1e-13, rtol=1e-14))


def farthest(items: int, top: int) -> float:
    """The largest distance."""
    r = _missing(items, top)
    both = top - r
    return float(np.max(r * (r + 1) / 2 + 2 * r * both + both * (both - 1) / 2))


def _missing(items: int, top: int) -> IntArray:
    """How many items of one list may be missing from another: r."""
    return np.arange(min(top, items - top) + 1)


def _log_parts(theta: Any, items: int, top: int) -> FloatArray:
    from scipy.special import gammaln

    theta = np.asarray(theta, np.float64)[..., None]
    r = _missing(items, top)
    ways = gammaln(items - top + 1) - gammaln(items - top - r + 1)
    z = mallows_likelihood.log_normaliser
    return np.asarray(ways + theta * r * (r + 1) / 2 + 2 * (z(theta, top) - z(theta, r)) - z(theta, top - r))


def _given_missing(theta: Any, items: int, top: int) -> FloatArray:
    """E(d) where r items are missing, for every r."""
    theta, r = np.asarray(theta, np.float64)[..., None], _missing(items, top)
    mean = mallows_likelihood.expected_distance
    return np.asarray(r * (r + 1) / 2 + 2 * (mean(theta, top) - mean(theta, r)) - mean(theta, top - r))
