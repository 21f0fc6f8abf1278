"""Shares of a count, with their intervals.

Statistical tests of all annotators at once: does one follow the scores, a side of the screen, or the clock?

Three of the tests are one. An answer is +1 for left and −1 for right, the scores of others expect the mean a = 2p − 1
of it, and a coin tosser's answers are +1 or −1 by halves whatever was shown. So for any weights fixed beforehand,
Σ weight · answer has mean 0 and variance Σ weight² under a coin: a test by flipping signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons


def wilson(part: npt.ArrayLike, whole: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval (1927) of a share; from 0 to 1 where there is nothing to share.

    >>> low, high = wilson(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    n = np.asarray(whole, np.float64)
    share = np.divide(part, n, out=np.full(n.shape, 0.5), where=n > 0)
    middle = (share * n + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(n * share * (1 - share) + z * z / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True)
class Answers:
    """Decided answers, a row each; every answer counts once, whatever its weight."""

    who: IntArray
    side: FloatArray
    """+1 where left was chosen, −1 where right was."""
    expected: FloatArray
    """The mean of `side` by the scores of others, 2p − 1; 0 where they cannot say."""
    people: int

    def per(self, values: npt.NDArray[np.generic]) -> FloatArray:
        """Sums of rows, one an annotator."""
        return np.bincount(self.who, values, self.people).astype(np.float64)

    def along(self, weight: FloatArray) -> Sum:
        return Sum(self.per(self.side * weight), self.per(weight**2), self.per(weight**4))

    def beyond_scores(self, weight: FloatArray) -> FloatArray:
        """What of each annotator's weights the scores do not account for.

        An annotator of quality η answers with mean (2η − 1)·expected: whatever η, the sum along weights that are
        orthogonal to the expected has mean 0. Rows of weight 0 are left out.
        """
        expected = np.where(weight != 0, self.expected, 0.0)
        slope = ratio(self.per(weight * expected), self.per(expected**2))
        rest = weight - slope[self.who] * expected
        # what rounding leaves of weights the scores account for in full is not evidence
        return np.where(np.abs(rest) > 1e-9 * np.abs(weight), rest, 0.0)


@dataclass(frozen=True)
class Sum:
    """Σ weight · answer of each annotator, with Σ weight² and Σ weight⁴."""

    total: FloatArray
    square: FloatArray
    fourth: FloatArray

    def chance(self) -> FloatArray:
        """Chance that a coin tosser's sum is as large (one-sided); 1 where nothing was weighed.

        Normal, with the correction for continuity that answers of equal weight need; unequal weights count as so many
        equal ones as have their kurtosis.
        """
        from scipy.special import ndtr

        step = ratio(np.sqrt(self.fourth), self.square)
        return np.asarray(np.where(self.square > 0, ndtr(step - ratio(self.total, np.sqrt(self.square))), 1.0))

    def reversed(self) -> Sum:
        return Sum(-self.total, self.square, self.fourth)


def either_way(found: Sum) -> FloatArray:
    """Two-sided chance."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(found.chance(), found.reversed().chance())))


def quality_of(found: Sum) -> FloatArray:
    """η of each annotator, from their sum along the expected; nan where nothing is known."""
    trust = found.total / np.where(found.square > 0, found.square, np.nan)
    return np.asarray(0.5 + 0.5 * np.clip(trust, -1, 1))


def upper_quality(found: Sum, level: float) -> FloatArray:
    """The largest η not refused at `level` (one-sided): where the test of `below` turns, after Wilson's interval."""
    from scipy.special import ndtri

    z2 = float(ndtri(level)) ** 2
    s, v, w = found.total, found.square, found.fourth
    root = np.sqrt(z2 * np.maximum(v**3 + z2 * v * w - s**2 * w, 0))
    return 0.5 + 0.5 * np.where(v > 0, np.clip(ratio(s * v + root, v**2 + z2 * w), -1, 1), 1.0)


def below(found: Sum, quality: float) -> FloatArray:
    """Chance that an annotator of this quality agrees with the scores as little (one-sided)."""
    from scipy.special import ndtr

    trust = 2 * quality - 1
    spread = np.sqrt(np.maximum(found.square - trust**2 * found.fourth, 0))
    step = ratio(np.sqrt(found.fourth), np.sqrt(found.square))
    short = trust * found.square - found.total - step
    return np.where(spread > 0, ndtr(-ratio(short, spread)), 1.0)


@dataclass(frozen=True)
class Haste:
    """Durations of each annotator beside those of all others."""

    median: FloatArray
    """nan where none is known."""
    usual: float
    """The median of the annotators' medians."""
    chance: FloatArray
    """That someone like the others is as fast: Mann and Whitney's rank-sum test, one-sided. nan where none is known."""


def haste(comparisons: Comparisons) -> Haste | None:
    """None where no durations are known."""
    if comparisons.duration is None or comparisons.annotator is None or not np.isfinite(comparisons.duration).any():
        return None
    from scipy.special import ndtr
    from scipy.stats import rankdata

    known = np.flatnonzero(np.isfinite(comparisons.duration))
    taken, who, people = comparisons.duration[known], comparisons.annotator[known], len(comparisons.annotators)
    n = np.bincount(who, minlength=people).astype(np.float64)
    others = len(known) - n
    rank = rankdata(taken)
    _, tied = np.unique(taken, return_counts=True)
    ties = float(np.sum(tied.astype(np.float64) ** 3 - tied)) / max(1.0, len(known) * (len(known) - 1.0))
    surplus = np.bincount(who, rank, people) - n * (len(known) + 1) / 2
    spread = np.sqrt(np.maximum(n * others / 12 * (len(known) + 1 - ties), 0))
    chance = np.where(spread > 0, ndtr(ratio(surplus + 0.5, spread)), np.nan)
    median = _medians(taken, who, people)
    return Haste(median, float(np.nanmedian(median)), chance)


def _medians(values: FloatArray, who: npt.NDArray[np.integer], people: int) -> FloatArray:
    order = np.lexsort((values, who))
    ordered, count = values[order], np.bincount(who, minlength=people)
    start = np.cumsum(count) - count
    low, high = (np.minimum(start + middle, len(values) - 1) for middle in (np.maximum(count - 1, 0) // 2, count // 2))
    return np.where(count > 0, (ordered[low] + ordered[high]) / 2, np.nan)


def adjusted(chances: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's: called at 0.05, one in twenty of those called is called falsely, on average.

    Tests that could not be made (nan) are not counted.

    >>> adjusted(np.array([0.01, 0.5, 0.02, np.nan])).tolist()
    [0.03, 0.5, 0.03, nan]
    """
    made = np.flatnonzero(~np.isnan(chances))
    order = made[np.argsort(chances[made])]
    scaled = chances[order] * len(made) / np.arange(1, len(made) + 1)
    found = np.full(len(chances), np.nan)
    found[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return found


def ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Division; 0 where there is nothing to divide by."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=np.asarray(bottom) > 0)
