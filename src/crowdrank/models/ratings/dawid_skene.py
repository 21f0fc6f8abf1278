"""Dawid & Skene 1979: items have a true class, and each annotator mixes classes up in a way of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Judgments, Ratings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, require_kind, with_annotators
from crowdrank.models.ratings.grade_classes import Classes, check_bins
from crowdrank.models.ratings.shrinkage import draws_of
from crowdrank.results import Convergence, Ranking, Uncertainty

_UNIT = "of some item's chance of a class still moving"
# The crowd's own matrix is only believed beforehand as far as one answer a class, falling off by this a step away.
_FALL = 1.0
# How near the crowd's matrix must be: it is only the middle of what is believed of each annotator.
_NEAR_ENOUGH = 1e-5
_LEAST = 1e-300


@dataclass(frozen=True, kw_only=True)
class DawidSkene(Model):
    """True classes of items, and how each annotator mixes them up, over all queries.

    >>> who = ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    >>> grades = Ratings.of(["a", "b", "c"] * 3, [1, 1, 0, 1, 0, 0, 1, 1, 0], annotator=who)
    >>> DawidSkene().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    models_annotators: ClassVar[bool] = True
    draws_classes: ClassVar[bool] = True

    bins: int = 5
    """Classes that grades are put into, by quantiles, where there are more than ten different ones."""
    annotator_count: float = 5.0
    """Answers, for each true class, of a typical annotator that everyone is credited with."""
    query_count: float = 10.0
    """Items of a typical query that every query is credited with, when it comes to how frequent classes are."""
    tolerance: float = 1e-6
    """Stop when no item's chance of any class moves by more than this."""
    max_steps: int = 2000
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_solver(self)
        check_bins(self.bins)
        for name in ("annotator_count", "query_count"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingError(f"{name} must be positive, got {getattr(self, name)}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        grades = Grades(ratings, Classes.of(ratings, self.bins))
        crowd, _ = grades.settle(grades.first(), None, self, max(self.tolerance, _NEAR_ENOUGH))
        found, convergence = grades.settle(crowd.chances, crowd, self, self.tolerance)
        ranking = build_ranking(
            self,
            ratings,
            found.scores,
            log_likelihood=found.log_likelihood,
            convergence=convergence,
            centred=False,
            measure=lambda: found.measure(self.seed),
        )
        return with_annotators(ranking, ratings, lambda: {"quality": found.quality(self.annotator_count)})


@dataclass(frozen=True)
class Mixed:
    """What is believed at one point of the rounds."""

    grades: Grades
    chances: FloatArray
    """Of each item being of each class: items × classes."""
    shares: FloatArray
    """Of classes in each query: queries × classes."""
    matrices: FloatArray
    """P(answer | class) of each annotator: annotators × true classes × answers; of one, if they are all alike."""
    log_likelihood: float

    @property
    def scores(self) -> FloatArray:
        """The expected class of each item, as a grade."""
        return np.asarray(np.sum(self.chances * self.grades.worth, axis=1))

    def measure(self, seed: int) -> Uncertainty:
        """Draws are classes, so that items of one class share their ranks."""
        worth, items = self.grades.worth, len(self.scores)
        variance = np.sum(self.chances * (worth - self.scores[:, None]) ** 2, axis=1)
        chance = np.random.default_rng(seed).random((draws_of(items), items))
        drawn = np.zeros(chance.shape, np.int64)
        for below in np.cumsum(self.chances, axis=1).T[:-1]:
            drawn += chance > below
        method = "posterior of the classes, given the annotators"
        return Uncertainty(worth[np.arange(items), drawn], np.sqrt(variance), method, sampled=True)

    def quality(self, count: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P(grades the better of two items of different classes higher), a tie counting half."""
        shares = self.chances.mean(axis=0)
        pairs = np.triu(np.outer(shares, shares), 1).T  # [better, worse]
        pairs /= max(float(pairs.sum()), _LEAST)
        below = np.cumsum(self.matrices, axis=2) - 0.5 * self.matrices
        found = np.einsum("bw,kby,kwy->k", pairs, self.matrices, below)
        answers = self.grades.number + count
        reach = 1.96 * np.sqrt(np.maximum(found * (1 - found), 0.0) / np.maximum(answers, 1.0))
        return found, np.maximum(found - reach, 0.0), np.minimum(found + reach, 1.0)


@dataclass(frozen=True)
class Grades:
    """Ratings with their classes, and the two halves of a round."""

    ratings: Ratings
    classes: Classes

    @cached_property
    def who(self) -> Int32Array:
        """Grades that name nobody are one annotator's."""
        named = self.ratings.annotator
        return np.zeros(len(self.ratings), np.int32) if named is None else named

    @cached_property
    def people(self) -> int:
        return max(1, len(self.ratings.annotators))

    @cached_property
    def number(self) -> FloatArray:
        return np.bincount(self.who, self.ratings.weights, self.people).astype(np.float64)

    @cached_property
    def worth(self) -> FloatArray:
        """Of each class for each item, as a grade."""
        return np.asarray(self.classes.value[self.ratings.items.query])

    @cached_property
    def kernel(self) -> FloatArray:
        """An annotator before anything is known: neighbouring classes are mixed up more readily than far ones."""
        places = np.arange(self.classes.size)
        near = np.exp(-_FALL * np.abs(places[:, None] - places))
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def first(self) -> FloatArray:
        """Each item's classes by its own grades, seen through the kernel."""
        rows = np.log(self.kernel.T[self.classes.code]) * self.ratings.weights[:, None]
        return _chances(self._per_item(rows))

    def settle(
        self, chances: FloatArray, crowd: Mixed | None, model: DawidSkene, tolerance: float
    ) -> tuple[Mixed, Convergence]:
        """Round after round: how annotators answer and how frequent classes are, then the classes of items.

        Without a `crowd` all annotators are one, and so are queries; with one, it is what is believed of each.
        """
        for step in range(1, model.max_steps + 1):
            shares, matrices = self._learn(chances, crowd, model)
            mixed = self._look(shares, matrices)
            moved = float(np.max(np.abs(mixed.chances - chances)))
            chances = mixed.chances
            if moved <= tolerance:
                return mixed, Convergence(True, step, moved, _UNIT)
        return mixed, Convergence(False, model.max_steps, moved, _UNIT)

    def _learn(self, chances: FloatArray, crowd: Mixed | None, model: DawidSkene) -> tuple[FloatArray, FloatArray]:
        items, size = self.ratings.items, self.classes.size
        cell = (0 if crowd is None else self.who.astype(np.int64)) * size + self.classes.code
        people = 1 if crowd is None else self.people
        weight = self.ratings.weights[:, None] * chances[self.ratings.item]
        counts = np.stack([np.bincount(cell, column, people * size) for column in weight.T])
        counts = counts.reshape(size, people, size).transpose(1, 0, 2)
        if crowd is None:
            matrices = counts + self.kernel
            shares = np.broadcast_to(chances.sum(axis=0) + 1.0 / size, (len(items.queries), size))
        else:
            matrices = counts + model.annotator_count * crowd.matrices
            sums = np.add.reduceat(chances, items.starts[:-1], axis=0)
            shares = sums + model.query_count * crowd.shares
        return shares / shares.sum(axis=1, keepdims=True), matrices / matrices.sum(axis=2, keepdims=True)

    def _look(self, shares: FloatArray, matrices: FloatArray) -> Mixed:
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(matrices, _LEAST))
        of_row = logs[self.who if len(matrices) > 1 else 0, :, self.classes.code] * self.ratings.weights[:, None]
        joint = self._per_item(of_row) + np.log(np.maximum(shares, _LEAST))[self.ratings.items.query]
        top = joint.max(axis=1)
        value = float(np.sum(top + np.log(np.exp(joint - top[:, None]).sum(axis=1))))
        return Mixed(self, _chances(joint), shares, matrices, value)

    def _per_item(self, rows: FloatArray) -> FloatArray:
        size = len(self.ratings.items)
        return np.stack([np.bincount(self.ratings.item, column, size) for column in rows.T], axis=1).astype(np.float64)


def _chances(joint: FloatArray) -> FloatArray:
    likely = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
