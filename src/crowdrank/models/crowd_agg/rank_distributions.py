"""Niu et al. 2015, Algorithms 1 and 2: how many items stand above one is a sum of contests, P(r) = ∗ⱼ [1 − ℓⱼ, ℓⱼ].

`losing` has the chances ℓ of losing to each opponent that was compared. Against `even` others the chance is one half,
so together they are one binomial: what is left to convolve are the few that were compared.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled

# Contests times ranks up to which plain NumPy is used, and the compiler is not waited for.
_PLAIN_UP_TO = 200_000
# Contests from which dividing and Fourier transforms repay: below, a compiled convolution is quicker.
_HALVE_FROM = 10_000
# Chances below this are none.
_VANISHING = 1e-30
# Lengths up to which two polynomials are multiplied term by term.
_SHORT = 32


def rank_distribution(losing: FloatArray, even: int = 0) -> FloatArray:
    """The chances of r = 0, 1, … items above this one, by whichever way is quickest."""
    return by_halves(losing, even) if len(losing) >= _HALVE_FROM else by_convolution(losing, even)


def by_convolution(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 1, one contest after the other."""
    ranks = np.zeros(even + len(losing) + 1)
    ranks[: even + 1] = fair_coins(even)
    if len(losing) * len(ranks) > _PLAIN_UP_TO:
        _convolve(ranks, even, losing)
        return ranks
    for chance in losing:
        ranks[1:] += chance * (ranks[:-1] - ranks[1:])
        ranks[0] *= 1.0 - chance
    return ranks


@compiled()
def _convolve(ranks, last, losing):  # type: ignore[no-untyped-def]
    """In place, from the first rank to the last that has a chance: beyond them numbers would vanish, slowly."""
    first = 0
    for chance in losing:
        last += 1
        for r in range(last, first, -1):
            ranks[r] += chance * (ranks[r - 1] - ranks[r])
        ranks[first] *= 1.0 - chance
        while ranks[last] < _VANISHING:
            ranks[last] = 0.0
            last -= 1
        while ranks[first] < _VANISHING:
            ranks[first] = 0.0
            first += 1


def by_halves(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 2: neighbours multiplied as polynomials, all pairs of a level at once."""
    # a contest that cannot be lost changes nothing: fill up to a power of two
    leaves = np.zeros(1 << max(0, len(losing) - 1).bit_length())
    leaves[: len(losing)] = losing
    terms = np.stack((1.0 - leaves, leaves), axis=1)
    while len(terms) > 1:
        terms = _products(terms[0::2], terms[1::2])
    ranks = _products(terms[:, : len(losing) + 1], fair_coins(even)[None])[0]
    return np.asarray(np.maximum(ranks, 0.0))  # rounding leaves a little below zero


def _products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Polynomials of `a` times those of `b`, row by row."""
    if a.shape[1] > b.shape[1]:
        a, b = b, a
    size = a.shape[1] + b.shape[1] - 1
    if a.shape[1] > _SHORT:
        length = 1 << (size - 1).bit_length()
        return np.asarray(np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:, :size])
    found = np.zeros((len(a), size))
    for power in range(a.shape[1]):
        found[:, power : power + b.shape[1]] += a[:, power, None] * b
    return found


@lru_cache(maxsize=256)
def fair_coins(coins: int) -> FloatArray:
    """Chances of 0, 1, … heads."""
    # ratios of neighbours, out from the middle: nothing overflows, and far tails vanish quietly
    up, down = np.arange(coins // 2, coins), np.arange(coins // 2, 0, -1)
    above, below = np.cumprod((coins - up) / (up + 1.0)), np.cumprod(down / (coins - down + 1.0))
    heads = np.concatenate((below[::-1], [1.0], above))
    heads /= heads.sum()
    heads.flags.writeable = False
    return heads


def beyond_coins(utility: FloatArray, coins: int, most: int) -> FloatArray:
    """The expected utility of k = 0 … `most` losses and those among so many fair coins."""
    return np.correlate(utility[: most + coins + 1], fair_coins(coins), mode="valid")


def expected_utilities(losing: FloatArray, offsets: IntArray, ends: FloatArray, end: IntArray) -> FloatArray:
    """The expectation of a utility over each of many rank distributions, without the distributions.

    `losing` has the contests of the first from offsets[0] to offsets[1], and so on. Row `end` of `ends` is the utility
    of k losses among them, all else counted in (`beyond_coins`). Contests are taken back one by one: before the last
    one, the utility of k losses is (1 − ℓ)·u(k) + ℓ·u(k + 1).
    """
    counts = np.diff(offsets)
    widest = int(counts.max(initial=0))
    if len(counts) * widest**2 > _PLAIN_UP_TO * 10:
        found = np.empty(len(counts))
        _expect(losing, offsets, ends, end, found)
        return found
    chance = np.zeros((widest, len(counts)))
    column = np.repeat(np.arange(len(counts)), counts)
    chance[np.arange(len(losing)) - offsets[column], column] = losing
    utility = ends.T[: widest + 1, end]
    for last in range(widest, 0, -1):
        utility = utility[:-1] + chance[last - 1] * (utility[1:] - utility[:-1])
    return np.asarray(utility[0])


@compiled()
def _expect(losing, offsets, ends, end, found):  # type: ignore[no-untyped-def]
    utility = np.empty(ends.shape[1])
    for n in range(len(found)):
        count = offsets[n + 1] - offsets[n]
        utility[: count + 1] = ends[end[n], : count + 1]
        for last in range(count, 0, -1):
            chance = losing[offsets[n] + last - 1]
            for k in range(last):
                utility[k] += chance * (utility[k + 1] - utility[k])
        found[n] = utility[0]
