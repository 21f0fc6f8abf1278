"""Grades: one row says which grade an annotator gave an item; larger is better."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import DataError
from crowdrank.judgments.labels import Codes, Items, Labels, encode_annotators, encode_items
from crowdrank.judgments.numbers import freeze, numbers

if TYPE_CHECKING:
    from crowdrank.judgments.comparisons import Comparisons
    from crowdrank.judgments.rankings import Rankings


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratings:
    """Grades as columns of codes. Build one with `Ratings.of` or `crowdrank.read`."""

    items: Items
    item: Codes
    grade: npt.NDArray[np.float64]
    annotators: Labels = field(default_factory=lambda: np.array([], dtype=object))
    annotator: Codes | None = None
    native: str = "polars"

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        return f"Ratings({len(self):,} grades, {len(self.items):,} items, {len(self.annotators):,} annotators)"

    @classmethod
    def of(cls, item: Any, grade: Any, *, annotator: Any = None, query: Any = None, native: str = "polars") -> Ratings:
        """From columns of labels and grades.

        >>> Ratings.of(item=["a", "b"], grade=[4, 2], annotator=["ann", "ann"])
        Ratings(2 grades, 2 items, 1 annotators)
        """
        items, (codes,) = encode_items([item], ["item"], query)
        grades = numbers(grade, "grade", len(codes))
        labels, who = encode_annotators(annotator)
        return cls(items=items, item=codes, grade=grades, annotators=labels, annotator=who, native=native)

    def to_comparisons(self, ties: Literal["drop", "keep"] = "drop") -> Comparisons:
        """Every two items one annotator graded in one query (CrowdAgg eq. 5: equal grades say nothing)."""
        from crowdrank.judgments.conversions import ratings_to_comparisons

        self._need_annotators()
        return ratings_to_comparisons(self, ties)

    def to_rankings(self) -> Rankings:
        """Each annotator's items per query by grade, equal grades tied."""
        from crowdrank.judgments.conversions import ratings_to_rankings

        self._need_annotators()
        return ratings_to_rankings(self)

    def _need_annotators(self) -> None:
        if self.annotator is None:
            raise DataError("Ratings without annotators cannot be compared with each other: who gave which grade?")

    def to_frame(self) -> pl.DataFrame:
        """The canonical columns, labels in place of codes."""
        columns: dict[str, list[str]] = {}
        if self.items.has_queries:
            columns["query"] = self.items.queries[self.items.query[self.item]].tolist()
        if self.annotator is not None:
            columns["annotator"] = self.annotators[self.annotator].tolist()
        columns["item"] = self.items.labels[self.item].tolist()
        return pl.DataFrame(columns).with_columns(pl.Series("grade", self.grade))
