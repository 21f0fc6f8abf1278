"""Evidence on each annotator: the results of all tests, from which verdicts follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.evaluation.annotator_tests import (
    CampTest,
    ResponseTimes,
    WeightedSum,
    camp_test,
    decided_answers,
    estimate_quality,
    quality_upper_bound,
    response_time_test,
    typical_slope,
)
from crowdrank.evaluation.reference_scores import References
from crowdrank.models.tastes import Tastes
from crowdrank.results.multiple_tests import benjamini_hochberg

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
        Whether the annotator sides with the smaller camp, if the crowd has tastes.
    in_smaller_camp : array of bool
        Whether the annotator belongs to the smaller camp.
    has_tastes : bool
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
    has_tastes: bool
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


def collect_evidence(comparisons: Comparisons, references: References, tastes: Tastes | None, level: float) -> Evidence:
    """Run every test on every annotator."""
    answers, rows = decided_answers(comparisons, references.expected), np.flatnonzero(comparisons.outcome)
    agreement, typical = answers.weighted_sum(answers.expected), typical_slope(answers, level)
    tested = (answers.expected != 0).astype(np.float64)
    decided, left = answers.sum_by_annotator(tested), answers.sum_by_annotator(tested * (answers.answer > 0))
    side_weight, times = answers.residual_weights(tested), response_time_test(comparisons)
    camps = camp_test(answers, references.larger[rows], references.smaller[rows], typical.lower)
    below_typical = answers.lower_tail(answers.expected, typical.lower)
    not_tested = np.full(answers.n_annotators, np.nan)
    in_smaller_camp = np.zeros(answers.n_annotators, bool) if tastes is None else tastes.camp == 2
    # In a crowd with tastes the camp was chosen by the answers: the larger of two sums is tested.
    n_camps = 1 if tastes is None else 2
    above_half = np.minimum(1.0, n_camps * answers.upper_tail(answers.expected))
    below_half = np.minimum(1.0, n_camps * answers.lower_tail(answers.expected))
    accusations = {
        "below_typical": below_typical,
        "one_sided": answers.two_sided(side_weight) if comparisons.positions_known else not_tested,
        "taste": np.where(in_smaller_camp, camps.p_value, np.nan),
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
        camps=camps,
        in_smaller_camp=in_smaller_camp,
        has_tastes=tastes is not None,
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
