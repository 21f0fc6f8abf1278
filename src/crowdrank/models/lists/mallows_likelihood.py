"""Mallows distribution: P(list y | centre σ) = e^(θ·d(y, σ)) / Zₙ(θ), with d the Kendall distance.

Zₙ = Πⱼ (1 + e^θ + … + e^((j−1)θ)). θ < 0 concentrates on the centre, θ = 0 is uniform, θ > 0 concentrates on the
reversed centre. In the repeated-insertion construction, inserting the j-th item of the centre creates cⱼ = 0 … j−1
discordant pairs, independently with P(c) ∝ e^(θc); every quantity here is a sum over j (Mallows 1957, Doignon et al.
2004).

For top-k lists, P(σ | π) = e^(θ·d(σ, π)) / Z (Klementiev et al. 2008).

The distance d is Definition 1 of Wu et al. (2016). With r items of π not in σ (and r of σ not in π), d is r(r+1)/2 plus
the number of discordant pairs, counting pairs of two items in both lists and pairs of one item in both lists and one in
a single list. Over all lists σ of k among n items, with q = e^θ and [m]! the normaliser of full lists of m items,

Z = Σᵣ C(n−k, r)·r!·q^(r(r+1)/2)·([k]! / [r]! / [k−r]!)²·[k−r]!.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray

# Below this, 1/x and ½·coth(x/2) cancel, and a series is exact to floating-point precision.
_SERIES_BELOW = 0.3
# e^θ underflows to zero below this.
_MIN_THETA = -740.0
# e^−θ underflows to zero beyond this.
_MAX_THETA = 740.0


def log_normaliser(theta: Any, items: Any) -> FloatArray:
    """log Zₙ(θ), for scalars or arrays of θ and n."""
    theta, items = np.asarray(theta, np.float64), np.asarray(items, np.int64)
    near = _sum_over_items(_log_terms, -np.abs(theta), items)
    return np.asarray(near + np.maximum(theta, 0.0) * pair_count(items))


def expected_distance(theta: Any, items: Any) -> FloatArray:
    """E(d) = d log Zₙ / dθ, for scalars or arrays of θ and n."""
    theta, items = np.asarray(theta, np.float64), np.asarray(items, np.int64)
    near = _sum_over_items(_means, -np.abs(theta), items)
    return np.asarray(np.where(theta > 0, pair_count(items) - near, near))


def expected_distance_by_size(theta: FloatArray, largest: int) -> FloatArray:
    """E(d) for every number of items from 0 to `largest`: one row per θ. All of them cost as much as the largest."""
    means = np.cumsum(_means(-np.abs(theta)[:, None], np.arange(2, max(largest, 1) + 1)), axis=1)
    near = np.pad(means, ((0, 0), (2, 0)))[:, : largest + 1]
    return np.asarray(np.where(theta[:, None] > 0, pair_count(np.arange(largest + 1)) - near, near))


def estimate_theta(distance: float, items: Any, weight: Any = 1.0) -> float:
    """Maximum-likelihood θ: the one at which Σ weight·E(d) equals the observed total distance.

    Parameters
    ----------
    distance : float
        Total weighted Kendall distance of the lists to the centre.
    items : int or array
        Length of each list.
    weight : float or array, default 1
        Weight of each list. A tied group is an entry of negative weight: it removes the pairs that the tie leaves
        unordered.

    Returns
    -------
    float
        θ; -inf if the distance is 0, inf if it is the largest possible.
    """
    from scipy.optimize import brentq

    size, row = np.unique(np.atleast_1d(np.asarray(items, np.int64)), return_inverse=True)
    total = np.bincount(row.ravel(), np.broadcast_to(np.asarray(weight, np.float64), row.shape).ravel())
    largest = float(total @ pair_count(size))
    # Reversing the centre maps θ to −θ, so only θ ≤ 0 has to be solved for.
    if 2 * distance > largest:
        return -estimate_theta(largest - distance, size, total)
    if distance <= 0:
        return -np.inf

    def excess(theta: float) -> float:
        return float(total @ expected_distance(theta, size)) - distance

    low = -1.0
    while excess(low) > 0 and low > _MIN_THETA:
        low = max(2 * low, _MIN_THETA)
    if excess(low) > 0 or excess(0.0) <= 0:
        return low if excess(low) > 0 else 0.0
    return float(brentq(excess, low, 0.0, xtol=1e-13, rtol=1e-14))


def sample_lists(rng: np.random.Generator, theta: Any, items: int) -> IntArray:
    """One list per θ, by repeated insertion: each row is a permutation of the items, where item 0 leads the centre."""
    theta = np.atleast_1d(np.asarray(theta, np.float64))
    lists = np.zeros((len(theta), items), np.int64)
    for j in range(2, items + 1):
        place = j - 1 - _sample_discordant(rng.random(len(theta)), theta, j)
        moved = np.arange(j) > place[:, None]
        lists[:, 1:j] = np.where(moved[:, 1:], lists[:, : j - 1], lists[:, 1:j])
        np.put_along_axis(lists, place[:, None], j - 1, axis=1)
    return lists


def pair_count(items: Any) -> FloatArray:
    """Number of pairs of items, which is the largest Kendall distance."""
    items = np.asarray(items, np.float64)
    return np.asarray(items * (items - 1) / 2)


def _sample_discordant(uniform: FloatArray, theta: FloatArray, j: int) -> IntArray:
    """Sample c = 0 … j−1 with P(c) ∝ e^(θc), by inverting the distribution function at the uniform numbers."""
    near = -np.abs(theta)
    flat = near > -1e-300
    steps = np.where(flat, uniform * j, np.log1p(uniform * np.expm1(j * near)) / np.where(flat, 1.0, near))
    c = np.minimum(steps.astype(np.int64), j - 1)
    return np.where(theta > 0, j - 1 - c, c)


def _sum_over_items(term: Any, theta: FloatArray, items: IntArray) -> FloatArray:
    """Σ of term(θ, j) over j = 2 … n."""
    theta, items = np.broadcast_arrays(theta, items)
    j = np.arange(2, max(int(items.max(initial=0)), 1) + 1)
    each = np.where(j <= items[..., None], term(theta[..., None], j), 0.0)
    return np.asarray(each.sum(axis=-1))


def _log_terms(theta: FloatArray, j: IntArray) -> FloatArray:
    """log(1 + e^θ + … + e^((j−1)θ)) for θ ≤ 0."""
    flat = theta > -1e-300
    safe = np.where(flat, -1.0, theta)
    # log1p of the terms beyond the 1: accurate for θ near 0 and for very negative θ.
    beyond_one = np.exp(safe) * np.expm1((j - 1) * safe) / np.expm1(safe)
    return np.asarray(np.log1p(np.where(flat, j - 1.0, beyond_one)))


def _means(theta: FloatArray, j: IntArray) -> FloatArray:
    """The mean of cⱼ for θ ≤ 0: h(θ) − j·h(jθ), h(x) = 1/(e^−x − 1)."""
    # Near 0 both terms are of the order 1/θ. Writing h(x) = −1/x − ½ + r(x), the 1/θ cancels analytically.
    near = (j - 1) / 2 + _remainder(theta) - j * _remainder(j * theta)
    steep = np.minimum(theta, -1.0)
    far = _h(steep) - j * _h(j * steep)
    return np.asarray(np.where(theta > -1.0, near, far))


def _h(x: Any) -> Any:
    return -np.exp(x) / np.expm1(x)


def _remainder(x: FloatArray) -> FloatArray:
    """r(x) = 1/x − ½·coth(x/2), by its series −x/12 + x³/720 − … near 0."""
    small = np.abs(x) < _SERIES_BELOW
    square = np.where(small, x * x, 0.0)
    series = 1 / 12 - square * (1 / 720 - square * (1 / 30240 - square * (1 / 1209600 - square / 47900160)))
    safe = np.where(small, 1.0, x)
    return np.asarray(np.where(small, -x * series, 1 / safe - 0.5 / np.tanh(safe / 2)))


# Top-k lists


def top_k_distance(first: Any, second: Any) -> int:
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


def top_k_log_normaliser(theta: Any, items: int, top: int) -> FloatArray:
    """log Z(θ) of lists of `top` among `items`, for a scalar or an array of θ."""
    return np.asarray(np.logaddexp.reduce(_top_k_log_terms(theta, items, top), axis=-1))


def expected_top_k_distance(theta: Any, items: int, top: int) -> FloatArray:
    """E(d) = d log Z / dθ."""
    terms = _top_k_log_terms(theta, items, top)
    probability = np.exp(terms - np.logaddexp.reduce(terms, axis=-1, keepdims=True))
    return np.asarray((probability * _expected_given_missing(theta, items, top)).sum(axis=-1))


def estimate_top_k_theta(total: float, items: Any, top: Any, weight: Any = 1.0) -> float:
    """Maximum-likelihood θ: the one at which Σ weight·E(d) equals the total distance; ∓∞ at the extremes."""
    from scipy.optimize import brentq

    weight, items, top = np.broadcast_arrays(np.asarray(weight, np.float64), items, top)
    kinds, row = np.unique(np.stack((items.ravel(), top.ravel())), axis=1, return_inverse=True)
    total_weight = np.bincount(row.ravel(), weight.ravel())
    rows: list[tuple[float, int, int]] = list(zip(total_weight.tolist(), *kinds.tolist(), strict=True))
    if total <= 0 or total >= sum(w * max_top_k_distance(n, k) for w, n, k in rows):
        return -float(np.inf) if total <= 0 else float(np.inf)

    def excess(theta: float) -> float:
        return -total + sum(w * float(expected_top_k_distance(theta, n, k)) for w, n, k in rows)

    low, high = -1.0, 1.0
    while excess(low) > 0 and low > -_MAX_THETA:
        low *= 2
    while excess(high) < 0 and high < _MAX_THETA:
        high *= 2
    if excess(low) > 0 or excess(high) < 0:
        return float(low if excess(low) > 0 else high)
    return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14))


def max_top_k_distance(items: int, top: int) -> float:
    """The largest possible distance."""
    r = _missing_counts(items, top)
    both = top - r
    return float(np.max(r * (r + 1) / 2 + 2 * r * both + both * (both - 1) / 2))


def _missing_counts(items: int, top: int) -> IntArray:
    """The possible numbers r of items of one list that are missing from another."""
    return np.arange(min(top, items - top) + 1)


def _top_k_log_terms(theta: Any, items: int, top: int) -> FloatArray:
    """Logarithms of the terms of Z, one per r."""
    from scipy.special import gammaln

    theta = np.asarray(theta, np.float64)[..., None]
    r = _missing_counts(items, top)
    ways = gammaln(items - top + 1) - gammaln(items - top - r + 1)
    z = log_normaliser
    return np.asarray(ways + theta * r * (r + 1) / 2 + 2 * (z(theta, top) - z(theta, r)) - z(theta, top - r))


def _expected_given_missing(theta: Any, items: int, top: int) -> FloatArray:
    """E(d | r items are missing), for every r."""
    theta, r = np.asarray(theta, np.float64)[..., None], _missing_counts(items, top)
    mean = expected_distance
    return np.asarray(r * (r + 1) / 2 + 2 * (mean(theta, top) - mean(theta, r)) - mean(theta, top - r))
