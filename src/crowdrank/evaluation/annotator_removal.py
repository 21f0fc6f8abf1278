"""How a ranking changes without some of the annotators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.data import Judgments, SideInformation
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.evaluation.metrics import kendall_correlation
from crowdrank.models.base import Model
from crowdrank.results import Ranking
from crowdrank.results.parts import Tabular


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankChanges(Tabular):
    """Rankings of the same items with and without some annotators.

    Parameters
    ----------
    excluded : tuple of str
        The annotators left out.
    n_judgments : int
        Number of judgments left out.
    before, after : Ranking
        The rankings with and without these annotators.
    still_judged : array of bool
        Whether an item is judged by anyone else; without judgments its new rank means nothing.
    converged : bool
        Whether both fits converged.
    """

    excluded: tuple[str, ...]
    n_judgments: int
    before: Ranking
    after: Ranking
    still_judged: BoolArray
    converged: bool

    def __repr__(self) -> str:
        return (
            f"<RankChanges without {len(self.excluded):,} annotators: "
            f"{self.n_moved:,} of {len(self.still_judged):,} items>"
        )

    @property
    def native(self) -> str:  # type: ignore[override]
        """Data frame library of `frame`."""
        return self.before.native

    @property
    def n_moved(self) -> int:
        """Number of items that change their rank."""
        return int(np.count_nonzero((self.before.rank != self.after.rank) & self.still_judged))

    @property
    def correlation(self) -> float:
        """Kendall's tau-b between the two rankings; the mean over queries in which it is defined."""
        blocks = [self.before.items.of_query(code) for code in range(len(self.before.items.queries))]
        values = [kendall_correlation(self.after.scores[block], self.before.scores[block]) for block in blocks]
        defined = [value for value in values if value == value]
        return float(np.mean(defined)) if defined else np.nan

    def to_polars(self) -> pl.DataFrame:
        """Return one row per item in the order of `before`; `moved` counts ranks, positive for up."""
        order, items = self.before.order, self.before.items
        without = pl.Series(np.where(self.still_judged, self.after.rank, 0)[order]).replace(0, None)
        columns: dict[str, Any] = {"query": items.queries[items.query[order]].tolist()} if items.has_queries else {}
        columns |= {
            "item": items.labels[order].tolist(),
            "rank": self.before.rank[order],
            "rank_without": without,
            "score": self.before.scores[order],
            "score_without": self.after.scores[order],
        }
        return pl.DataFrame(columns).with_columns((pl.col("rank") - pl.col("rank_without")).alias("moved"))


def remove_annotators(
    model: Model,
    judgments: Judgments,
    annotators: Iterable[str],
    *,
    side_information: SideInformation | None = None,
) -> RankChanges:
    """Fit a model with and without some annotators.

    Parameters
    ----------
    model : Model
        The model to fit.
    judgments : Judgments
        Judgments with annotators.
    annotators : iterable of str
        Annotators to leave out.
    side_information : SideInformation, optional
        Given to both fits.

    Returns
    -------
    RankChanges
        Both rankings, and how far each item moves.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "b", "a"], ["a", "b", "b"], annotator=["ann", "bob", "bob"])
    >>> remove_annotators(BradleyTerry(), votes, ["bob"]).frame()["moved"].to_list()
    [-1, 1]
    """
    if judgments.annotator is None:
        raise DataError("Cannot leave out annotators: these judgments do not name them.")
    names = tuple(dict.fromkeys(annotators))
    codes = {str(label): code for code, label in enumerate(judgments.annotators)}
    for name in names:
        if name not in codes:
            raise UnknownNameError("annotator", name, codes)
    removed = np.isin(judgments.annotator, [codes[name] for name in names])
    if removed.all():
        raise DataError("Cannot leave out all annotators: no judgments would remain.")
    rest = judgments.take(np.flatnonzero(~removed))
    (before, converged), (after, converged_without) = (
        fit_quietly(model, judgments, side_information),
        fit_quietly(model, rest, side_information),
    )
    return RankChanges(
        excluded=names,
        n_judgments=int(np.count_nonzero(removed)),
        before=before,
        after=after,
        still_judged=rest.n_judgments_per_item > 0,
        converged=converged and converged_without,
    )
