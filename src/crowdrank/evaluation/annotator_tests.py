"""Statistical tests of all annotators at once: agreement with scores, sides, response times, minorities.

Most tests have one form. An answer is +1 for left and −1 for right; the scores of other annotators predict its mean
a = 2p − 1. The answers of a random annotator are +1 or −1 with probability ½, whatever was shown. So for any weights
fixed beforehand, Σ weight · answer has mean 0 and variance Σ weight² under random answers: a sign-flip test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import muted_warnings
from crowdrank.models.base import Model

_JOIN_Z = 2.0
"""Standard errors by which an annotator must follow the minority, beyond the majority, to be counted as a member."""
_MIN_ANNOTATORS = 3
"""Smallest crowd, and smallest minority, that others are tested against."""
_ROUNDS = 2
"""How often the members of the minority are determined; the second round uses the scores of the first."""
_POWER_ITERATIONS = 30


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


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995); nan is kept and not counted.

    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.02, np.nan])).tolist()
    [0.03, 0.5, 0.03, nan]
    """
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known])]
    scaled = p_values[order] * len(known) / np.arange(1, len(known) + 1)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


@dataclass(frozen=True)
class ExpectedAnswers:
    """What the scores of others predict for each comparison: the mean of an answer that is 1 (left) or −1 (right).

    Parameters
    ----------
    majority : array of float
        Prediction from the scores of all other annotators.
    minority : array of float
        Prediction from the scores of a minority; 0 where there is none.
    """

    majority: FloatArray
    minority: FloatArray


def cross_fit_expectations(
    comparisons: Comparisons, model: Model, folds: int, rng: np.random.Generator
) -> ExpectedAnswers:
    """Predict the answers of each fold of annotators from scores that were fitted to all other annotators.

    Only the sign of the scores is decided by everyone together: with many reversed annotators it could otherwise depend
    on who was held out. If a single annotator decides the sign, nothing is predicted for anyone.
    """
    assert comparisons.annotator is not None
    present, annotator = np.unique(comparisons.annotator, return_inverse=True)
    majority, minority = np.zeros(len(comparisons)), np.zeros(len(comparisons))
    if len(present) < _MIN_ANNOTATORS:
        return ExpectedAnswers(majority, minority)
    overall = expected_answers(_fit_scores(model, comparisons), comparisons, comparisons)
    if not _has_clear_majority(decided_answers(comparisons, overall)):
        return ExpectedAnswers(majority, minority)
    folds = min(folds, len(present))
    fold = rng.permutation(np.arange(len(present)) % folds)[annotator]
    for n in range(folds):
        test, train = np.flatnonzero(fold == n), np.flatnonzero(fold != n)
        held_out, others = comparisons.take(test), comparisons.take(train)
        scores = _fit_scores(model, others)
        sign = np.sign(expected_answers(scores, others, others) @ overall[train])
        majority[test] = sign * expected_answers(scores, held_out, others)
        answers = decided_answers(others, sign * expected_answers(scores, others, others))
        group = _find_minority(others, answers, model, rng)
        if group is not None:
            minority[test] = expected_answers(_fit_scores(model, group), held_out, group)
    return ExpectedAnswers(majority, minority)


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


def expected_answers(scores: FloatArray, asked: Comparisons, fitted: Comparisons) -> FloatArray:
    """Return 2σ(left − right) − 1 for each pair asked; 0 if the fitted comparisons do not contain one of the items."""
    known = fitted.n_judgments_per_item > 0
    margin = np.tanh((scores[asked.left] - scores[asked.right]) / 2)
    return np.where(known[asked.left] & known[asked.right], margin, 0.0)


def _fit_scores(model: Model, comparisons: Comparisons) -> FloatArray:
    with muted_warnings():
        return np.asarray(model.fit(comparisons).scores)


def _has_clear_majority(answers: Answers) -> bool:
    """Whether more annotators agree with the scores than contradict them, even without any one of them."""
    return bool(np.sum(np.sign(answers.weighted_sum(answers.expected).total)) >= 2)


def _find_minority(others: Comparisons, answers: Answers, model: Model, rng: np.random.Generator) -> Comparisons | None:
    """Return the comparisons of a group with common preferences that differ from the majority's, if there is one."""
    direction = _residual_direction(others, answers, rng)
    rows = others.take(np.flatnonzero(others.outcome))
    weight, group = direction[rows.left] - direction[rows.right], None
    for _ in range(_ROUNDS):
        if group is not None:
            weight = expected_answers(_fit_scores(model, group), rows, group)
        members = _followers(answers, weight)
        if np.count_nonzero(members) < _MIN_ANNOTATORS:
            return None
        assert others.annotator is not None
        group = others.take(np.flatnonzero(members[others.annotator]))
    return group


def _followers(answers: Answers, weight: FloatArray) -> BoolArray:
    found = answers.weighted_sum(answers.residual_weights(weight))
    return np.asarray(found.total > _JOIN_Z * np.sqrt(found.squares)) & (found.squares > 0)


def _residual_direction(others: Comparisons, answers: Answers, rng: np.random.Generator) -> FloatArray:
    """First singular vector of the residual answers (annotators × items), by power iteration.

    Residuals are what the quality of an annotator leaves unexplained. The sign follows the few annotators with large
    loadings and not the many with small ones of the other sign (third moment).
    """
    rows, items = others.take(np.flatnonzero(others.outcome)), len(others.items)
    slope = np.nan_to_num(2 * estimate_quality(answers.weighted_sum(answers.expected)) - 1)
    residual = answers.answer - slope[answers.annotator] * answers.expected
    item_norm = np.sqrt(np.maximum(1.0, rows.n_judgments_per_item))
    annotator_norm = np.sqrt(np.maximum(1.0, np.bincount(answers.annotator, minlength=answers.n_annotators)))
    direction = others.items.centre(rng.standard_normal(items))
    for _ in range(_POWER_ITERATIONS):
        scaled = direction / item_norm
        loading = answers.sum_by_annotator(residual * (scaled[rows.left] - scaled[rows.right])) / annotator_norm
        contribution = residual * (loading / annotator_norm)[answers.annotator]
        total = np.bincount(rows.left, contribution, items) - np.bincount(rows.right, contribution, items)
        moved = total / item_norm
        size = float(np.linalg.norm(moved))
        if size == 0:
            break
        direction = moved / size
    sign = np.sign(np.sum(loading**3)) or 1.0
    return np.asarray(sign * direction / item_norm)


@dataclass(frozen=True)
class MinorityTest:
    """Whether each annotator shares the preferences of the minority.

    Parameters
    ----------
    p_value : array of float
        The larger of two p-values: that a follower of the majority (of any quality, reversed or random) follows the
        minority as far; and that random answers side with the minority as often where the two disagree.
    contested : array of float
        Number of decided answers on which majority and minority disagree.
    with_minority : array of float
        Number of contested answers in which the annotator sided with the minority.
    """

    p_value: FloatArray
    contested: FloatArray
    with_minority: FloatArray


def minority_test(answers: Answers, minority: FloatArray) -> MinorityTest:
    """Test each annotator for the preferences of the minority.

    The p-value is nan where there is no minority, or where it never disagrees with the majority. A reversed annotator
    contradicts the majority too, but also where the minority agrees with it.
    """
    majority = answers.expected
    beyond = answers.weighted_sum(answers.residual_weights(minority)).p_value()
    disagree, agree = majority * minority < 0, majority * minority > 0
    against = answers.weighted_sum(np.where(disagree, minority - majority, 0.0)).p_value()
    follows_both = answers.sum_by_annotator(np.where(agree, answers.answer * (minority + majority), 0.0)) > 0
    contested = answers.sum_by_annotator(disagree)
    p_value = np.where(follows_both, np.maximum(beyond, against), 1.0)
    return MinorityTest(
        np.where(contested > 0, p_value, np.nan),
        contested,
        answers.sum_by_annotator(disagree & (answers.answer * minority > 0)),
    )
