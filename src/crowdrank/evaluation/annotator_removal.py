"""A ranking without some of the annotators, beside the one with all: who moves, and how far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray
from crowdrank.data import Judgments
from crowdrank.errors import DataError, UnknownNameError
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.evaluation.rank_correlation import kendall_correlation
from crowdrank.results import Ranking


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Moves:
    """Both rankings, of the same items."""

    excluded: tuple[str, ...]
    judgments: int
    """How many were left out."""
    before: Ranking
    after: Ranking
    kept: BoolArray
    """Whether anything is left that was said of an item; where nothing is, it has no rank of its own."""
    converged: bool

    def __repr__(self) -> str:
        return f"<Moves without {len(self.excluded):,} annotators: {self.moved:,} of {len(self.kept):,} items>"

    @property
    def moved(self) -> int:
        """How many items change their rank."""
        return int(np.count_nonzero((self.before.rank != self.after.rank) & self.kept))

    @property
    def correlation(self) -> float:
        """Kendall's, between the two orders; the mean over queries in which it is defined."""
        blocks = [self.before.items.of_query(code) for code in range(len(self.before.items.queries))]
        found = [kendall_correlation(self.after.scores[block], self.before.scores[block]) for block in blocks]
        told = [value for value in found if value == value]
        return float(np.mean(told)) if told else np.nan

    def frame(self) -> pl.DataFrame:
        """One row an item, in the order with everyone: rank, rank without them, places moved (up is positive)."""
        order, items = self.before.order, self.before.items
        without = pl.Series(np.where(self.kept, self.after.rank, 0)[order]).replace(0, None)
        columns: dict[str, Any] = {"query": items.queries[items.query[order]].tolist()} if items.has_queries else {}
        columns |= {
            "item": items.labels[order].tolist(),
            "rank": self.before.rank[order],
            "rank_without": without,
            "score": self.before.scores[order],
            "score_without": self.after.scores[order],
        }
        return pl.DataFrame(columns).with_columns((pl.col("rank") - pl.col("rank_without")).alias("moved"))


def leave_out(model: Any, judgments: Judgments, annotators: Iterable[str]) -> Moves:
    """Fit the model to all judgments, and to those of everyone else.

    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "b", "a"], ["a", "b", "b"], annotator=["ann", "bob", "bob"])
    >>> leave_out(BradleyTerry(), votes, ["bob"]).frame()["moved"].to_list()
    [-1, 1]
    """
    if judgments.annotator is None:
        raise DataError("Nobody can be left out: these judgments do not say who judged.")
    names = tuple(dict.fromkeys(annotators))
    known = {str(label): code for code, label in enumerate(judgments.annotators)}
    for name in names:
        if name not in known:
            raise UnknownNameError("annotator", name, known)
    out = np.isin(judgments.annotator, [known[name] for name in names])
    if out.all():
        raise DataError("There is nobody left: all who judged are left out.")
    rest = judgments.take(np.flatnonzero(~out))
    (before, well), (after, also) = fit_quietly(model, judgments), fit_quietly(model, rest)
    return Moves(
        excluded=names,
        judgments=int(np.count_nonzero(out)),
        before=before,
        after=after,
        kept=rest.n_judgments_per_item > 0,
        converged=well and also,
    )
