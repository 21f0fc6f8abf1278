"""Cross-fitted scores of the majority, and of a minority with preferences of its own, to test annotators against."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation.annotator_tests import Answers, estimate_quality
from crowdrank.models.base import Model

_JOIN_Z = 2.0
"""Standard errors by which an annotator must follow the minority, beyond the majority, to be counted as a member."""
_MIN_ANNOTATORS = 3
"""Smallest crowd, and smallest minority, that others are tested against."""
_ROUNDS = 2
"""How often the members of the minority are determined; the second round uses the scores of the first."""
_POWER_ITERATIONS = 30


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
    known = fitted.judged_of_item > 0
    margin = np.tanh((scores[asked.left] - scores[asked.right]) / 2)
    return np.where(known[asked.left] & known[asked.right], margin, 0.0)


def _fit_scores(model: Model, comparisons: Comparisons) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
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
    item_norm = np.sqrt(np.maximum(1.0, rows.judged_of_item))
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
