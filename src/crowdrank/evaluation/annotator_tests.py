"""Statistical tests of all annotators at once: agreement with scores, preference for a side, response times.

Most tests have one form. An answer is +1 for left and −1 for right; the scores of other annotators predict its mean
a = 2p − 1. The answers of a random annotator are +1 or −1 with probability ½, whatever was shown. So for any weights
fixed beforehand, Σ weight · answer has mean 0 and variance Σ weight² under random answers: a sign-flip test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons


@dataclass(frozen=True)
class Answers:
    """Decided answers, one row each. Every answer counts once, whatever its weight.

    Parameters
    ----------
    annotator : array of int
        Annotator of each answer.
    answer : array of float
        +1 for left, −1 for right.
    expected : array of float
        Mean of `answer` predicted by the scores of others, 2p − 1; 0 where they predict nothing.
    n_annotators : int
        Number of annotators.
    """

    annotator: IntArray
    answer: FloatArray
    expected: FloatArray
    n_annotators: int

    def sum_by_annotator(self, values: npt.NDArray[np.generic]) -> FloatArray:
        return np.bincount(self.annotator, values, self.n_annotators).astype(np.float64)

    def weighted_sum(self, weight: FloatArray) -> WeightedSum:
        return WeightedSum(
            self.sum_by_annotator(self.answer * weight),
            self.sum_by_annotator(weight**2),
            self.sum_by_annotator(weight**4),
        )

    def residual_weights(self, weight: FloatArray) -> FloatArray:
        """Return the part of each annotator's weights that is orthogonal to the expected answers.

        The answers of an annotator of quality η have the mean (2η − 1)·expected. So whatever η, the sum along weights
        orthogonal to the expected answers has mean 0. Rows of weight 0 are left out.
        """
        expected = np.where(weight != 0, self.expected, 0.0)
        coefficient = safe_divide(self.sum_by_annotator(weight * expected), self.sum_by_annotator(expected**2))
        residual = weight - coefficient[self.annotator] * expected
        # Rounding errors of weights that the scores explain completely are not evidence.
        return np.where(np.abs(residual) > 1e-9 * np.abs(weight), residual, 0.0)


@dataclass(frozen=True)
class WeightedSum:
    """Σ weight · answer of each annotator, with Σ weight² and Σ weight⁴."""

    total: FloatArray
    squares: FloatArray
    fourth_powers: FloatArray

    def p_value(self) -> FloatArray:
        """Return the probability that random answers give a sum as large (one-sided); 1 without weights.

        Normal approximation with the continuity correction of n answers of equal weight, n chosen so that the kurtosis
        is the same.
        """
        from scipy.special import ndtr

        correction = safe_divide(np.sqrt(self.fourth_powers), self.squares)
        z = safe_divide(self.total, np.sqrt(self.squares))
        return np.asarray(np.where(self.squares > 0, ndtr(correction - z), 1.0))

    def negated(self) -> WeightedSum:
        return WeightedSum(-self.total, self.squares, self.fourth_powers)


def two_sided_p_value(found: WeightedSum) -> FloatArray:
    return np.asarray(np.minimum(1.0, 2 * np.minimum(found.p_value(), found.negated().p_value())))


def estimate_quality(agreement: WeightedSum) -> FloatArray:
    """Return η of each annotator from the sum along the expected answers; nan where nothing is known."""
    coefficient = agreement.total / np.where(agreement.squares > 0, agreement.squares, np.nan)
    return np.asarray(0.5 + 0.5 * np.clip(coefficient, -1, 1))


def quality_upper_bound(agreement: WeightedSum, level: float) -> FloatArray:
    """Return the largest η that `p_value_below` does not reject at `level` (solved as Wilson's interval is)."""
    from scipy.special import ndtri

    z2 = float(ndtri(level)) ** 2
    s, v, w = agreement.total, agreement.squares, agreement.fourth_powers
    root = np.sqrt(z2 * np.maximum(v**3 + z2 * v * w - s**2 * w, 0))
    return 0.5 + 0.5 * np.where(v > 0, np.clip(safe_divide(s * v + root, v**2 + z2 * w), -1, 1), 1.0)


def p_value_below(agreement: WeightedSum, quality: float) -> FloatArray:
    """Return the probability that an annotator of this quality agrees with the scores as little (one-sided)."""
    from scipy.special import ndtr

    coefficient = 2 * quality - 1
    spread = np.sqrt(np.maximum(agreement.squares - coefficient**2 * agreement.fourth_powers, 0))
    correction = safe_divide(np.sqrt(agreement.fourth_powers), np.sqrt(agreement.squares))
    shortfall = coefficient * agreement.squares - agreement.total - correction
    return np.where(spread > 0, ndtr(-safe_divide(shortfall, spread)), 1.0)


@dataclass(frozen=True)
class ResponseTimes:
    """Response times of each annotator compared with those of all others.

    Parameters
    ----------
    median : array of float
        Median per annotator; nan where no duration is known.
    typical : float
        Median of these medians.
    p_value : array of float
        One-sided Mann–Whitney test that the annotator is faster; nan where no duration is known.
    """

    median: FloatArray
    typical: float
    p_value: FloatArray


def response_time_test(comparisons: Comparisons) -> ResponseTimes | None:
    """Test whether each annotator answers faster than the others; None if no durations are known."""
    if comparisons.duration is None or comparisons.annotator is None or not np.isfinite(comparisons.duration).any():
        return None
    from scipy.special import ndtr
    from scipy.stats import rankdata

    known = np.flatnonzero(np.isfinite(comparisons.duration))
    duration, annotator = comparisons.duration[known], comparisons.annotator[known]
    n_annotators = len(comparisons.annotators)
    n = np.bincount(annotator, minlength=n_annotators).astype(np.float64)
    others = len(known) - n
    rank = rankdata(duration)
    _, tied = np.unique(duration, return_counts=True)
    # Variance of the rank sum with the usual correction for ties.
    ties = float(np.sum(tied.astype(np.float64) ** 3 - tied)) / max(1.0, len(known) * (len(known) - 1.0))
    surplus = np.bincount(annotator, rank, n_annotators) - n * (len(known) + 1) / 2
    spread = np.sqrt(np.maximum(n * others / 12 * (len(known) + 1 - ties), 0))
    p_value = np.where(spread > 0, ndtr(safe_divide(surplus + 0.5, spread)), np.nan)
    median = _medians(duration, annotator, n_annotators)
    return ResponseTimes(median, float(np.nanmedian(median)), p_value)


def _medians(values: FloatArray, group: npt.NDArray[np.integer], n_groups: int) -> FloatArray:
    order = np.lexsort((values, group))
    ordered, count = values[order], np.bincount(group, minlength=n_groups)
    start = np.cumsum(count) - count
    low, high = (np.minimum(start + middle, len(values) - 1) for middle in (np.maximum(count - 1, 0) // 2, count // 2))
    return np.where(count > 0, (ordered[low] + ordered[high]) / 2, np.nan)


def safe_divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; 0 where the denominator is not positive."""
    shape = np.broadcast(numerator, denominator).shape
    return np.divide(numerator, denominator, out=np.zeros(shape), where=np.asarray(denominator) > 0)
