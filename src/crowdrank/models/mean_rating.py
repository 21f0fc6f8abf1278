"""The mean grade, drawn towards the mean of its query where grades are few (Robbins 1956's empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crowdrank.engines import Engine, here
from crowdrank.judgments import Judgments, Ratings
from crowdrank.models.conclude import conclude, need
from crowdrank.models.shrinkage import Shrunk, check_count
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class MeanRating:
    """The mean grade, drawn towards the mean of the query where grades are few.

    >>> grades = Ratings.of(["a", "a", "a", "a", "b", "c", "c"], [5, 5, 5, 4, 5, 2, 1])
    >>> MeanRating(prior_count=1).fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    pools_queries: ClassVar[bool] = True

    prior_count: float | None = None
    """Grades at its query's mean that every item is credited with; None to learn it; 0 for plain means."""
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_count(self.prior_count, "prior_count")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        ratings = need(Ratings, judgments, self)
        found = Shrunk(ratings.items, ratings.item, ratings.grade, ratings.weights, self.prior_count)
        return conclude(
            self, ratings, found.scores, parameters={"prior_count": found.learnt}, centred=False,
            measure=lambda: found.measure(self.seed),
        )  # fmt: skip
