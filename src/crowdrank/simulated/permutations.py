"""Lists drawn around a true list, near or far in Kendall's distance (the number of pairs turned round).

A list is built by inserting the true items, best first; item m moves up past cₘ of the m before it, so the distance is
Σ cₘ. A list is handed over as places: `places[l, m]` is where list l puts the m-th best item.
"""

from __future__ import annotations

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.simulated.draws import Integers, Numbers

# Beyond this many items the number of lists at a distance is more than a float can hold.
MOST_ITEMS = 170


def lists_at_distance(rng: np.random.Generator, items: int, distance: Integers) -> Integers:
    """For each entry of `distance` one list, all lists that far from the truth being as likely."""
    left, farthest = distance.copy(), items * (items - 1) // 2
    if distance.size and not 0 <= distance.min() <= distance.max() <= farthest:
        raise SettingError(f"distance must lie between 0 and {farthest} for {items} items.")
    table = mahonian_table(items, int(distance.max(initial=0)))
    passed = np.zeros((len(distance), items), np.int64)
    for m in range(items - 1, 0, -1):
        after = left[:, None] - np.arange(m + 1)
        ways = np.where(after >= 0, table[m][np.maximum(after, 0)], 0.0)
        passed[:, m] = _draw_column(rng, ways)
        left -= passed[:, m]
    return _insert(passed)


def mallows_lists(rng: np.random.Generator, items: int, expertise: Numbers) -> Integers:
    """For each entry of `expertise` one list y with P(y) ∝ exp(θ·distance): by repeated insertion, exactly."""
    passed = np.zeros((len(expertise), items), np.int64)
    for m in range(1, items):
        exponent = expertise[:, None] * np.arange(m + 1)
        passed[:, m] = _draw_column(rng, np.exp(exponent - exponent.max(axis=1, keepdims=True)))
    return _insert(passed)


def mahonian_table(items: int, farthest: int) -> Numbers:
    """`table[m, v]`: how many lists of m items lie at distance v from a given one.

    >>> mahonian_table(3, 3)[3]
    array([1., 2., 2., 1.])
    """
    if items > MOST_ITEMS:
        raise SettingError(f"Lists at a given distance can be drawn for at most {MOST_ITEMS} items, got {items}.")
    table = np.zeros((items + 1, farthest + 1))
    table[:2, 0] = 1
    for m in range(2, items + 1):
        total, most = np.cumsum(table[m - 1]), m * (m - 1) // 2
        table[m] = total
        table[m, m:] -= total[: max(farthest + 1 - m, 0)]
        # Beyond the middle the difference above is lost to rounding; the counts there mirror the first half.
        table[m, most + 1 :] = 0
        far = np.arange(most // 2 + 1, min(most, farthest) + 1)
        table[m, far] = table[m, most - far]
    return table


def _draw_column(rng: np.random.Generator, weights: Numbers) -> Integers:
    """In each row a column, as likely as its weight."""
    total = np.cumsum(weights, axis=1)
    mark = rng.random(len(weights)) * total[:, -1]
    return np.asarray((total <= mark[:, None]).sum(axis=1), np.int64)


def _insert(passed: Integers) -> Integers:
    places = np.zeros_like(passed)
    for m in range(1, passed.shape[1]):
        place = m - passed[:, m]
        places[:, :m] += places[:, :m] >= place[:, None]
        places[:, m] = place
    return places
