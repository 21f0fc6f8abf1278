"""Ratings as comparisons that remember what the grades weigh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Comparisons, Ratings

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GradedPairs:
    """Every two items that one annotator graded in a query; equal grades are a tie."""

    ratings: Ratings
    comparisons: Comparisons

    @classmethod
    def of(cls, ratings: Ratings) -> GradedPairs:
        """A comparison weighs the geometric mean of what its two grades do, repeated ones added up."""
        pairs = cls(ratings, ratings.to_comparisons(ties="keep"))
        weight = np.sqrt(np.prod(pairs.of_both(ratings.weights), axis=0))
        return cls(ratings, pairs.comparisons.reweighted(weight))

    def of_both(self, value: Vector) -> Vector:
        """A value of grades, for the left and the right item of each comparison; added up over repeated grades."""
        who, size = self.comparisons.annotator, len(self.ratings.items)
        assert who is not None
        assert self.ratings.annotator is not None
        cells, row = np.unique(self.ratings.annotator.astype(np.int64) * size + self.ratings.item, return_inverse=True)
        total = np.bincount(row, value)
        sides = np.stack((self.comparisons.left, self.comparisons.right))
        return np.asarray(total[np.searchsorted(cells, who.astype(np.int64) * size + sides)])

    def redrawn(self, weight: Vector) -> Comparisons:
        """The comparisons when grades weigh this, having been drawn anew: as many as there are pairs of their copies.

        Comparisons drawn by themselves would be taken for more than the grades they were made of.
        """
        copies = self.of_both(weight) / self.of_both(self.ratings.weights)
        return self.comparisons.reweighted(self.comparisons.weights * np.prod(copies, axis=0))
