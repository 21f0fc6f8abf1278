"""Grades as ordered classes: the grades themselves if there are few, else quantile bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Ratings
from crowdrank.errors import SettingError

# Up to this many distinct grades, each grade is a class.
MAX_DISTINCT_GRADES = 10


def check_bins(bins: int) -> None:
    """Refuse a number of bins that makes no sense."""
    if not 2 <= bins <= 1000:
        raise SettingError(f"bins must lie between 2 and 1000, got {bins}.")


@dataclass(frozen=True)
class GradeClasses:
    """The class of each rating.

    Parameters
    ----------
    code : array
        Class of each rating; 0 is the worst.
    value : array of shape (queries, classes)
        The grade that each class stands for, in each query.
    per_query : bool, default False
        Whether each query has its own scale.
    """

    code: IntArray
    value: FloatArray
    per_query: bool = False

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.value.shape[1])

    @classmethod
    def of(cls, ratings: Ratings, bins: int) -> GradeClasses:
        """Few distinct grades form one scale for all queries; otherwise each query has its own quantile bins.

        Equal grades share a bin: the one that contains the middle of their ranks.
        """
        grades, code = np.unique(ratings.grade, return_inverse=True)
        queries = len(ratings.items.queries)
        if len(grades) <= max(MAX_DISTINCT_GRADES, bins):
            return cls(code, np.broadcast_to(grades, (queries, len(grades))))
        query = ratings.items.query[ratings.item]
        rank = _fractional_ranks(query, ratings.grade, ratings.weights)
        code = np.minimum((rank * bins).astype(np.int64), bins - 1)
        return cls(code, _mean_grades(query * bins + code, ratings, queries, bins), per_query=True)


def _fractional_ranks(query: Int32Array, grade: FloatArray, weight: FloatArray) -> FloatArray:
    """The fraction of its query's weight that lies below each grade, counting half of the equal grades."""
    order = np.lexsort((grade, query))
    is_new = np.append(True, (np.diff(grade[order]) != 0) | (np.diff(query[order]) != 0))
    tie = np.cumsum(is_new) - 1
    tied = np.bincount(tie, weight[order])
    middle = np.cumsum(tied) - tied / 2
    query_of_tie = query[order][is_new]
    total = np.bincount(query_of_tie, tied)
    ranks = np.empty(len(grade))
    ranks[order] = ((middle - (np.cumsum(total) - total)[query_of_tie]) / total[query_of_tie])[tie]
    return ranks


def _mean_grades(cell: IntArray, ratings: Ratings, queries: int, size: int) -> FloatArray:
    """The mean grade of each class; an empty class is interpolated between its neighbours."""
    weight = np.bincount(cell, ratings.weights, queries * size).reshape(queries, size)
    total = np.bincount(cell, ratings.weights * ratings.grade, queries * size).reshape(queries, size)
    classes, means = np.arange(size), np.zeros((queries, size))
    for query in range(queries):
        used = np.flatnonzero(weight[query])
        if len(used):
            means[query] = np.interp(classes, used, total[query, used] / weight[query, used])
    return means
