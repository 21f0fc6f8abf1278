"""Mallows 1957: P(list y | centre σ) = e^(θ·d(y, σ)) / Zₙ(θ), d Kendall's distance, Zₙ = Πⱼ (1 + e^θ + … + e^((j−1)θ)).

θ < 0 keeps near the centre, θ = 0 is any list alike, θ > 0 keeps near the centre upside down. Built by inserting the
items of the centre one by one, item j turns round cⱼ = 0 … j−1 pairs with P(c) ∝ e^(θc), each by itself: all here are
sums over j of what is known of such a c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray

# Below it 1/x and ½·coth(x/2) cancel, and a series is as exact as floats are.
_SERIES_BELOW = 0.3
# e^θ is nothing to a float from here on.
_STEEPEST = -740.0


def log_normaliser(theta: Any, items: Any) -> FloatArray:
    """log Zₙ(θ), for numbers or arrays of θ and n."""
    theta, items = np.asarray(theta, np.float64), np.asarray(items, np.int64)
    near = _up_to(_log_terms, -np.abs(theta), items)
    return np.asarray(near + np.maximum(theta, 0.0) * pairs(items))


def expected_distance(theta: Any, items: Any) -> FloatArray:
    """E(d) = d log Zₙ / dθ, for numbers or arrays of θ and n."""
    theta, items = np.asarray(theta, np.float64), np.asarray(items, np.int64)
    near = _up_to(_means, -np.abs(theta), items)
    return np.asarray(np.where(theta > 0, pairs(items) - near, near))


def theta_of(distance: float, items: Any, weight: Any = 1.0) -> float:
    """The θ at which Σ weight·E(d), over lists of so many items, is this distance; ∓∞ at the ends.

    A weight below 0 takes off the pairs that a tie of so many items leaves open.
    """
    from scipy.optimize import brentq

    size, row = np.unique(np.atleast_1d(np.asarray(items, np.int64)), return_inverse=True)
    share = np.bincount(row.ravel(), np.broadcast_to(np.asarray(weight, np.float64), row.shape).ravel())
    most = float(share @ pairs(size))
    if 2 * distance > most:
        return -theta_of(most - distance, size, share)
    if distance <= 0:
        return -np.inf

    def short(theta: float) -> float:
        return float(share @ expected_distance(theta, size)) - distance

    low = -1.0
    while short(low) > 0 and low > _STEEPEST:
        low = max(2 * low, _STEEPEST)
    if short(low) > 0 or short(0.0) <= 0:
        return low if short(low) > 0 else 0.0
    return float(brentq(short, low, 0.0, xtol=1e-13, rtol=1e-14))


def draw(rng: np.random.Generator, theta: Any, items: int) -> IntArray:
    """For each θ a list, by repeated insertion: row l holds the items of the centre (0 is its best) in l's order."""
    theta = np.atleast_1d(np.asarray(theta, np.float64))
    lists = np.zeros((len(theta), items), np.int64)
    for j in range(2, items + 1):
        place = j - 1 - _turned(rng.random(len(theta)), theta, j)
        moved = np.arange(j) > place[:, None]
        lists[:, 1:j] = np.where(moved[:, 1:], lists[:, : j - 1], lists[:, 1:j])
        np.put_along_axis(lists, place[:, None], j - 1, axis=1)
    return lists


def pairs(items: Any) -> FloatArray:
    """How many pairs there are: the largest distance."""
    items = np.asarray(items, np.float64)
    return np.asarray(items * (items - 1) / 2)


def _turned(uniform: FloatArray, theta: FloatArray, j: int) -> IntArray:
    """c = 0 … j−1 with P(c) ∝ e^(θc), from a uniform number each."""
    near = -np.abs(theta)
    flat = near > -1e-300
    steps = np.where(flat, uniform * j, np.log1p(uniform * np.expm1(j * near)) / np.where(flat, 1.0, near))
    c = np.minimum(steps.astype(np.int64), j - 1)
    return np.where(theta > 0, j - 1 - c, c)


def _up_to(term: Any, theta: FloatArray, items: IntArray) -> FloatArray:
    """Σ of term(θ, j) over j = 2 … n."""
    theta, items = np.broadcast_arrays(theta, items)
    j = np.arange(2, max(int(items.max(initial=0)), 1) + 1)
    each = np.where(j <= items[..., None], term(theta[..., None], j), 0.0)
    return np.asarray(each.sum(axis=-1))


def _log_terms(theta: FloatArray, j: IntArray) -> FloatArray:
    """log(1 + e^θ + … + e^((j−1)θ)) for θ ≤ 0: what is added to 1 is exact, however near 0 θ is, and however far."""
    flat = theta > -1e-300
    safe = np.where(flat, -1.0, theta)
    beside = np.exp(safe) * np.expm1((j - 1) * safe) / np.expm1(safe)
    return np.asarray(np.log1p(np.where(flat, j - 1.0, beside)))


def _means(theta: FloatArray, j: IntArray) -> FloatArray:
    """The mean of cⱼ for θ ≤ 0: h(θ) − j·h(jθ), h(x) = 1/(e^−x − 1)."""
    # Near 0 both terms are as large as 1/θ; without it, h(x) = −1/x − ½ + r(x), they are not.
    near = (j - 1) / 2 + _remainder(theta) - j * _remainder(j * theta)
    steep = np.minimum(theta, -1.0)
    far = _h(steep) - j * _h(j * steep)
    return np.asarray(np.where(theta > -1.0, near, far))


def _h(x: Any) -> Any:
    return -np.exp(x) / np.expm1(x)


def _remainder(x: FloatArray) -> FloatArray:
    """r(x) = 1/x − ½·coth(x/2), −x/12 + x³/720 − … near 0."""
    small = np.abs(x) < _SERIES_BELOW
    square = np.where(small, x * x, 0.0)
    series = 1 / 12 - square * (1 / 720 - square * (1 / 30240 - square * (1 / 1209600 - square / 47900160)))
    safe = np.where(small, 1.0, x)
    return np.asarray(np.where(small, -x * series, 1 / safe - 0.5 / np.tanh(safe / 2)))
