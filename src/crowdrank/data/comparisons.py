"""One answer on its own, as it arrives: the row that a table of comparisons is made of.

Which of two: one row says what an annotator answered when shown `left` beside `right`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data.chunks import InParts, Recipe, Storage, store
from crowdrank.data.columns import check_weight, freeze, numbers
from crowdrank.data.features import item_features, numbers_or_text
from crowdrank.data.labels import Items, as_series, encode_annotators, encode_items
from crowdrank.data.pair_counts import MOST_CELLS, PairCounts, count_in_ranges, count_pairs, joined_counts
from crowdrank.errors import DataError


class Comparison(NamedTuple):
    """What one annotator said of two items."""

    left: str
    right: str
    winner: str
    """The item that won, or "tie"."""
    annotator: str = ""
    query: str = ""


if TYPE_CHECKING:
    from crowdrank.data.rankings import Rankings
    from crowdrank.data.ratings import Ratings

LEFT, TIE, RIGHT = np.int8(1), np.int8(0), np.int8(-1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparisons:
    """Pairwise answers as columns of codes. Build one with `Comparisons.of` or `crowdrank.read`."""

    items: Items
    left: Int32Array
    right: Int32Array
    outcome: npt.NDArray[np.int8]
    """1 where left won, -1 where right won, 0 for a tie."""
    annotators: ObjectArray = field(default_factory=lambda: np.array([], dtype=object))
    annotator: Int32Array | None = None
    """None where nobody wrote down who judged."""
    weight: FloatArray | None = None
    features: Mapping[str, AnyArray] = field(default_factory=lambda: MappingProxyType({}))
    """Columns that describe the task as it was shown, by name."""
    time: FloatArray | None = None
    """When it was answered, in seconds since 1970 (or any clock that runs forward)."""
    duration: FloatArray | None = None
    """Seconds the annotator took."""
    sided: bool = True
    """False where the file names winner and loser only, so the screen positions are unknown."""
    native: str = "polars"
    """The kind of data frame these came in, and tables go out as."""
    stored: Storage | None = None
    """The files that hold these rows, where `crowdrank.scan` made them: then columns are mapped, not in memory."""

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} judgments", f"{len(self.items):,} items"]
        if self.items.has_queries:
            parts.append(f"{len(self.items.queries):,} queries")
        if self.annotator is not None:
            parts.append(f"{len(self.annotators):,} annotators")
        return f"Comparisons({', '.join(parts)})"

    @classmethod
    def of(
        cls,
        left: Any,
        right: Any,
        winner: Any,
        *,
        annotator: Any = None,
        query: Any = None,
        weight: Any = None,
        features: Mapping[str, Any] | None = None,
        time: Any = None,
        duration: Any = None,
        sided: bool = True,
        native: str = "polars",
    ) -> Comparisons:
        """From columns of labels; `winner` holds the item that won, or "tie".

        >>> votes = Comparisons.of(left=["a", "b"], right=["b", "c"], winner=["a", "tie"])
        >>> votes
        Comparisons(2 judgments, 3 items)
        """
        items, (lefts, rights) = encode_items([left, right], ["left", "right"], query)
        left_labels, right_labels = as_series(left, "left"), as_series(right, "right")
        won = as_series(winner, "winner")
        outcome = (
            pl.select(
                pl.when(won == left_labels)
                .then(1)
                .when(won == right_labels)
                .then(-1)
                .when(won == "tie")
                .then(0)
                .otherwise(9)
                .cast(pl.Int8)
            )
            .to_series()
            .to_numpy()
        )
        if (bad := np.flatnonzero(outcome == 9)).size:
            row = int(bad[0])
            raise DataError(
                f"Row {row + 1}: winner must be {left_labels[row]!r}, {right_labels[row]!r} or 'tie', got {won[row]!r}."
            )
        if (same := np.flatnonzero(lefts == rights)).size:
            row = int(same[0])
            raise DataError(f"Row {row + 1}: {left_labels[row]!r} is compared with itself.")
        annotators, code = encode_annotators(annotator)
        return cls(
            items=items,
            left=lefts,
            right=rights,
            outcome=outcome,
            annotators=annotators,
            annotator=code,
            weight=None if weight is None else check_weight(numbers(weight, "weight", len(lefts))),
            features={k: _feature(v, k, len(lefts)) for k, v in (features or {}).items()},
            time=None if time is None else numbers(time, "time", len(lefts)),
            duration=None if duration is None else numbers(duration, "duration", len(lefts)),
            sided=sided,
            native=native,
        )

    @cached_property
    def weights(self) -> FloatArray:
        """One weight a row, ones where none were given."""
        return np.broadcast_to(1.0, len(self)) if self.weight is None else self.weight

    def parts(self) -> Iterator[Comparisons]:
        """The same rows, no more at a time than fit in memory; in codes alone where they come from files."""
        return iter([self]) if self.stored is None else (recipe() for recipe in self._recipes(None))

    def rows_as(self, make: Callable[[Comparisons], Any]) -> Any:
        """What `make` makes of the rows; where they are in files, a table that is made a part at a time."""
        return make(self) if self.stored is None else InParts(self._recipes(make), len(self))

    def _recipes(self, make: Callable[[Comparisons], Any] | None) -> tuple[Recipe, ...]:
        assert self.stored is not None
        made = partial(_made_of_columns, make=make, sided=self.sided)
        return tuple(Recipe(part, made) for part in self.stored.parts)

    @cached_property
    def ties(self) -> int:
        return sum(int(np.count_nonzero(part.outcome == TIE)) for part in self.parts())

    @cached_property
    def decided(self) -> Comparisons:
        """The rows that are no ties."""
        if not self.ties:
            return self
        if self.stored is None:
            return self.take(np.flatnonzero(self.outcome))
        pieces = (columns_of(part.take(np.flatnonzero(part.outcome))) for part in self.parts())
        return self.of_storage(store(pieces, self.stored.folder))

    def of_storage(self, stored: Storage) -> Comparisons:
        """The same items and annotators with the rows that are in files."""
        columns: dict[str, Any] = dict.fromkeys(_ROW_COLUMNS) | stored.whole()
        return replace(self, **columns, stored=stored)

    @cached_property
    def counts(self) -> PairCounts:
        """How often each won against each: all that models blind to annotators need."""
        if self.stored is None:
            return count_pairs(len(self.items), self.left, self.right, self.outcome, self.weight)
        return joined_counts(list(count_in_ranges(len(self.items), self.parts)))

    def counts_as(self, make: Callable[[PairCounts], Any]) -> Any:
        """What `make` makes of the counts; where there are too many pairs for memory, a table made a part at a time."""
        size = len(self.items)
        if self.stored is None or size**2 <= MOST_CELLS:
            return make(self.counts)
        kept = store((counts.columns for counts in count_in_ranges(size, self.parts)), self.stored.folder)
        made = partial(_made_of_counts, make=make, size=size)
        return InParts(tuple(Recipe(part, made) for part in kept.parts), kept.rows)

    @cached_property
    def judged_of_item(self) -> IntArray:
        """How many rows each item appears in."""
        n = len(self.items)
        return sum(
            (np.bincount(side, minlength=n) for part in self.parts() for side in (part.left, part.right)),
            np.zeros(n, np.int64),
        )

    @cached_property
    def judged_of_annotator(self) -> IntArray:
        """How many rows each annotator gave."""
        n = len(self.annotators)
        given = (part.annotator for part in self.parts())
        return sum((np.bincount(who, minlength=n) for who in given if who is not None), np.zeros(n, np.int64))

    def take(self, rows: AnyArray | slice) -> Comparisons:
        """Some of the rows, in the given order; items and annotators keep their codes."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in _ROW_COLUMNS}
        chosen: dict[str, Any] = {name: None if c is None else c[rows] for name, c in columns.items()}
        return replace(self, **chosen, features={k: v[rows] for k, v in self.features.items()}, stored=None)

    def reweighted(self, weight: FloatArray) -> Comparisons:
        """The same rows with other weights; rows of weight zero are left out."""
        changed = replace(self, weight=np.asarray(weight, dtype=np.float64), stored=None)
        return changed if np.all(weight > 0) else changed.take(np.flatnonzero(weight > 0))

    def swapped(self) -> Comparisons:
        """Every answer turned round: who won, lost."""
        return replace(self, outcome=-self.outcome, stored=None)

    def with_item_features(self, columns: Mapping[str, Any]) -> Comparisons:
        """The same judgments with columns about the items, one value for each of `items`, as features of the task.

        A number becomes left less right. A text becomes one feature a category, (left is of it) − (right is of it);
        of two categories the first alone, which is the opposite of the second.

        >>> votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
        >>> told = votes.with_item_features({"length": [3, 5, 9], "style": ["bold", "bold", "plain"]})
        >>> {name: column.tolist() for name, column in told.features.items()}
        {'length': [-2.0, -4.0], 'style=bold': [0.0, 1.0]}
        """
        fresh = item_features(self.items, self.left, self.right, columns)
        if taken := fresh.keys() & {"position", *self.features}:
            raise DataError(f"There is a feature {min(taken)!r} already: give the column about items another name.")
        return replace(self, features={**self.features, **fresh}, stored=None)

    def in_order_of_time(self) -> Comparisons:
        """Rows as they were answered; as they stand where no times were recorded."""
        return self if self.time is None else self.take(np.argsort(self.time, kind="stable"))

    def to_rankings(self) -> Rankings:
        """Each annotator's own list per query: items by wins minus losses (CrowdAgg eq. 7), equal ones tied."""
        from crowdrank.data.conversions import comparisons_to_rankings

        return comparisons_to_rankings(self)

    def to_ratings(self) -> Ratings:
        """Every comparison as two grades: 1 for the winner and 0 for the loser, ½ each for a tie."""
        from crowdrank.data.conversions import comparisons_to_ratings

        return comparisons_to_ratings(self)

    def to_frame(self) -> pl.DataFrame:
        """The canonical columns, labels in place of codes."""
        items, labels = self.items, self.items.labels
        won = np.where(self.outcome == LEFT, self.left, self.right)
        winner = np.where(self.outcome == TIE, "tie", labels[won])
        columns: dict[str, Any] = {}
        if items.has_queries:
            columns["query"] = items.queries[items.query[self.left]]
        if self.annotator is not None:
            columns["annotator"] = self.annotators[self.annotator]
        columns |= {"left": labels[self.left], "right": labels[self.right], "winner": winner}
        frame = pl.DataFrame({k: pl.Series(v.tolist(), dtype=pl.String) for k, v in columns.items()})
        extra = {"weight": self.weight, "time": self.time, "duration": self.duration, **self.features}
        return frame.with_columns(pl.Series(k, v) for k, v in extra.items() if v is not None)


_ROW_COLUMNS = ("left", "right", "outcome", "annotator", "weight", "time", "duration")
_UNNAMED = Items.plain([])


def columns_of(comparisons: Comparisons) -> dict[str, AnyArray]:
    """What is stored of each row."""
    found = {name: getattr(comparisons, name) for name in ("left", "right", "outcome", "annotator", "weight")}
    return {name: column for name, column in found.items() if column is not None}


def _made_of_columns(
    columns: Mapping[str, Any], start: int, make: Callable[[Comparisons], Any] | None, sided: bool
) -> Any:
    part = Comparisons(items=_UNNAMED, **columns, sided=sided)
    return part if make is None else make(part)._replace(start=start)


def _made_of_counts(columns: Mapping[str, Any], start: int, make: Callable[[PairCounts], Any], size: int) -> Any:
    return make(PairCounts(size, **columns))._replace(start=start)


def _feature(values: Any, name: str, rows: int) -> AnyArray:
    column = np.array(values)
    if column.dtype.kind in "UO":  # from the values once more: beside text numpy makes a text of NaN
        column = numbers_or_text(np.array(values, dtype=object))
    if len(column) != rows:
        raise DataError(f"Feature {name!r}: {len(column)} values for {rows} judgments.")
    return column
