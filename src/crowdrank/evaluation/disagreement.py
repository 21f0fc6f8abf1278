"""Disagreement between annotators on pairs of items that both judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError
from crowdrank.evaluation.estimates import benjamini_hochberg, wilson_interval
from crowdrank.results.frames import as_native


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement:
    """Disagreement of each two annotators, sorted by number of judgments.

    Parameters
    ----------
    annotators : array of str
        Labels, most judgments first.
    shared : array of int, annotators × annotators
        Number of pairs of items that both decided. Repeated answers of an annotator count once, by their majority.
    opposite : array of int, annotators × annotators
        Number of shared pairs on which the two chose different items.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    annotators: ObjectArray
    shared: IntArray
    opposite: IntArray
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Disagreement among {len(self.annotators):,} annotators>"

    @cached_property
    def share(self) -> FloatArray:
        """Fraction of shared pairs with opposite answers; nan without shared pairs and on the diagonal."""
        share: FloatArray = np.full(self.shared.shape, np.nan)
        np.divide(self.opposite, self.shared, out=share, where=self.shared > 0)
        np.fill_diagonal(share, np.nan)
        return share

    def frame(self, min_shared: int = 5) -> Any:
        """Return one row per two annotators, those who clearly disagree most first.

        Parameters
        ----------
        min_shared : int, default 5
            Smallest number of shared pairs.

        Notes
        -----
        `p` is the one-sided binomial p-value of disagreeing more often than not, adjusted for the number of rows.
        """
        return as_native(self.to_polars(min_shared), self.native)

    def to_polars(self, min_shared: int = 5) -> pl.DataFrame:
        """Return `frame` as a polars data frame."""
        from scipy.special import bdtrc

        first, second = np.nonzero(np.triu(self.shared >= min_shared, 1))
        shared, opposite = self.shared[first, second], self.opposite[first, second]
        low, high = wilson_interval(opposite, shared)
        columns = {
            "annotator": self.annotators[first].tolist(),
            "other": self.annotators[second].tolist(),
            "shared": shared,
            "opposite": opposite,
            "share": self.share[first, second],
            "low": low,
            "high": high,
            "p": benjamini_hochberg(np.where(opposite > 0, bdtrc(np.maximum(opposite - 1, 0), shared, 0.5), 1.0)),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "other": pl.String})
        return frame.sort("low", "share", "annotator", "other", descending=[True, True, False, False])


def disagreement(comparisons: Comparisons, max_annotators: int = 300) -> Disagreement:
    """Count shared pairs and opposite answers of each two annotators.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with annotators.
    max_annotators : int, default 300
        Use at most this number of annotators, those with most judgments.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b", "b"], ["b", "b", "c", "c"], ["a", "b", "b", "b"],
    ...                        annotator=["ann", "bob", "ann", "bob"])
    >>> found = disagreement(votes)
    >>> found.shared[0, 1], found.opposite[0, 1]
    (np.int64(2), np.int64(1))
    """
    from scipy.sparse import coo_array

    if comparisons.annotator is None:
        raise DataError("Disagreement needs annotators, but these judgments do not name them.")
    n_judgments = np.bincount(comparisons.annotator, minlength=len(comparisons.annotators))
    chosen = np.argsort(-n_judgments, kind="stable")[:max_annotators]
    index = np.full(len(n_judgments), -1)
    index[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero((index[comparisons.annotator] >= 0) & (comparisons.outcome != 0))
    left, right = comparisons.left[rows], comparisons.right[rows]
    cells, cell = np.unique(pair_cells(len(comparisons.items), left, right), return_inverse=True)
    direction = np.where(left < right, comparisons.outcome[rows], -comparisons.outcome[rows]).astype(np.int64)
    where = (index[comparisons.annotator[rows]], cell)
    answers = coo_array((direction, where), shape=(len(chosen), len(cells))).tocsr()  # adds up repeated answers
    answers.data = np.sign(answers.data)
    shared, net = (abs(answers) @ abs(answers).T).toarray(), (answers @ answers.T).toarray()
    return Disagreement(comparisons.annotators[chosen], shared, (shared - net) // 2, comparisons.native)
