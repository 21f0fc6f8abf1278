"""Grades as classes in order: the grades themselves where they are few, else bins of about equal size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Ratings
from crowdrank.errors import SettingError

# So many different grades are classes as they are.
FEW = 10


def check_bins(bins: int) -> None:
    if not 2 <= bins <= 1000:
        raise SettingError(f"bins must lie between 2 and 1000, got {bins}.")


@dataclass(frozen=True)
class Classes:
    """The class of each grade, and what a class is worth in each query."""

    code: IntArray
    """Of each grade; 0 is the worst."""
    value: FloatArray
    """Of each class in each query, as a grade: queries × classes."""
    own: bool = False
    """Whether each query has a scale of its own."""

    @property
    def size(self) -> int:
        return int(self.value.shape[1])

    @classmethod
    def of(cls, ratings: Ratings, bins: int) -> Classes:
        """Few grades are one scale for all queries. Where there are many, each query has bins of its own.

        A bin is what lies between two quantiles of its query; equal grades go where the middle of them is.
        """
        grades, code = np.unique(ratings.grade, return_inverse=True)
        queries = len(ratings.items.queries)
        if len(grades) <= max(FEW, bins):
            return cls(code, np.broadcast_to(grades, (queries, len(grades))))
        query = ratings.items.query[ratings.item]
        code = np.minimum((_ranks(query, ratings.grade, ratings.weights) * bins).astype(np.int64), bins - 1)
        return cls(code, _values(query * bins + code, ratings, queries, bins), own=True)


def _ranks(query: Int32Array, grade: FloatArray, weight: FloatArray) -> FloatArray:
    """What share of its query's grades lies below each, equal ones counted half."""
    order = np.lexsort((grade, query))
    fresh = np.append(True, (np.diff(grade[order]) != 0) | (np.diff(query[order]) != 0))
    tie = np.cumsum(fresh) - 1
    tied = np.bincount(tie, weight[order])
    middle = np.cumsum(tied) - tied / 2
    of_tie = query[order][fresh]
    total = np.bincount(of_tie, tied)
    found = np.empty(len(grade))
    found[order] = ((middle - (np.cumsum(total) - total)[of_tie]) / total[of_tie])[tie]
    return found


def _values(cell: IntArray, ratings: Ratings, queries: int, size: int) -> FloatArray:
    """The mean grade of each class; of classes that nothing fell into, between their neighbours."""
    number = np.bincount(cell, ratings.weights, queries * size).reshape(queries, size)
    total = np.bincount(cell, ratings.weights * ratings.grade, queries * size).reshape(queries, size)
    places, found = np.arange(size), np.zeros((queries, size))
    for query in range(queries):
        seen = np.flatnonzero(number[query])
        if len(seen):
            found[query] = np.interp(places, seen, total[query, seen] / number[query, seen])
    return found
