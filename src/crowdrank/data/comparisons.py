"""Pairwise comparisons: which of two items an annotator preferred."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data.chunks import ChunkedTable, ChunkLoader, ColumnStore, write_columns
from crowdrank.data.features import item_features, numbers_or_text
from crowdrank.data.labels import Items, as_series, encode_annotators, encode_items
from crowdrank.data.pair_counts import MAX_CELLS, PairCounts, concat_counts, count_in_ranges, count_pairs
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

# Parts of a split vote may be left out up to this weight.
_LOST_PART = 2e-6


class Comparison(NamedTuple):
    """One answer to one question, as the online models receive it.

    Parameters
    ----------
    left, right : str
        The two items, as they were shown.
    winner : str
        The item that won, "tie", or "both_bad" for a tie of two bad items.
    annotator, query : str, default ""
        Who answered, and in which query; empty if unknown.
    """

    left: str
    right: str
    winner: str
    annotator: str = ""
    query: str = ""


if TYPE_CHECKING:
    from crowdrank.data.rankings import Rankings
    from crowdrank.data.ratings import Ratings

LEFT, TIE, RIGHT = np.int8(1), np.int8(0), np.int8(-1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparisons(JudgmentTable):
    """Pairwise comparisons as columns of integer codes. Build them with `Comparisons.of` or `crowdrank.read`.

    Parameters
    ----------
    items : Items
        The items that were compared.
    left, right : array of int32
        The two items of each comparison, as positions in `items`.
    outcome : array of int8
        1 if left won, -1 if right won, 0 for a tie.
    annotators : array of str
        Names of the annotators; empty if the annotators are unknown.
    annotator : array of int32, optional
        Who answered, as positions in `annotators`. None if the annotators are unknown.
    weight : array of float, optional
        One weight per comparison; None if all weights are 1.
    features : mapping of str to array, optional
        Columns that describe the task as it was shown, by name.
    time : array of float, optional
        When the annotator answered, in seconds since 1970 or by any other clock that runs forward; NaN if unknown.
    duration : array of float, optional
        Seconds that the annotator took; NaN if unknown.
    both_bad : array of bool, optional
        The ties in which the annotator said that both items are bad. None if there are none.
    positions_known : bool, default True
        Whether `left` and `right` are positions on the screen. False if the source names winner and loser only.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame that `to_frame` returns.
    import_report : ImportReport, optional
        How each row of the source was handled.
    storage : ColumnStore, optional
        The files that hold these rows if `crowdrank.scan` made them. The columns are then memory-mapped.

    Examples
    --------
    >>> votes = Comparisons.of(left=["a", "b"], right=["b", "c"], winner=["a", "tie"], annotator=["ann", "bob"])
    >>> votes
    Comparisons(2 judgments, 3 items, 2 annotators)
    >>> votes.to_frame()["winner"].to_list()
    ['a', 'tie']
    """

    left: Int32Array
    right: Int32Array
    outcome: npt.NDArray[np.int8]
    features: Mapping[str, AnyArray] = field(default_factory=lambda: MappingProxyType({}))
    time: FloatArray | None = None
    duration: FloatArray | None = None
    both_bad: BoolArray | None = None
    positions_known: bool = True
    storage: ColumnStore | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.both_bad is not None and not self.both_bad.any():
            object.__setattr__(self, "both_bad", None)

    def _validate(self) -> None:
        optional = {"time": self.time, "duration": self.duration, "both_bad": self.both_bad, **self.features}
        columns = {name: column for name, column in optional.items() if column is not None}
        columns |= {"left": self.left, "right": self.right, "outcome": self.outcome}
        check_lengths({name: len(column) for name, column in columns.items()})
        # Files are checked while they are written, and chunks of them hold codes without the names.
        if self.storage is not None or isinstance(self.items, _UnnamedItems):
            return
        super()._validate()
        check_codes(self.left, "left", len(self.items))
        check_codes(self.right, "right", len(self.items))
        if (same := np.flatnonzero(self.left == self.right)).size:
            row = int(same[0])
            raise DataError(f"Row {row + 1}: {self.items.name(int(self.left[row]))!r} is compared with itself.")
        if self.outcome.size and not (self.outcome.min() >= RIGHT and self.outcome.max() <= LEFT):
            raise DataError(f"outcome must be 1, 0 or -1, got {self.outcome.min()} to {self.outcome.max()}.")
        if self.both_bad is not None:
            self._validate_both_bad(self.both_bad)

    def _validate_both_bad(self, both_bad: BoolArray) -> None:
        if both_bad.dtype != bool:
            raise DataError(f"both_bad must be an array of True and False, got {both_bad.dtype}.")
        if (decided := np.flatnonzero(both_bad & (self.outcome != TIE))).size:
            raise DataError(f"Row {decided[0] + 1}: both_bad is set, but the comparison is not a tie.")

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
        positions_known: bool = True,
        frame_backend: str = "polars",
    ) -> Comparisons:
        """Build comparisons from columns of labels.

        Parameters
        ----------
        left, right : sequence of labels
            The two items of each comparison.
        winner : sequence of labels
            The item that won, "tie", or "both_bad" for a tie of two bad items.
        annotator : sequence of labels, optional
            Who answered.
        query : sequence of labels, optional
            The query of each comparison. The same label in two queries is two items.
        weight : sequence of float, optional
            Positive weights, 1e-9 to 1e9.
        features : mapping of str to sequence, optional
            Columns that describe the task as it was shown.
        time, duration : sequence of float, optional
            When the annotator answered, and in how many seconds.
        positions_known : bool, default True
            Whether left and right are positions on the screen.
        frame_backend : {"polars", "pandas", "pyarrow"}
            The kind of data frame that `to_frame` returns.

        Returns
        -------
        Comparisons

        Raises
        ------
        DataError
            If columns differ in length, a winner is not one of the two items, an item is compared with itself, a
            label is missing, or a number is not finite.

        Examples
        --------
        >>> Comparisons.of(left=["a", "b"], right=["b", "c"], winner=["a", "tie"])
        Comparisons(2 judgments, 3 items)
        """
        given = {"left": left, "right": right, "winner": winner, "annotator": annotator, "query": query}
        check_column_lengths(given)
        left_labels, right_labels = as_series(left, "left"), as_series(right, "right")
        items, (lefts, rights) = encode_items([left_labels, right_labels], ["left", "right"], query)
        outcome, both_bad = _outcomes(left_labels, right_labels, as_series(winner, "winner"))
        annotators, code = encode_annotators(annotator)
        rows = len(lefts)
        return cls(
            items=items,
            left=lefts,
            right=rights,
            outcome=outcome,
            annotators=annotators,
            annotator=code,
            weight=weight_column(weight, rows),
            features={k: _feature(v, k, rows) for k, v in (features or {}).items()},
            time=None if time is None else number_column(time, "time", rows),
            duration=None if duration is None else number_column(duration, "duration", rows),
            both_bad=both_bad,
            positions_known=positions_known,
            frame_backend=frame_backend,
        )

    def chunks(self) -> Iterator[Comparisons]:
        """Iterate over the rows, as many at a time as fit in memory; chunks of files have codes but no names."""
        return iter([self]) if self.storage is None else (load() for load in self._loaders(None))

    def map_chunks(self, build: Callable[[Comparisons], Any]) -> Any:
        """Return `build(self)`; for rows in files, a table that builds its shards when they are needed."""
        return build(self) if self.storage is None else ChunkedTable(self._loaders(build), len(self))

    def _loaders(self, build: Callable[[Comparisons], Any] | None) -> tuple[ChunkLoader, ...]:
        assert self.storage is not None
        from_columns = partial(_build_from_columns, build=build, positions_known=self.positions_known)
        return tuple(ChunkLoader(chunk, from_columns) for chunk in self.storage.chunks)

    @cached_property
    def ties(self) -> int:
        """Number of ties, with those in which both items are bad."""
        return sum(int(np.count_nonzero(chunk.outcome == TIE)) for chunk in self.chunks())

    @cached_property
    def n_both_bad(self) -> int:
        """Number of ties in which the annotator said that both items are bad."""
        if self.both_bad is None:
            return 0
        return sum(0 if chunk.both_bad is None else int(chunk.both_bad.sum()) for chunk in self.chunks())

    @cached_property
    def decided(self) -> Comparisons:
        """The comparisons that are not ties."""
        if not self.ties:
            return self
        if self.storage is None:
            return self.take(np.flatnonzero(self.outcome))
        columns = (stored_columns(chunk.take(np.flatnonzero(chunk.outcome))) for chunk in self.chunks())
        return self.with_storage(write_columns(columns, self.storage.folder))

    def with_storage(self, storage: ColumnStore) -> Comparisons:
        """Return the same items and annotators with the rows that are in files."""
        columns: dict[str, Any] = dict.fromkeys(_ROW_COLUMNS) | storage.load_all()
        return replace(self, **columns, storage=storage)

    @cached_property
    def counts(self) -> PairCounts:
        """How often each item won against each: the sufficient statistic of models without annotators."""
        if self.storage is None:
            return count_pairs(len(self.items), self.left, self.right, self.outcome, self.weight)
        return concat_counts(list(count_in_ranges(len(self.items), self.chunks)))

    def map_count_chunks(self, build: Callable[[PairCounts], Any]) -> Any:
        """Return `build(self.counts)`; for more pairs than fit in memory, a table that builds shards when needed."""
        size = len(self.items)
        if self.storage is None or size**2 <= MAX_CELLS:
            return build(self.counts)
        counts = (counts.columns for counts in count_in_ranges(size, self.chunks))
        store = write_columns(counts, self.storage.folder)
        from_columns = partial(_build_from_counts, build=build, size=size)
        return ChunkedTable(tuple(ChunkLoader(chunk, from_columns) for chunk in store.chunks), store.rows)

    @cached_property
    def _weights_are_whole(self) -> bool:
        """Also if the rows of an annotator about two items add up to whole comparisons: the parts of split votes."""
        if self.weight is None or np.all(self.weight == np.rint(self.weight)):
            return True
        if self.storage is not None:
            return False
        who = np.zeros(len(self), np.int64) if self.annotator is None else self.annotator.astype(np.int64)
        pair = self.left.astype(np.int64) * len(self.items) + self.right
        _, group = np.unique(np.stack((pair, who)), axis=1, return_inverse=True)
        total, rows = np.bincount(group.ravel(), self.weight), np.bincount(group.ravel())
        return bool(np.all(np.abs(total - np.rint(total)) <= _LOST_PART * rows))

    def _sum_per_item(self, values: FloatArray) -> FloatArray:
        total, start = np.zeros(len(self.items)), 0
        for chunk in self.chunks():
            given = values[start : start + len(chunk)]
            for side in (chunk.left, chunk.right):
                total += np.bincount(side, given, len(total))
            start += len(chunk)
        return total

    @cached_property
    def n_judgments_per_annotator(self) -> IntArray:
        """Number of comparisons by each annotator."""
        n = len(self.annotators)
        given = (chunk.annotator for chunk in self.chunks())
        return sum((np.bincount(who, minlength=n) for who in given if who is not None), np.zeros(n, np.int64))

    def take(self, rows: AnyArray | slice) -> Comparisons:
        """Return some of the rows, in the given order; items and annotators keep their codes."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in _ROW_COLUMNS}
        chosen: dict[str, Any] = {name: None if c is None else c[rows] for name, c in columns.items()}
        return replace(self, **chosen, features={k: v[rows] for k, v in self.features.items()}, storage=None)

    def reweighted(self, weight: FloatArray) -> Comparisons:
        """Return the same rows with other weights, without those of weight zero."""
        in_memory = self if self.storage is None else replace(self, storage=None)
        return super(Comparisons, in_memory).reweighted(weight)

    def with_outcomes_reversed(self) -> Comparisons:
        """Return the same comparisons with winner and loser exchanged."""
        return replace(self, outcome=-self.outcome, storage=None)

    def with_item_features(self, columns: Mapping[str, Any]) -> Comparisons:
        """Return the same comparisons with features of the items.

        Parameters
        ----------
        columns : mapping of str to sequence
            One value per item, in the order of `items`. A number becomes the feature left minus right. A text becomes
            one feature per category, (left has it) − (right has it); of two categories only the first, because the
            second is its negative.

        Examples
        --------
        >>> votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
        >>> votes = votes.with_item_features({"length": [3, 5, 9], "style": ["bold", "bold", "plain"]})
        >>> {name: column.tolist() for name, column in votes.features.items()}
        {'length': [-2.0, -4.0], 'style=bold': [0.0, 1.0]}
        """
        fresh = item_features(self.items, self.left, self.right, columns)
        if taken := fresh.keys() & {"position", *self.features}:
            raise DataError(f"There is already a feature {min(taken)!r}.", remedy="Rename the column of the items.")
        return replace(self, features={**self.features, **fresh}, storage=None)

    def sorted_by_time(self) -> Comparisons:
        """Return the rows in the order in which they were answered; unchanged if no times are known."""
        return self if self.time is None else self.take(np.argsort(self.time, kind="stable"))

    def to_rankings(self) -> Rankings:
        """Convert to one list per annotator and query: items by wins minus losses, equal ones tied.

        Notes
        -----
        Equation 7 of Niu et al. (2015), CrowdAgg.
        """
        from crowdrank.data.conversions import comparisons_to_rankings

        return comparisons_to_rankings(self)

    def to_ratings(self) -> Ratings:
        """Convert every comparison to two grades: 1 for the winner and 0 for the loser, ½ each for a tie."""
        from crowdrank.data.conversions import comparisons_to_ratings

        return comparisons_to_ratings(self)

    def to_polars(self) -> pl.DataFrame:
        """Return one row per comparison, with labels in place of codes."""
        labels = self.items.labels
        winner_code = np.where(self.outcome == LEFT, self.left, self.right)
        columns = {"left": labels[self.left], "right": labels[self.right]}
        columns["winner"] = np.where(self.outcome == TIE, "tie", labels[winner_code])
        if self.both_bad is not None:
            columns["winner"][self.both_bad] = "both_bad"
        frame = pl.DataFrame(
            self._label_columns(self.left, self.annotator) | {k: text_series(v) for k, v in columns.items()}
        )
        extra = {"weight": self.weight, "time": self.time, "duration": self.duration, **self.features}
        return frame.with_columns(pl.Series(k, v) for k, v in extra.items() if v is not None)


class _UnnamedItems(Items):
    """Items of a chunk, which holds codes only."""


_ROW_COLUMNS = ("left", "right", "outcome", "annotator", "weight", "time", "duration", "both_bad")
_STORED_COLUMNS = ("left", "right", "outcome", "annotator", "weight", "both_bad")
_UNNAMED = _UnnamedItems.of([])
_BOTH_BAD, _UNKNOWN_WINNER = 8, 9


def _outcomes(left: pl.Series, right: pl.Series, winner: pl.Series) -> tuple[npt.NDArray[np.int8], BoolArray]:
    """Return the outcomes, and which of the ties are of two bad items."""
    won_left = pl.when(winner == left).then(int(LEFT))
    by_name = won_left.when(winner == right).then(int(RIGHT)).when(winner == "tie").then(int(TIE))
    by_name = by_name.when(winner == "both_bad").then(_BOTH_BAD)
    outcome = pl.select(by_name.otherwise(_UNKNOWN_WINNER).cast(pl.Int8)).to_series().to_numpy()
    if (bad := np.flatnonzero(outcome == _UNKNOWN_WINNER)).size:
        row = int(bad[0])
        raise DataError(
            f"Row {row + 1}: winner must be {left[row]!r}, {right[row]!r}, 'tie' or 'both_bad', got {winner[row]!r}."
        )
    both_bad = outcome == _BOTH_BAD
    return np.where(both_bad, TIE, outcome), both_bad


def stored_columns(comparisons: Comparisons) -> dict[str, AnyArray]:
    """Return the columns that are kept in files."""
    found = {name: getattr(comparisons, name) for name in _STORED_COLUMNS}
    return {name: column for name, column in found.items() if column is not None}


def _build_from_columns(
    columns: Mapping[str, Any], start: int, build: Callable[[Comparisons], Any] | None, positions_known: bool
) -> Any:
    chunk = Comparisons(items=_UNNAMED, **columns, positions_known=positions_known)
    return chunk if build is None else build(chunk)._replace(start=start)


def _build_from_counts(columns: Mapping[str, Any], start: int, build: Callable[[PairCounts], Any], size: int) -> Any:
    return build(PairCounts(size, **columns))._replace(start=start)


def _feature(values: Any, name: str, rows: int) -> AnyArray:
    check_column_lengths({"judgments": range(rows), f"feature {name!r}": values})
    column = np.array(values)
    if column.dtype.kind in "UO":  # convert the values themselves: next to text, numpy turns NaN into "nan"
        column = numbers_or_text(np.array(values, dtype=object))
    if column.ndim != 1:
        raise DataError(f"Feature {name!r} must be one column, got an array of shape {column.shape}.")
    return column
