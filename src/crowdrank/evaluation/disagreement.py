"""Who disagrees with whom: annotators who answered about the same two items, and answered otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import DataError
from crowdrank.evaluation.annotator_tests import adjusted, wilson


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement:
    """Annotators against annotators, those who judged most first."""

    annotators: ObjectArray
    shared: IntArray
    """Pairs of items that both decided; who answered a pair several times counts once, by the majority."""
    opposite: IntArray
    """… of which they decided otherwise."""

    def __repr__(self) -> str:
        return f"<Disagreement among {len(self.annotators):,} annotators>"

    @cached_property
    def share(self) -> FloatArray:
        """Opposite answers among the shared; nan where nothing is shared, and on the diagonal."""
        found: FloatArray = np.full(self.shared.shape, np.nan)
        np.divide(self.opposite, self.shared, out=found, where=self.shared > 0)
        np.fill_diagonal(found, np.nan)
        return found

    def frame(self, fewest: int = 5) -> pl.DataFrame:
        """A row for each two who share at least so many pairs; those who surely disagree most come first.

        `p` is the chance that two who agree as often as not disagree so often, adjusted for how many were looked at.
        """
        from scipy.special import bdtrc

        first, second = np.nonzero(np.triu(self.shared >= fewest, 1))
        shared, opposite = self.shared[first, second], self.opposite[first, second]
        low, high = wilson(opposite, shared)
        columns = {
            "annotator": self.annotators[first].tolist(),
            "other": self.annotators[second].tolist(),
            "shared": shared,
            "opposite": opposite,
            "share": self.share[first, second],
            "low": low,
            "high": high,
            "p": adjusted(np.where(opposite > 0, bdtrc(np.maximum(opposite - 1, 0), shared, 0.5), 1.0)),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "other": pl.String})
        return frame.sort("low", "share", "annotator", "other", descending=[True, True, False, False])


def disagreement(comparisons: Comparisons, most: int = 300) -> Disagreement:
    """Of the annotators who judged most, at most so many of them.

    >>> votes = Comparisons.of(["a", "a", "b", "b"], ["b", "b", "c", "c"], ["a", "b", "b", "b"],
    ...                        annotator=["ann", "bob", "ann", "bob"])
    >>> found = disagreement(votes)
    >>> found.shared[0, 1], found.opposite[0, 1]
    (np.int64(2), np.int64(1))
    """
    from scipy.sparse import coo_array

    if comparisons.annotator is None:
        raise DataError("Nobody can disagree: these judgments do not say who judged.")
    volume = np.bincount(comparisons.annotator, minlength=len(comparisons.annotators))
    chosen = np.argsort(-volume, kind="stable")[:most]
    seat = np.full(len(volume), -1)
    seat[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero((seat[comparisons.annotator] >= 0) & (comparisons.outcome != 0))
    left, right = comparisons.left[rows], comparisons.right[rows]
    cells, cell = np.unique(pair_cells(len(comparisons.items), left, right), return_inverse=True)
    towards = np.where(left < right, comparisons.outcome[rows], -comparisons.outcome[rows]).astype(np.int64)
    where = (seat[comparisons.annotator[rows]], cell)
    said = coo_array((towards, where), shape=(len(chosen), len(cells))).tocsr()  # repeats are added up
    said.data = np.sign(said.data)
    shared, net = (abs(said) @ abs(said).T).toarray(), (said @ said.T).toarray()
    return Disagreement(comparisons.annotators[chosen], shared, (shared - net) // 2)
