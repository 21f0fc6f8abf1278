"""Parameters of the graded response model: their positions in one vector, their priors, and a sample of the ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Ratings
from crowdrank.errors import DataError
from crowdrank.models.ratings.dawid_skene import GradeClasses
from crowdrank.models.ratings.graded_response_likelihood import RatingShard

# Size of the dense matrix that remains after elimination, up to which it is factored.
LARGEST_FACTORED = 1_500
# Standard deviation of the prior on thresholds: weak, because many grades inform each threshold.
_THRESHOLD_SCALE = 10.0


class PriorScales(NamedTuple):
    """Standard deviations of the normal priors.

    Parameters
    ----------
    score, leniency, stretch, discrimination : float
        Of the scores, of b and t around 0, and of α around 1.
    """

    score: float
    leniency: float
    stretch: float
    discrimination: float


@dataclass(frozen=True)
class ParameterLayout:
    """Layout of the parameter vector: scores, then leniency, stretch and discrimination − 1, then thresholds.

    Parameters
    ----------
    shard : RatingShard
        The ratings with the numbers of their parameters.
    thresholds : array
        Starting values of the thresholds: the logits of the cumulative class frequencies.
    signs : array, optional
        −1 for annotators who are taken as reversed, 1 for the others. The mean of sign · discrimination is 1, which
        defines the unit of the scores.
    """

    shard: RatingShard
    thresholds: FloatArray
    signs: FloatArray | None = None

    @classmethod
    def of(cls, ratings: Ratings, classes: GradeClasses) -> ParameterLayout:
        query = ratings.items.query[ratings.item] if classes.per_query else np.zeros(len(ratings), np.int64)
        # The thresholds of a scale are adjacent, one below each class in use except the lowest.
        cells, code = np.unique(query * np.int64(classes.size) + classes.code, return_inverse=True)
        scale = cells // classes.size
        is_lowest = np.append(True, scale[1:] != scale[:-1])
        if is_lowest.all():
            raise DataError("All grades are equal, so they order no two items.")
        weight = np.bincount(code, ratings.weights)
        threshold = np.cumsum(~is_lowest) - 1
        is_highest = np.append(is_lowest[1:], True)
        who = np.zeros(len(ratings), np.int64) if ratings.annotator is None else ratings.annotator.astype(np.int64)
        shard = RatingShard(
            ratings.item.astype(np.int64),
            who,
            np.where(is_lowest, 0, threshold)[code],
            np.where(is_highest, 0, threshold + 1)[code],
            is_lowest[code],
            is_highest[code],
            np.asarray(ratings.weights),
            len(ratings.items),
            max(1, len(ratings.annotators)),
        )
        below = np.cumsum(weight) - weight
        below -= np.maximum.accumulate(np.where(is_lowest, below, 0.0))
        fraction = (below / np.bincount(scale, weight)[scale])[~is_lowest]
        return cls(shard, np.log(fraction / (1 - fraction)))

    @property
    def is_factored(self) -> bool:
        """Whether the curvature is small enough, after elimination, to factor."""
        return min(self.items, 3 * self.annotators) + len(self.thresholds) <= LARGEST_FACTORED

    def sample(self, annotators: int, items: int) -> ParameterLayout:
        """The ratings by the annotators with most ratings, of the items with most of these ratings."""
        shard = self.shard
        rows = _of_heaviest(shard.annotator, shard.weight, annotators)
        rows = rows[_of_heaviest(shard.item[rows], shard.weight[rows], items)]
        part = RatingShard._make((*(column[rows] for column in shard[:-2]), shard.items, shard.annotators))
        item_codes, item = np.unique(part.item, return_inverse=True)
        annotator_codes, annotator = np.unique(part.annotator, return_inverse=True)
        used = np.unique(np.concatenate((part.low[~part.is_lowest], part.high[~part.is_highest])))
        return ParameterLayout(
            part._replace(
                item=item,
                annotator=annotator,
                low=np.where(part.is_lowest, 0, np.searchsorted(used, part.low)),
                high=np.where(part.is_highest, 0, np.searchsorted(used, part.high)),
                items=len(item_codes),
                annotators=len(annotator_codes),
            ),
            self.thresholds[used],
        )

    @property
    def items(self) -> int:
        """Number of items."""
        return self.shard.items

    @property
    def annotators(self) -> int:
        """Number of annotators."""
        return self.shard.annotators

    @property
    def groups(self) -> IntArray:
        """First position of scores, leniencies, stretches, discriminations and thresholds, and the end."""
        sizes = [0, self.items, *[self.annotators] * 3, len(self.thresholds)]
        return np.cumsum(sizes)

    @cached_property
    def push(self) -> FloatArray:
        """Direction of the mean of sign · discrimination, along which parameters do not move."""
        push = np.zeros(self.groups[-1])
        push[self.groups[3] : self.groups[4]] = (1.0 if self.signs is None else self.signs) * self.annotators**-0.5
        return push

    @property
    def start(self) -> FloatArray:
        """Starting point: scores 0, annotators identical but for their signs."""
        start = np.concatenate((np.zeros(self.items + 3 * self.annotators), self.thresholds))
        start[self.groups[3] : self.groups[4]] = 0.0 if self.signs is None else self.signs - 1.0
        return start

    def discrimination(self, x: FloatArray) -> FloatArray:
        """α of the annotators."""
        return 1.0 + x[self.groups[3] : self.groups[4]]

    def prior_scales(self, scales: PriorScales) -> FloatArray:
        """Prior standard deviation of each parameter."""
        return np.repeat([*scales, _THRESHOLD_SCALE], np.diff(self.groups))


def _of_heaviest(group: IntArray, weight: FloatArray, count: int) -> IntArray:
    """Rows of the `count` groups with the largest total weight."""
    totals = np.bincount(group, weight)
    chosen = np.zeros(len(totals), bool)
    chosen[np.argsort(-totals, kind="stable")[:count]] = True
    return np.flatnonzero(chosen[group])
