"""Ratings: which grade an annotator gave an item. Larger is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array
from crowdrank.data.labels import encode_annotators, encode_items
from crowdrank.data.tables import (
    JudgmentTable,
    check_codes,
    check_column_lengths,
    check_lengths,
    number_column,
    text_series,
    weight_column,
)
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons
    from crowdrank.data.rankings import Rankings

# The squares of larger grades overflow.
_MAX_GRADE = 1e100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratings(JudgmentTable):
    """Grades as columns of integer codes and numbers. Build them with `Ratings.of` or `crowdrank.read`.

    Parameters
    ----------
    items : Items
        The items that were graded.
    item : array of int32
        The item of each grade, as a position in `items`.
    grade : array of float
        The grades; larger is better.
    annotators : array of str
        Names of the annotators; empty if the annotators are unknown.
    annotator : array of int32, optional
        Who gave each grade, as positions in `annotators`. None if the annotators are unknown.
    weight : array of float, optional
        One weight per grade; None if all weights are 1.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame that `to_frame` returns.
    import_report : ImportReport, optional
        How each row of the source was handled.

    Examples
    --------
    >>> grades = Ratings.of(item=["a", "b"], grade=[4, 2], annotator=["ann", "ann"])
    >>> grades.to_comparisons()
    Comparisons(1 judgments, 2 items, 1 annotators)
    """

    item: Int32Array
    grade: FloatArray

    def _validate(self) -> None:
        super()._validate()
        check_lengths({"item": len(self.item), "grade": len(self.grade)})
        check_codes(self.item, "item", len(self.items))
        if (bad := np.flatnonzero(~(np.abs(self.grade) <= _MAX_GRADE))).size:
            row = int(bad[0])
            raise DataError(f"Row {row + 1}: grade must be between ±{_MAX_GRADE:g}, got {self.grade[row]:g}.")

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
        frame_backend: str = "polars",
    ) -> Ratings:
        """Build ratings from columns of labels and grades.

        Parameters
        ----------
        item : sequence of labels
            The item of each grade.
        grade : sequence of float
            The grades; larger is better.
        annotator : sequence of labels, optional
            Who gave each grade.
        query : sequence of labels, optional
            The query of each grade. The same label in two queries is two items.
        weight : sequence of float, optional
            Positive weights, 1e-9 to 1e9.
        frame_backend : {"polars", "pandas", "pyarrow"}
            The kind of data frame that `to_frame` returns.

        Returns
        -------
        Ratings

        Raises
        ------
        DataError
            If columns differ in length, a label is missing, or a grade or weight is not a finite number.

        Examples
        --------
        >>> Ratings.of(item=["a", "b"], grade=[4, 2], annotator=["ann", "ann"])
        Ratings(2 grades, 2 items, 1 annotators)
        """
        check_column_lengths({"item": item, "grade": grade, "annotator": annotator, "query": query})
        items, (codes,) = encode_items([item], ["item"], query)
        annotators, annotator_codes = encode_annotators(annotator)
        return cls(
            items=items,
            item=codes,
            grade=number_column(grade, "grade", len(codes)),
            annotators=annotators,
            annotator=annotator_codes,
            weight=weight_column(weight, len(codes)),
            frame_backend=frame_backend,
        )

    def _sum_per_item(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.item, values, len(self.items)), np.float64)

    def take(self, rows: AnyArray | slice) -> Ratings:
        """Return some of the grades, in the given order; items and annotators keep their codes."""
        return replace(
            self,
            item=self.item[rows],
            grade=self.grade[rows],
            annotator=None if self.annotator is None else self.annotator[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def with_outcomes_reversed(self) -> Ratings:
        """Return the same ratings with all grades negated, so that the best becomes the worst."""
        return replace(self, grade=-self.grade)

    def to_comparisons(self, ties: Literal["drop", "keep"] = "drop") -> Comparisons:
        """Compare every two items that one annotator graded in one query; the better grade wins.

        Parameters
        ----------
        ties : {"drop", "keep"}
            Whether equal grades are left out, or become ties.

        Notes
        -----
        Equation 5 of Niu et al. (2015), CrowdAgg. An item graded twice counts with its mean grade.
        """
        from crowdrank.data.conversions import ratings_to_comparisons

        self._require_annotators("compared")
        return ratings_to_comparisons(self, ties)

    def to_rankings(self) -> Rankings:
        """Convert to one list per annotator and query: items by grade, equal grades tied."""
        from crowdrank.data.conversions import ratings_to_rankings

        self._require_annotators("ordered")
        return ratings_to_rankings(self)

    def _require_annotators(self, purpose: str) -> None:
        if self.annotator is None:
            raise DataError(
                f"Grades of unknown annotators cannot be {purpose}, because annotators differ in strictness.",
                remedy="Give a column of annotators, or use a model that reads ratings.",
            )

    def to_polars(self) -> pl.DataFrame:
        """Return one row per grade, with labels in place of codes."""
        columns = self._label_columns(self.item, self.annotator)
        columns["item"] = text_series(self.items.labels[self.item])
        extra = {"grade": self.grade, "weight": self.weight}
        return pl.DataFrame(columns).with_columns(pl.Series(k, v) for k, v in extra.items() if v is not None)
