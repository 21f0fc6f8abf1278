"""Evidence on each annotator: the results of all tests, from which verdicts follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.evaluation.annotator_tests import (
    ExpectedAnswers,
    MinorityTest,
    ResponseTimes,
    WeightedSum,
    benjamini_hochberg,
    decided_answers,
    estimate_quality,
    minority_test,
    p_value_below,
    quality_upper_bound,
    response_time_test,
    two_sided_p_value,
)

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
    minority : MinorityTest
        Whether the annotator shares the preferences of a minority.
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
    minority: MinorityTest
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
        return self.significant("hasty") & quick & ~self.reliable

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


def collect_evidence(comparisons: Comparisons, expected: ExpectedAnswers, level: float) -> Evidence:
    """Run every test on every annotator."""
    answers, rows = decided_answers(comparisons, expected.majority), np.flatnonzero(comparisons.outcome)
    agreement = answers.weighted_sum(answers.expected)
    known, quality = agreement.squares > 0, estimate_quality(agreement)
    typical = _typical_quality(agreement, quality)
    tested = (answers.expected != 0).astype(np.float64)
    side = answers.weighted_sum(answers.residual_weights(tested))
    left, times = answers.sum_by_annotator(tested * (answers.answer > 0)), response_time_test(comparisons)
    minority = minority_test(answers, expected.minority[rows])
    not_tested = np.full(answers.n_annotators, np.nan)
    p_values = {
        "above_half": agreement.p_value(),
        "below_half": agreement.negated().p_value(),
        "below_typical": p_value_below(agreement, typical),
        "one_sided": two_sided_p_value(side) if comparisons.positions_known else not_tested,
        "hasty": not_tested if times is None else times.p_value,
        "taste": minority.p_value,
    }
    return Evidence(
        level=level,
        answers=answers.sum_by_annotator(np.ones(len(rows))),
        decided=answers.sum_by_annotator(tested),
        agreed=answers.sum_by_annotator(answers.answer * answers.expected > 0),
        agreement=agreement,
        quality=quality,
        upper=quality_upper_bound(agreement, level),
        typical=typical,
        left=left,
        left_expected=left - side.total / 2,
        response_times=times,
        minority=minority,
        p_values={name: benjamini_hochberg(np.where(known, p, np.nan)) for name, p in p_values.items()},
    )


def _typical_quality(agreement: WeightedSum, quality: FloatArray) -> float:
    """Median quality of the half of the annotators about whom most is known."""
    known = agreement.squares > 0
    if not known.any():
        return np.nan
    well_known = agreement.squares >= np.median(agreement.squares[known])
    return float(np.median(quality[well_known]))
