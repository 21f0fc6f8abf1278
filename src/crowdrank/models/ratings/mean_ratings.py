"""The mean grade, drawn towards the mean of its query where grades are few (Robbins 1956's empirical Bayes).

Grades standardised within annotators, then averaged: strict and lenient, bold and timid graders made alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Judgments, Ratings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind, with_annotators
from crowdrank.models.ratings.shrinkage import Shrunk, check_count
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class MeanRating(Model):
    """The mean grade, drawn towards the mean of the query where grades are few.

    >>> grades = Ratings.of(["a", "a", "a", "a", "b", "c", "c"], [5, 5, 5, 4, 5, 2, 1])
    >>> MeanRating(prior_count=1).fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    shares_scores: ClassVar[bool] = True

    prior_count: float | None = None
    """Grades at its query's mean that every item is credited with; None to learn it; 0 for plain means."""
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_count(self.prior_count, "prior_count")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        found = Shrunk(ratings.items, ratings.item, ratings.grade, ratings.weights, self.prior_count)
        return build_ranking(
            self,
            ratings,
            found.scores,
            parameters={"prior_count": found.learnt},
            centred=False,
            measure=lambda: found.measure(self.seed),
        )


Estimate = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, kw_only=True)
class ZRating(Model):
    """Grades less their annotator's mean, in units of the annotator's spread, averaged.

    >>> who = ["strict"] * 3 + ["fair"] * 3 + ["kind"] * 2
    >>> grades = Ratings.of(["a", "b", "c", "a", "b", "c", "b", "c"], [4, 3, 1, 5, 3, 2, 10, 9], annotator=who)
    >>> ZRating().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    models_annotators: ClassVar[bool] = True

    annotator_count: float = 2.0
    """Grades of a typical annotator that everyone is credited with before being standardised."""
    prior_count: float | None = None
    """Grades at its query's mean that every item is credited with; None to learn it; 0 for plain means."""
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_count(self.prior_count, "prior_count")
        if not 0 <= self.annotator_count < np.inf:
            raise SettingError(f"annotator_count must be zero or more, got {self.annotator_count}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        habits = Habits(ratings, self.annotator_count)
        found = Shrunk(ratings.items, ratings.item, habits.standardised, ratings.weights, self.prior_count)
        ranking = build_ranking(
            self,
            ratings,
            found.scores,
            parameters={"prior_count": found.learnt},
            measure=lambda: found.measure(self.seed),
        )
        return with_annotators(ranking, ratings, habits.estimates)


@dataclass(frozen=True)
class Habits:
    """How each annotator uses the scale: the mean and spread of their grades, all queries on one scale."""

    ratings: Ratings
    count: float

    @cached_property
    def who(self) -> Int32Array:
        """Grades that name nobody are one annotator's."""
        named = self.ratings.annotator
        return np.zeros(len(self.ratings), np.int32) if named is None else named

    @cached_property
    def of_query(self) -> FloatArray:
        """Grades on the scale of their query: less its mean, in units of its spread."""
        query = self.ratings.items.query[self.ratings.item]
        mean, spread, _ = _moments(query, self.ratings.grade, self.ratings.weights, len(self.ratings.items.queries))
        return _standardised(self.ratings.grade, mean[query], spread[query])

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, spread and number of grades of each annotator."""
        people = max(1, len(self.ratings.annotators))
        return _moments(self.who, self.of_query, self.ratings.weights, people, self.count)

    @cached_property
    def standardised(self) -> FloatArray:
        mean, spread, _ = self.moments
        return _standardised(self.of_query, mean[self.who], spread[self.who])

    def estimates(self) -> dict[str, Estimate]:
        """How lenient and how bold: mean and spread of grades, 1 being the spread of all grades of a query."""
        mean, spread, number = self.moments
        reach = 1.96 / np.sqrt(np.maximum(number + self.count, 1.0))
        bold = reach / np.sqrt(2)  # the error of a logarithm of a spread
        return {
            "leniency": (mean, mean - reach * spread, mean + reach * spread),
            "spread": (spread, spread * np.exp(-bold), spread * np.exp(bold)),
        }


def _moments(
    group: Int32Array, value: FloatArray, weight: FloatArray, size: int, count: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, standard deviation and number of each group's values, and of `count` more around 0 with spread 1."""
    number = np.bincount(group, weight, size).astype(np.float64)
    held = np.maximum(number + count, 1e-300)
    mean = np.bincount(group, weight * value, size) / held
    squares = np.bincount(group, weight * (value - mean[group]) ** 2, size) + count * (1.0 + mean**2)
    return mean, np.sqrt(squares / held), number


def _standardised(value: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Zero where nothing differs."""
    return np.divide(value - mean, spread, out=np.zeros(len(value)), where=spread > 1e-10 * np.abs(mean))
