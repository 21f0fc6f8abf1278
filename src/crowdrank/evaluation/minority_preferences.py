"""Scores to hold annotators against that they did not help to make: the majority's, and a minority's of one mind."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation.annotator_tests import Answers, quality_of

_JOINS = 2.0
"""Standard errors by which an annotator must follow the minority, beyond the majority, to be counted into it."""
_FEWEST = 3
"""Annotators, of a crowd or of a minority, below which nobody can vouch."""
_ROUNDS = 2
"""How often the minority is gathered, the second time by the scores of the first."""
_TURNS = 30
"""Power iterations."""


@dataclass(frozen=True)
class Expected:
    """What others' scores expect of each comparison: the mean of an answer that is 1 for left and −1 for right."""

    majority: FloatArray
    minority: FloatArray
    """0 where the others hold no minority of one mind."""


def expect(comparisons: Comparisons, model: Any, folds: int, rng: np.random.Generator) -> Expected:
    """Annotators are split at random; each part is held against the scores fitted to all the others.

    Only which way is up is settled by all together. Where many are reversed it could otherwise hang on who was held
    out; where it hangs on a single annotator, nothing is expected of anyone.
    """
    assert comparisons.annotator is not None
    present, who = np.unique(comparisons.annotator, return_inverse=True)
    majority, minority = np.zeros(len(comparisons)), np.zeros(len(comparisons))
    if len(present) < _FEWEST:
        return Expected(majority, minority)
    whole = means(_fit(model, comparisons), comparisons, comparisons)
    if not _of_one_mind(decided(comparisons, whole)):
        return Expected(majority, minority)
    folds = min(folds, len(present))
    fold = rng.permutation(np.arange(len(present)) % folds)[who]
    for n in range(folds):
        unseen, seen = np.flatnonzero(fold == n), np.flatnonzero(fold != n)
        held, others = comparisons.take(unseen), comparisons.take(seen)
        scores = _fit(model, others)
        up = np.sign(means(scores, others, others) @ whole[seen])
        majority[unseen] = up * means(scores, held, others)
        group = _minority(others, decided(others, up * means(scores, others, others)), model, rng)
        if group is not None:
            minority[unseen] = means(_fit(model, group), held, group)
    return Expected(majority, minority)


def decided(comparisons: Comparisons, expected: FloatArray) -> Answers:
    """The answers that are no ties."""
    assert comparisons.annotator is not None
    rows = np.flatnonzero(comparisons.outcome)
    return Answers(
        comparisons.annotator[rows].astype(np.int64),
        comparisons.outcome[rows].astype(np.float64),
        expected[rows],
        len(comparisons.annotators),
    )


def means(scores: FloatArray, asked: Comparisons, judged: Comparisons) -> FloatArray:
    """2σ(left − right) − 1 for what is asked; 0 where an item was not judged at all by those who made the scores."""
    known = judged.n_judgments_per_item > 0
    margin = np.tanh((scores[asked.left] - scores[asked.right]) / 2)
    return np.where(known[asked.left] & known[asked.right], margin, 0.0)


def _fit(model: Any, comparisons: Comparisons) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        return np.asarray(model.fit(comparisons).scores)


def _of_one_mind(answers: Answers) -> bool:
    """Whether more annotators stand behind the scores than against them, and would without any one of them."""
    return bool(np.sum(np.sign(answers.along(answers.expected).total)) >= 2)


def _minority(others: Comparisons, answers: Answers, model: Any, rng: np.random.Generator) -> Comparisons | None:
    """The comparisons of those who share a taste of their own, if there are any."""
    direction = _second_direction(others, answers, rng)
    rows = others.take(np.flatnonzero(others.outcome))
    weight, group = direction[rows.left] - direction[rows.right], None
    for _ in range(_ROUNDS):
        if group is not None:
            weight = means(_fit(model, group), rows, group)
        members = _followers(answers, weight)
        if np.count_nonzero(members) < _FEWEST:
            return None
        assert others.annotator is not None
        group = others.take(np.flatnonzero(members[others.annotator]))
    return group


def _followers(answers: Answers, weight: FloatArray) -> BoolArray:
    found = answers.along(answers.beyond_scores(weight))
    return np.asarray(found.total > _JOINS * np.sqrt(found.square)) & (found.square > 0)


def _second_direction(others: Comparisons, answers: Answers, rng: np.random.Generator) -> FloatArray:
    """What annotators share in answers that their quality leaves unexplained: the first singular vector.

    Its sign is that of the few who follow it far, not of the many who shun it a little.
    """
    rows, items = others.take(np.flatnonzero(others.outcome)), len(others.items)
    trust = np.nan_to_num(2 * quality_of(answers.along(answers.expected)) - 1)
    rest = answers.side - trust[answers.who] * answers.expected
    asked = np.sqrt(np.maximum(1.0, rows.n_judgments_per_item))
    load = np.sqrt(np.maximum(1.0, np.bincount(answers.who, minlength=answers.people)))
    direction = others.items.centre(rng.standard_normal(items))
    for _ in range(_TURNS):
        shared = direction / asked
        following = answers.per(rest * (shared[rows.left] - shared[rows.right])) / load
        pull = rest * (following / load)[answers.who]
        moved = (np.bincount(rows.left, pull, items) - np.bincount(rows.right, pull, items)) / asked
        size = float(np.linalg.norm(moved))
        if size == 0:
            break
        direction = moved / size
    skew = np.sign(np.sum(following**3)) or 1.0
    return np.asarray(skew * direction / asked)


@dataclass(frozen=True)
class Taste:
    """Whether each annotator shares the minority's taste, three other explanations excluded."""

    chance: FloatArray
    """The larger of two: that a follower of the majority (of any quality, mirrored or tossing a coin) follows the
    minority as far; and that, where the two disagree, they side with the minority as often by tossing a coin."""
    contested: FloatArray
    """Decided answers on which the majority and the minority disagree."""
    sided: FloatArray
    """… of which the annotator sided with the minority."""


def taste(answers: Answers, minority: FloatArray) -> Taste:
    """nan where the others hold no minority of one mind, or never disagree with it on what was asked.

    One who turns the majority's order round agrees with a minority, too; but not where it agrees with the majority.
    """
    majority = answers.expected
    beyond = answers.along(answers.beyond_scores(minority)).chance()
    apart, alike = majority * minority < 0, majority * minority > 0
    against = answers.along(np.where(apart, minority - majority, 0.0)).chance()
    together = answers.per(np.where(alike, answers.side * (minority + majority), 0.0)) > 0
    contested = answers.per(apart)
    chance = np.where(together, np.maximum(beyond, against), 1.0)
    return Taste(np.where(contested > 0, chance, np.nan), contested, answers.per(apart & (answers.side * minority > 0)))
