"""Grades: one row says which grade an annotator gave an item; larger is better."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data.columns import check_weight, freeze, numbers
from crowdrank.data.labels import Items, encode_annotators, encode_items
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.rankings import Rankings


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratings:
    """Grades as columns of codes. Build one with `Ratings.of` or `crowdrank.read`."""

    items: Items
    item: Int32Array
    grade: FloatArray
    annotators: ObjectArray = field(default_factory=lambda: np.array([], dtype=object))
    annotator: Int32Array | None = None
    weight: FloatArray | None = None
    native: str = "polars"

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        return f"Ratings({len(self):,} grades, {len(self.items):,} items, {len(self.annotators):,} annotators)"

    @classmethod
    def of(
        cls,
        item: Any,
        grade: Any,
        *,
        annotator: Any = None,
        query: Any = None,
        weight: Any = None,
        native: str = "polars",
    ) -> Ratings:
        """From columns of labels and grades.

        >>> Ratings.of(item=["a", "b"], grade=[4, 2], annotator=["ann", "ann"])
        Ratings(2 grades, 2 items, 1 annotators)
        """
        items, (codes,) = encode_items([item], ["item"], query)
        grades = _check_grades(numbers(grade, "grade", len(codes)))
        labels, who = encode_annotators(annotator)
        return cls(
            items=items,
            item=codes,
            grade=grades,
            annotators=labels,
            annotator=who,
            native=native,
            weight=None if weight is None else check_weight(numbers(weight, "weight", len(codes))),
        )

    @cached_property
    def weights(self) -> FloatArray:
        """One weight a grade, ones where none were given."""
        return np.broadcast_to(1.0, len(self)) if self.weight is None else self.weight

    @cached_property
    def judged_of_item(self) -> IntArray:
        """How many grades each item was given."""
        return np.bincount(self.item, minlength=len(self.items))

    def take(self, rows: AnyArray | slice) -> Ratings:
        """Some of the grades, in the given order; items and annotators keep their codes."""
        return replace(
            self,
            item=self.item[rows],
            grade=self.grade[rows],
            annotator=None if self.annotator is None else self.annotator[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def reweighted(self, weight: FloatArray) -> Ratings:
        """The same grades with other weights; grades of weight zero are left out."""
        changed = replace(self, weight=np.asarray(weight, dtype=np.float64))
        return changed if np.all(weight > 0) else changed.take(np.flatnonzero(weight > 0))

    def swapped(self) -> Ratings:
        """Every grade with its sign turned: what was best is worst."""
        return replace(self, grade=-self.grade)

    def to_comparisons(self, ties: Literal["drop", "keep"] = "drop") -> Comparisons:
        """Every two items one annotator graded in one query (CrowdAgg eq. 5: equal grades say nothing)."""
        from crowdrank.data.conversions import ratings_to_comparisons

        self._need_annotators()
        return ratings_to_comparisons(self, ties)

    def to_rankings(self) -> Rankings:
        """Each annotator's items per query by grade, equal grades tied."""
        from crowdrank.data.conversions import ratings_to_rankings

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
        extra = {"grade": self.grade, "weight": self.weight}
        return pl.DataFrame(columns).with_columns(pl.Series(k, v) for k, v in extra.items() if v is not None)


# Beyond this, squares of grades leave the numbers there are.
_LARGEST = 1e100


def _check_grades(grades: FloatArray) -> FloatArray:
    if (bad := np.flatnonzero(np.abs(grades) > _LARGEST)).size:
        row = int(bad[0])
        raise DataError(f"Row {row + 1}: a grade must lie within ±{_LARGEST:g}, got {grades[row]:g}.")
    return grades
