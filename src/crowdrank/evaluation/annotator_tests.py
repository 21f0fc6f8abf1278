"""Statistical tests of all annotators at once: agreement with scores, sides, response times, camps.

Most tests have one form. An answer is +1 for left and −1 for right; the scores of other annotators predict its mean
a = 2p − 1. The answers of a random annotator are +1 or −1 with probability ½, whatever was shown; those of an annotator
of quality η have the mean (2η − 1)·a. So for weights that were fixed without these answers, the distribution of
Σ weight · answer is known for every number of answers, and so is the probability of a sum as small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.evaluation.reference_scores import References
from crowdrank.models.camps import Camps
from crowdrank.results.ranks import benjamini_hochberg

_NEWTON_STEPS = 40
_TRIMMING_ROUNDS = 4
_MAX_INFORMATION = 25.0
"""In the average over annotators, nobody counts as more than this number of clear answers."""
_MAX_SLOPE = 0.96
"""A typical annotator makes a mistake in fifty clear answers at least."""
_MAX_MEAN = 1 - 1e-9
"""Answers are never taken as certain: one mistake would exclude everything."""


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

    def lower_tail(self, weight: FloatArray, slope: FloatArray | None = None) -> FloatArray:
        """Return the probability of a sum Σ weight · answer as small as the observed one; 1 without weights.

        Parameters
        ----------
        weight : array of float
            Weight of each answer.
        slope : array of float, optional
            2η − 1 of each annotator under the null hypothesis; 0 (random answers) by default.

        Notes
        -----
        Saddlepoint approximation of Lugannani and Rice in the form of Barndorff-Nielsen, with a continuity correction
        of Σ weight² / Σ |weight|, which is exact for equal weights. The cumulant function of the sum is
        K(t) = Σ log cosh(weight·t + h) − log cosh h with tanh h = mean of the answer.
        """
        found = self.weighted_sum(weight)
        mean = np.zeros(len(weight)) if slope is None else slope[self.annotator] * self.expected
        offset = np.arctanh(np.clip(mean, -_MAX_MEAN, _MAX_MEAN))
        largest = self.sum_by_annotator(np.abs(weight))
        half_step = safe_divide(found.squares, largest)
        target = found.total + half_step
        t = self._saddlepoint(weight, offset, target, found.squares)
        argument = weight * t[self.annotator] + offset
        cumulant = self.sum_by_annotator(_log_cosh(argument) - _log_cosh(offset))
        spread = np.sqrt(self.sum_by_annotator(weight**2 / np.cosh(np.clip(argument, -300, 300)) ** 2))
        return _tail(t, target, cumulant, spread, half_step, largest)

    def upper_tail(self, weight: FloatArray) -> FloatArray:
        """Return the probability that random answers give a sum as large as the observed one; 1 without weights."""
        return self.lower_tail(-weight)

    def two_sided(self, weight: FloatArray) -> FloatArray:
        """Return the two-sided p-value of the sum under random answers."""
        return np.asarray(np.minimum(1.0, 2 * np.minimum(self.lower_tail(weight), self.upper_tail(weight))))

    def _saddlepoint(
        self, weight: FloatArray, offset: FloatArray, target: FloatArray, squares: FloatArray
    ) -> FloatArray:
        """Solve K'(t) = target for each annotator: Newton's method, kept between bounds by bisection."""
        unit = 1 / np.sqrt(np.where(squares > 0, squares / np.maximum(1, self.sum_by_annotator(weight != 0)), 1.0))
        low, high, t = -60 * unit, 60 * unit, np.zeros(self.n_annotators)
        for _ in range(_NEWTON_STEPS):
            slope = np.tanh(weight * t[self.annotator] + offset)
            excess = self.sum_by_annotator(weight * slope) - target
            low, high = np.where(excess < 0, t, low), np.where(excess < 0, high, t)
            proposed = t - safe_divide(excess, self.sum_by_annotator(weight**2 * (1 - slope**2)))
            inside = (proposed > low) & (proposed < high)
            moved = np.where(inside, proposed, (low + high) / 2)
            done = np.abs(moved - t) <= 1e-9 * unit
            t = moved
            if done.all():
                break
        return t

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


def _log_cosh(x: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(x, -x) - np.log(2))


def _tail(
    t: FloatArray,
    target: FloatArray,
    cumulant: FloatArray,
    spread: FloatArray,
    half_step: FloatArray,
    largest: FloatArray,
) -> FloatArray:
    """P(sum ≤ target) from the saddlepoint t, the cumulant function there and the root of its second derivative."""
    from scipy.special import ndtr

    root = np.sign(t) * np.sqrt(np.maximum(2 * (t * target - cumulant), 0))
    # Daniels's second continuity correction: sinh(δt)/δ in place of t.
    lattice = np.sinh(np.clip(half_step * t, -300, 300)) * safe_divide(spread, half_step)
    usable = (np.abs(root) > 1e-3) & (lattice * root > 0)
    ratio = np.log(np.where(usable, lattice, 1.0) / np.where(usable, root, 1.0))
    found = ndtr(root + np.divide(ratio, root, out=np.zeros_like(root), where=usable))
    return np.asarray(np.where((largest > 0) & (target < largest), np.clip(found, 0, 1), 1.0))


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


def decided_answers(comparisons: Comparisons, expected: FloatArray) -> Answers:
    """Return the answers that are not ties."""
    assert comparisons.annotator is not None
    rows = np.flatnonzero(comparisons.outcome)
    return Answers(
        comparisons.annotator[rows].astype(np.int64),
        comparisons.outcome[rows].astype(np.float64),
        expected[rows],
        len(comparisons.annotators),
    )


@dataclass(frozen=True)
class CampTest:
    """Whether each annotator answers as the smaller camp and not as the larger one.

    Parameters
    ----------
    p_value : array of float
        Of answers as far from the larger camp by one of its members; nan where the camps never disagree.
    contested : array of float
        Number of decided answers on which the camps disagree.
    with_smaller : array of float
        Number of contested answers in which the annotator sided with the smaller camp.
    """

    p_value: FloatArray
    contested: FloatArray
    with_smaller: FloatArray


def camp_test(answers: Answers, larger: FloatArray, smaller: FloatArray, slope: FloatArray) -> CampTest:
    """Test each annotator against typical members of the larger camp, along the difference of the two camps."""
    disagree = larger * smaller < 0
    contested = answers.sum_by_annotator(disagree)
    p_value = replace(answers, expected=larger).lower_tail(larger - smaller, slope)
    return CampTest(
        np.where(contested > 0, p_value, np.nan),
        contested,
        answers.sum_by_annotator(disagree & (answers.answer * smaller > 0)),
    )


@dataclass(frozen=True)
class TypicalSlope:
    """2η − 1 of a typical annotator.

    Parameters
    ----------
    value : float
        Average over the annotators who are not clearly worse than it, at least half of all; nan if nothing is known.
    lower : array of float
        For each annotator, the average over the others minus its standard error.
    """

    value: float
    lower: FloatArray


def typical_slope(answers: Answers, level: float) -> TypicalSlope:
    """Estimate the slope of a typical annotator, and of a typical other annotator for each annotator."""
    agreement = answers.weighted_sum(answers.expected)
    known = agreement.squares > 0
    if not known.any():
        return TypicalSlope(np.nan, np.zeros(answers.n_annotators))
    weight = np.where(known, np.minimum(1.0, safe_divide(np.array(_MAX_INFORMATION), agreement.squares)), 0.0)
    for _ in range(_TRIMMING_ROUNDS):
        found = _pooled_slope(agreement, weight)
        p_value = np.where(known, answers.lower_tail(answers.expected, found.lower), np.nan)
        n_worse = min(int(np.sum(benjamini_hochberg(p_value) < level)), int(np.sum(known)) // 2)
        trimmed = weight.copy()
        trimmed[np.argsort(p_value, kind="stable")[:n_worse]] = 0.0  # nan comes last
        if np.array_equal(trimmed > 0, weight > 0) or not trimmed.any():
            break
        weight = trimmed
    return _pooled_slope(agreement, weight)


def _pooled_slope(agreement: WeightedSum, weight: FloatArray) -> TypicalSlope:
    """Weighted average of the slopes; each annotator is left out of the average that they are compared with."""
    total, squares = weight * agreement.total, weight * agreement.squares
    value = float(total.sum() / squares.sum())
    error = float(np.sqrt(np.sum((total - value * squares) ** 2)) / squares.sum())
    others = safe_divide(total.sum() - total, squares.sum() - squares)
    return TypicalSlope(value, np.clip(others - error, 0.0, _MAX_SLOPE))


# Evidence on each annotator: the results of all tests, from which verdicts follow.

MIN_ANSWERS = 10
"""Nobody is accused of anything on fewer decided answers."""

ONE_SIDED_EXCESS = 0.15
"""One-sided: the fraction of answers to one side beyond what the scores predict must be at least this."""
HASTY_RATIO = 1 / 3
"""Hasty: the median response time must be below this fraction of the typical one."""
NOISY_QUALITY, NOISY_GAP = 0.8, 0.1
"""Noisy: the quality must be below the first, and below the typical quality by at least the second."""
RANDOM_QUALITY = 0.75
"""Random: the answers must exclude this quality."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Results of the tests, one value per annotator.

    Parameters
    ----------
    level : float
        Significance level of the tests.
    answers : array
        Number of decided answers.
    decided : array
        Number of decided answers for which the scores of others predict something; only these are tested.
    agreed : array
        Number of tested answers that agree with the scores.
    agreement : WeightedSum
        Sum of the answers along the expected answers.
    quality : array
        η estimated from `agreement`.
    upper : array
        Largest quality that is not rejected.
    typical : float
        Quality of a typical annotator.
    left, left_expected : array
        Number of answers "left", and the number that the scores predict.
    response_times : ResponseTimes or None
        None if no durations are known.
    camps : CampTest
        Whether the annotator sides with the smaller camp, if the crowd has two camps.
    in_smaller_camp : array of bool
        Whether the annotator belongs to the smaller camp.
    has_camps : bool
        Whether everyone is tested against a camp and not against all others.
    p_values : dict of str to array
        Adjusted p-values by test; nan where a test is not possible.
    """

    level: float
    answers: FloatArray
    decided: FloatArray
    agreed: FloatArray
    agreement: WeightedSum
    quality: FloatArray
    upper: FloatArray
    typical: float
    left: FloatArray
    left_expected: FloatArray
    response_times: ResponseTimes | None
    camps: CampTest
    in_smaller_camp: BoolArray
    has_camps: bool
    p_values: dict[str, FloatArray]

    def significant(self, test: str) -> BoolArray:
        return np.asarray(self.p_values[test] < self.level)

    @cached_property
    def one_sided(self) -> BoolArray:
        excess = np.abs(self.left - self.left_expected)
        return self.significant("one_sided") & (excess >= ONE_SIDED_EXCESS * self.decided)

    @cached_property
    def hasty(self) -> BoolArray:
        if self.response_times is None:
            return np.zeros(len(self.decided), bool)
        quick = self.response_times.median < HASTY_RATIO * self.response_times.typical
        return self.significant("hasty") & self.significant("below_typical") & quick & ~self.reliable

    @cached_property
    def reversed(self) -> BoolArray:
        return self.significant("below_half") & self.significant("below_typical")

    @cached_property
    def different_taste(self) -> BoolArray:
        return self.in_smaller_camp & self.significant("taste") & self.significant("above_half")

    @cached_property
    def noisy(self) -> BoolArray:
        low = (self.quality < NOISY_QUALITY) & (self.quality < self.typical - NOISY_GAP)
        return self.significant("above_half") & self.significant("below_typical") & low

    @cached_property
    def reliable(self) -> BoolArray:
        return self.significant("above_half") & ~self.noisy

    @cached_property
    def random(self) -> BoolArray:
        differs = self.significant("above_half") | self.significant("below_half")
        return ~differs & self.significant("below_typical") & (self.upper < RANDOM_QUALITY)


def collect_evidence(comparisons: Comparisons, references: References, camps: Camps | None, level: float) -> Evidence:
    """Run every test on every annotator."""
    answers, rows = decided_answers(comparisons, references.expected), np.flatnonzero(comparisons.outcome)
    agreement, typical = answers.weighted_sum(answers.expected), typical_slope(answers, level)
    tested = (answers.expected != 0).astype(np.float64)
    decided, left = answers.sum_by_annotator(tested), answers.sum_by_annotator(tested * (answers.answer > 0))
    side_weight, times = answers.residual_weights(tested), response_time_test(comparisons)
    support = camp_test(answers, references.larger[rows], references.smaller[rows], typical.lower)
    below_typical = answers.lower_tail(answers.expected, typical.lower)
    not_tested = np.full(answers.n_annotators, np.nan)
    in_smaller_camp = np.zeros(answers.n_annotators, bool) if camps is None else camps.camp == 2
    # Answers also decide who is in which camp. So both signs of a sum were possible, and its p-value is doubled.
    n_camps = 1 if camps is None else 2
    above_half = np.minimum(1.0, n_camps * answers.upper_tail(answers.expected))
    below_half = np.minimum(1.0, n_camps * answers.lower_tail(answers.expected))
    accusations = {
        "below_typical": below_typical,
        "one_sided": answers.two_sided(side_weight) if comparisons.positions_known else not_tested,
        "taste": np.where(in_smaller_camp, support.p_value, np.nan),
    }
    # Reversed and hasty annotators are worse than typical first: these tests only choose the word.
    words = {"below_half": below_half, "hasty": not_tested if times is None else times.p_value}
    enough = decided >= MIN_ANSWERS
    return Evidence(
        level=level,
        answers=answers.sum_by_annotator(np.ones(len(rows))),
        decided=decided,
        agreed=answers.sum_by_annotator(answers.answer * answers.expected > 0),
        agreement=agreement,
        quality=estimate_quality(agreement),
        upper=quality_upper_bound(agreement, level),
        typical=(1 + typical.value) / 2,
        left=left,
        left_expected=left - answers.weighted_sum(side_weight).total / 2,
        response_times=times,
        camps=support,
        in_smaller_camp=in_smaller_camp,
        has_camps=camps is not None,
        p_values={
            "above_half": benjamini_hochberg(np.where(decided > 0, above_half, np.nan)),
            **_adjust_together(accusations, enough),
            **{name: benjamini_hochberg(np.where(enough, p_value, np.nan)) for name, p_value in words.items()},
        },
    )


def _adjust_together(accusations: dict[str, FloatArray], enough: BoolArray) -> dict[str, FloatArray]:
    """Adjust all accusations of all annotators as one family: the false discovery rate holds for any of them."""
    family = np.concatenate([np.where(enough, p_value, np.nan) for p_value in accusations.values()])
    return dict(zip(accusations, np.split(benjamini_hochberg(family), len(accusations)), strict=True))
