"""Mean ratings with empirical-Bayes shrinkage (Robbins 1956): raw, or standardised within annotators (z-scores)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import Judgments, Ratings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind, with_annotators
from crowdrank.models.ratings.shrinkage import ShrunkenMeans, check_prior_count
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class MeanRating(Model):
    """The mean grade, shrunk towards the mean of the query if there are few grades.

    Parameters
    ----------
    prior_count : float or None, default None
        Number of pseudo-grades at the query mean that are added to each item. None estimates it from the data; 0 gives
        plain means.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    With n grades of mean x̄ and prior count c, the score of an item is (n·x̄ + c·m) / (n + c), where m is the centre of
    its query. c is the ratio of the variance within items to the variance between items, estimated by restricted
    maximum likelihood with a weak prior on log c.

    Reference: Robbins (1956), An empirical Bayes approach to statistics.

    Examples
    --------
    >>> grades = Ratings.of(["a", "a", "a", "a", "b", "c", "c"], [5, 5, 5, 4, 5, 2, 1])
    >>> MeanRating(prior_count=1).fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    shares_scores: ClassVar[bool] = True

    prior_count: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_prior_count(self.prior_count, "prior_count")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        means = ShrunkenMeans(ratings.items, ratings.item, ratings.grade, ratings.weights, self.prior_count)
        return build_ranking(
            self,
            ratings,
            means.scores,
            parameters={"prior_count": means.fitted_count},
            centred=False,
            measure=lambda: means.uncertainty(self.seed),
        )


Estimate = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, kw_only=True)
class ZRating(Model):
    """The mean z-score: grades standardised within each annotator, then averaged.

    Parameters
    ----------
    annotator_prior_count : float, default 2.0
        Number of typical grades (mean 0, standard deviation 1) that are added to each annotator before the annotator's
        mean and standard deviation are computed.
    prior_count : float or None, default None
        Number of pseudo-grades at the query mean that are added to each item. None estimates it from the data; 0 gives
        plain means.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Grades are first standardised within their query, then within their annotator: z = (x − mean) / standard deviation.
    This removes differences in leniency and in the range of grades. The z-scores are averaged per item and shrunk as in
    `MeanRating`.

    Examples
    --------
    >>> who = ["strict"] * 3 + ["fair"] * 3 + ["kind"] * 2
    >>> grades = Ratings.of(["a", "b", "c", "a", "b", "c", "b", "c"], [4, 3, 1, 5, 3, 2, 10, 9], annotator=who)
    >>> ZRating().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    models_annotators: ClassVar[bool] = True

    annotator_prior_count: float = 2.0
    prior_count: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_prior_count(self.prior_count, "prior_count")
        if not 0 <= self.annotator_prior_count < np.inf:
            raise SettingError(f"annotator_prior_count must be zero or more, got {self.annotator_prior_count}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        effects = RaterEffects(ratings, self.annotator_prior_count)
        means = ShrunkenMeans(ratings.items, ratings.item, effects.standardised, ratings.weights, self.prior_count)
        ranking = build_ranking(
            self,
            ratings,
            means.scores,
            parameters={"prior_count": means.fitted_count},
            measure=lambda: means.uncertainty(self.seed),
        )
        return with_annotators(ranking, ratings, effects.estimates)


@dataclass(frozen=True)
class RaterEffects:
    """How each annotator uses the scale: mean and standard deviation of their grades, with queries standardised."""

    ratings: Ratings
    prior_count: float

    @cached_property
    def annotator(self) -> Int32Array:
        """Annotator of each rating; ratings without annotators are treated as one annotator's."""
        annotator = self.ratings.annotator
        return np.zeros(len(self.ratings), np.int32) if annotator is None else annotator

    @cached_property
    def query_standardised(self) -> FloatArray:
        """Grades standardised within their query."""
        query = self.ratings.items.query[self.ratings.item]
        mean, sd, _ = _moments(query, self.ratings.grade, self.ratings.weights, len(self.ratings.items.queries))
        return _standardise(self.ratings.grade, mean[query], sd[query])

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, standard deviation and weight of each annotator's grades."""
        n_annotators = max(1, len(self.ratings.annotators))
        return _moments(self.annotator, self.query_standardised, self.ratings.weights, n_annotators, self.prior_count)

    @cached_property
    def standardised(self) -> FloatArray:
        """Grades standardised within their annotator."""
        mean, sd, _ = self.moments
        return _standardise(self.query_standardised, mean[self.annotator], sd[self.annotator])

    def estimates(self) -> dict[str, Estimate]:
        """Leniency (mean) and spread (standard deviation) with 95 % intervals, in standard deviations of a query."""
        mean, sd, weight = self.moments
        half_width = 1.96 / np.sqrt(np.maximum(weight + self.prior_count, 1.0))
        log_half_width = half_width / np.sqrt(2)  # the standard error of log(sd) is 1/√(2n)
        return {
            "leniency": (mean, mean - half_width * sd, mean + half_width * sd),
            "spread": (sd, sd * np.exp(-log_half_width), sd * np.exp(log_half_width)),
        }


def _moments(
    group: Int32Array, value: FloatArray, weight: FloatArray, size: int, prior_count: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, standard deviation and weight per group, with `prior_count` pseudo-values of mean 0 and deviation 1."""
    group_weight = np.bincount(group, weight, size).astype(np.float64)
    total = np.maximum(group_weight + prior_count, 1e-300)
    mean = np.bincount(group, weight * value, size) / total
    squares = np.bincount(group, weight * (value - mean[group]) ** 2, size) + prior_count * (1.0 + mean**2)
    return mean, np.sqrt(squares / total), group_weight


def _standardise(value: FloatArray, mean: FloatArray, sd: FloatArray) -> FloatArray:
    """z-scores; zero where the values do not differ by more than rounding."""
    return np.divide(value - mean, sd, out=np.zeros(len(value)), where=sd > 1e-10 * np.abs(mean))
