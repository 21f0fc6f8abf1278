"""Rank distributions (Niu et al. 2015, Algorithms 1 and 2).

The number of items above an item is a sum of independent contests, a Poisson binomial: P(r) = ∗ⱼ [1 − ℓⱼ, ℓⱼ]. `losing`
holds the loss probabilities ℓ against the opponents that were compared. Against the `even` others ℓ = ½, so together
they are one binomial, and only the compared opponents remain to be convolved.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.engines.compilation import compiled

# Contests × ranks up to which plain NumPy is faster than loading the compiler.
_PLAIN_UP_TO = 200_000
# Contests from which divide and conquer with FFTs beats the compiled convolution.
_DIVIDE_FROM = 10_000
# Probabilities below this are treated as zero.
_NEGLIGIBLE = 1e-30
# Lengths up to which two polynomials are multiplied term by term.
_SHORT = 32


def rank_distribution(losing: FloatArray, even: int = 0) -> FloatArray:
    """P(r items above this one) for r = 0, 1, …, by the faster algorithm."""
    return by_divide_and_conquer(losing, even) if len(losing) >= _DIVIDE_FROM else by_convolution(losing, even)


def by_convolution(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 1: add one contest after the other."""
    ranks = np.zeros(even + len(losing) + 1)
    ranks[: even + 1] = fair_binomial(even)
    if len(losing) * len(ranks) > _PLAIN_UP_TO:
        _convolve(ranks, even, losing)
        return ranks
    for probability in losing:
        ranks[1:] += probability * (ranks[:-1] - ranks[1:])
        ranks[0] *= 1.0 - probability
    return ranks


@compiled()
def _convolve(ranks, last, losing):  # type: ignore[no-untyped-def]
    """Convolve in place between the first and last non-negligible rank: denormal numbers beyond would be slow."""
    first = 0
    for probability in losing:
        last += 1
        for r in range(last, first, -1):
            ranks[r] += probability * (ranks[r - 1] - ranks[r])
        ranks[first] *= 1.0 - probability
        while ranks[last] < _NEGLIGIBLE:
            ranks[last] = 0.0
            last -= 1
        while ranks[first] < _NEGLIGIBLE:
            ranks[first] = 0.0
            first += 1


def by_divide_and_conquer(losing: FloatArray, even: int = 0) -> FloatArray:
    """Algorithm 2: multiply neighbouring polynomials, all pairs of a level at once."""
    # Pad to a power of two with contests that are never lost, which change nothing.
    leaves = np.zeros(1 << max(0, len(losing) - 1).bit_length())
    leaves[: len(losing)] = losing
    terms = np.stack((1.0 - leaves, leaves), axis=1)
    while len(terms) > 1:
        terms = _products(terms[0::2], terms[1::2])
    ranks = _products(terms[:, : len(losing) + 1], fair_binomial(even)[None])[0]
    return np.asarray(np.maximum(ranks, 0.0))  # FFT rounding can leave tiny negative values


def _products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Row-wise products of the polynomials in `a` and `b`."""
    if a.shape[1] > b.shape[1]:
        a, b = b, a
    size = a.shape[1] + b.shape[1] - 1
    if a.shape[1] > _SHORT:
        length = 1 << (size - 1).bit_length()
        return np.asarray(np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:, :size])
    product = np.zeros((len(a), size))
    for power in range(a.shape[1]):
        product[:, power : power + b.shape[1]] += a[:, power, None] * b
    return product


@lru_cache(maxsize=256)
def fair_binomial(coins: int) -> FloatArray:
    """Binomial(coins, ½) probabilities of 0, 1, … heads."""
    # Ratios of neighbouring terms, outwards from the mode: nothing overflows, and far tails underflow to zero.
    up, down = np.arange(coins // 2, coins), np.arange(coins // 2, 0, -1)
    above, below = np.cumprod((coins - up) / (up + 1.0)), np.cumprod(down / (coins - down + 1.0))
    heads = np.concatenate((below[::-1], [1.0], above))
    heads /= heads.sum()
    heads.flags.writeable = False
    return heads


def terminal_utilities(utility: FloatArray, coins: int, max_losses: int) -> FloatArray:
    """Expected utility after k = 0 … `max_losses` losses in compared contests, over the `coins` fair contests."""
    return np.correlate(utility[: max_losses + coins + 1], fair_binomial(coins), mode="valid")


def expected_utilities(losing: FloatArray, offsets: IntArray, terminal: FloatArray, kind: IntArray) -> FloatArray:
    """Expected utility of many rank distributions, without computing the distributions.

    Parameters
    ----------
    losing : array
        Loss probabilities of all contests.
    offsets : array
        First contest of each distribution, and the number of contests at the end.
    terminal : array of shape (kinds, contests + 1)
        Utility after k losses in all contests of a distribution (see `terminal_utilities`).
    kind : array
        Row of `terminal` for each distribution.

    Notes
    -----
    Backward induction: before the last contest, the utility of k losses is (1 − ℓ)·u(k) + ℓ·u(k + 1).
    """
    return BackwardInduction(offsets, terminal, kind)(losing)


class BackwardInduction:
    """`expected_utilities` as a function of the loss probabilities, with everything else laid out once."""

    def __init__(self, offsets: IntArray, terminal: FloatArray, kind: IntArray):
        counts = np.diff(offsets)
        self._arguments = offsets, terminal, kind
        self._widest = int(counts.max(initial=0))
        steps, cells = float(np.sum(counts.astype(np.float64) ** 2)), len(counts) * (self._widest + 1)
        self._is_long = steps > _PLAIN_UP_TO * 10 or cells > _PLAIN_UP_TO * 100
        if self._is_long:
            return
        # Long distributions first: those with a contest number `last` are then the first ones.
        self._order = np.argsort(-counts, kind="stable")
        begins, longest_first = offsets[self._order], counts[self._order]
        ends = [int(np.searchsorted(-longest_first, -last, side="right")) for last in range(self._widest + 1)]
        self._contests = [begins[:end] + last - 1 for last, end in enumerate(ends)]
        self._terminal = np.ascontiguousarray(terminal.T[: self._widest + 1, kind[self._order]])

    def __call__(self, losing: FloatArray) -> FloatArray:
        """The expected utility of each distribution."""
        offsets, _, _ = self._arguments
        expected = np.empty(len(offsets) - 1)
        if self._is_long:
            _expected_utilities_loop(losing, *self._arguments, expected)
            return expected
        utility = self._terminal.copy()
        for last in range(self._widest, 0, -1):
            probability = losing[self._contests[last]]
            now, after = utility[:last, : len(probability)], utility[1 : last + 1, : len(probability)]
            now += probability * (after - now)
        expected[self._order] = utility[0]
        return expected


@compiled()
def _expected_utilities_loop(losing, offsets, terminal, kind, expected):  # type: ignore[no-untyped-def]
    utility = np.empty(terminal.shape[1])
    for n in range(len(expected)):
        count = offsets[n + 1] - offsets[n]
        utility[: count + 1] = terminal[kind[n], : count + 1]
        for last in range(count, 0, -1):
            probability = losing[offsets[n] + last - 1]
            for k in range(last):
                utility[k] += probability * (utility[k + 1] - utility[k])
        expected[n] = utility[0]
