"""Mallows distribution of top-k lists: P(σ | π) = e^(θ·d(σ, π)) / Z (Klementiev et al. 2008).

The distance d is Definition 1 of Wu et al. (2016). With r items of π not in σ (and r of σ not in π), d is r(r+1)/2 plus
the number of discordant pairs, counting pairs of two items in both lists and pairs of one item in both lists and one in
a single list. Over all lists σ of k among n items, with q = e^θ and [m]! the normaliser of full lists of m items,

Z = Σᵣ C(n−k, r)·r!·q^(r(r+1)/2)·([k]! / [r]! / [k−r]!)²·[k−r]!.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.models.lists import mallows_likelihood

# e^−θ underflows to zero beyond this.
_MAX_THETA = 740.0


def distance(first: Any, second: Any) -> int:
    """Definition 1 of Wu et al. (2016), for two lists of equal length, best first."""
    place = {item: p for p, item in enumerate(second)}
    below = len(place)
    missing = len(set(first) - set(second))
    discordant = sum(
        place.get(a, below) > place.get(b, below)
        for i, a in enumerate(first)
        for b in [*first[i + 1 :], *(set(second) - set(first))]
        if a in place or b in set(first)  # pairs of one item only in `first` and one only in `second` are counted below
    )
    return discordant + missing * (missing + 1) // 2


def log_normaliser(theta: Any, items: int, top: int) -> FloatArray:
    """log Z(θ) of lists of `top` among `items`, for a scalar or an array of θ."""
    return np.asarray(np.logaddexp.reduce(_log_terms(theta, items, top), axis=-1))


def expected_distance(theta: Any, items: int, top: int) -> FloatArray:
    """E(d) = d log Z / dθ."""
    terms = _log_terms(theta, items, top)
    probability = np.exp(terms - np.logaddexp.reduce(terms, axis=-1, keepdims=True))
    return np.asarray((probability * _expected_given_missing(theta, items, top)).sum(axis=-1))


def estimate_theta(total: float, items: Any, top: Any, weight: Any = 1.0) -> float:
    """Maximum-likelihood θ: the one at which Σ weight·E(d) equals the total distance; ∓∞ at the extremes."""
    from scipy.optimize import brentq

    weight, items, top = np.broadcast_arrays(np.asarray(weight, np.float64), items, top)
    kinds, row = np.unique(np.stack((items.ravel(), top.ravel())), axis=1, return_inverse=True)
    total_weight = np.bincount(row.ravel(), weight.ravel())
    rows: list[tuple[float, int, int]] = list(zip(total_weight.tolist(), *kinds.tolist(), strict=True))
    if total <= 0 or total >= sum(w * max_distance(n, k) for w, n, k in rows):
        return -float(np.inf) if total <= 0 else float(np.inf)

    def excess(theta: float) -> float:
        return -total + sum(w * float(expected_distance(theta, n, k)) for w, n, k in rows)

    low, high = -1.0, 1.0
    while excess(low) > 0 and low > -_MAX_THETA:
        low *= 2
    while excess(high) < 0 and high < _MAX_THETA:
        high *= 2
    if excess(low) > 0 or excess(high) < 0:
        return float(low if excess(low) > 0 else high)
    return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14))


def max_distance(items: int, top: int) -> float:
    """The largest possible distance."""
    r = _missing_counts(items, top)
    both = top - r
    return float(np.max(r * (r + 1) / 2 + 2 * r * both + both * (both - 1) / 2))


def _missing_counts(items: int, top: int) -> IntArray:
    """The possible numbers r of items of one list that are missing from another."""
    return np.arange(min(top, items - top) + 1)


def _log_terms(theta: Any, items: int, top: int) -> FloatArray:
    """Logarithms of the terms of Z, one per r."""
    from scipy.special import gammaln

    theta = np.asarray(theta, np.float64)[..., None]
    r = _missing_counts(items, top)
    ways = gammaln(items - top + 1) - gammaln(items - top - r + 1)
    z = mallows_likelihood.log_normaliser
    return np.asarray(ways + theta * r * (r + 1) / 2 + 2 * (z(theta, top) - z(theta, r)) - z(theta, top - r))


def _expected_given_missing(theta: Any, items: int, top: int) -> FloatArray:
    """E(d | r items are missing), for every r."""
    theta, r = np.asarray(theta, np.float64)[..., None], _missing_counts(items, top)
    mean = mallows_likelihood.expected_distance
    return np.asarray(r * (r + 1) / 2 + 2 * (mean(theta, top) - mean(theta, r)) - mean(theta, top - r))
