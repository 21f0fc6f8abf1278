"""Base class of the tables of judgments: items, annotators, weights, validation, and the import report."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, ObjectArray
from crowdrank.data.labels import Items
from crowdrank.errors import DataError

if TYPE_CHECKING:
    from typing import Self

    from narwhals.typing import IntoDataFrame


# Outside this range, sums of weights lose the contribution of the smallest ones to rounding.
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
FRAME_BACKENDS = ("polars", "pandas", "pyarrow")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgmentTable:
    """Base class of `Comparisons`, `Ratings` and `Rankings`.

    Parameters
    ----------
    items : Items
        The items that were judged; columns of items hold positions in it.
    annotators : array of str
        Names of the annotators; empty if the annotators are unknown.
    annotator : array of int32, optional
        The annotator of each judgment, as a position in `annotators`. None if the annotators are unknown.
    weight : array of float, optional
        One weight per judgment; a judgment of weight 2 counts as two. None if all weights are 1.
    frame_backend : {"polars", "pandas", "pyarrow"}
        The kind of data frame that `to_frame` returns: the kind that the judgments came in.
    import_report : ImportReport, optional
        How each row of the source was handled, if `crowdrank.read` or `crowdrank.scan` made the table.
    """

    items: Items
    annotators: ObjectArray = field(default_factory=lambda: np.array([], dtype=object))
    annotator: Int32Array | None = None
    weight: FloatArray | None = None
    frame_backend: str = "polars"
    import_report: ImportReport | None = None

    def __post_init__(self) -> None:
        freeze(self)
        self._validate()

    def __len__(self) -> int:
        """Return the number of judgments."""
        raise NotImplementedError

    def _validate(self) -> None:
        """Raise an error for columns of unequal length and for codes without a name."""
        if self.frame_backend not in FRAME_BACKENDS:
            raise DataError(f"frame_backend must be one of {', '.join(FRAME_BACKENDS)}, got {self.frame_backend!r}.")
        rows = {f"{len(self):,} judgments": len(self)}
        if self.annotator is not None:
            check_lengths(rows | {"annotator": len(self.annotator)})
            check_codes(self.annotator, "annotator", len(self.annotators))
        if self.weight is not None:
            check_lengths(rows | {"weight": len(self.weight)})
            bad = np.flatnonzero(~(np.isfinite(self.weight) & (self.weight >= 0)))
            if bad.size:
                raise DataError(f"Row {bad[0] + 1}: weight must be a finite number ≥ 0, got {self.weight[bad[0]]}.")

    @cached_property
    def weights(self) -> FloatArray:
        """One weight per judgment; ones if no weights were given."""
        return np.broadcast_to(1.0, len(self)) if self.weight is None else self.weight

    @cached_property
    def n_judgments(self) -> int:
        """Number of judgments: the sum of the weights if they make whole judgments, else the number of rows.

        Weights that count equal judgments make whole judgments, and so do the parts of a vote that was split.
        """
        return round(float(self.weights.sum())) if self._weights_are_whole else len(self)

    @cached_property
    def _weights_are_whole(self) -> bool:
        return self.weight is None or bool(np.all(self.weight == np.rint(self.weight)))

    @cached_property
    def n_judgments_per_item(self) -> IntArray:
        """Number of judgments that mention each item, counted like `n_judgments`."""
        rows = np.rint(self._sum_per_item(np.broadcast_to(1.0, len(self)))).astype(np.int64)
        if self.weight is None or not self._weights_are_whole:
            return rows
        return np.rint(self._sum_per_item(self.weight)).astype(np.int64)

    def _sum_per_item(self, values: FloatArray) -> FloatArray:
        """Sum of one value per judgment over the judgments that mention each item."""
        raise NotImplementedError

    def take(self, rows: AnyArray) -> Self:
        """Return some of the judgments, in the given order; items and annotators keep their codes."""
        raise NotImplementedError

    def reweighted(self, weight: FloatArray) -> Self:
        """Return the same judgments with other weights, without those of weight zero."""
        changed = replace(self, weight=np.asarray(weight, dtype=np.float64))
        return changed if np.all(weight > 0) else changed.take(np.flatnonzero(weight > 0))

    def to_polars(self) -> pl.DataFrame:
        """Return one row per judgment, with labels in place of codes."""
        raise NotImplementedError

    def to_frame(self) -> IntoDataFrame:
        """Return one row per judgment, as the kind of data frame that the judgments came in.

        Returns
        -------
        polars.DataFrame, pandas.DataFrame or pyarrow.Table
            Labels in place of codes, under the column names that `crowdrank.read` knows.
        """
        return as_backend(self.to_polars(), self.frame_backend)

    def _label_columns(self, item: Int32Array, annotator: Int32Array | None) -> dict[str, pl.Series]:
        """Return the columns query and annotator, where they are known."""
        columns = {}
        if self.items.has_queries:
            columns["query"] = text_series(self.items.queries[self.items.query[item]])
        if annotator is not None:
            columns["annotator"] = text_series(self.annotators[annotator])
        return columns


def as_backend(frame: pl.DataFrame, backend: str) -> IntoDataFrame:
    """Convert a polars frame to another kind of data frame."""
    if backend == "polars":
        return frame
    import narwhals

    library = cast("Literal['pandas', 'pyarrow']", backend)
    converted: IntoDataFrame = narwhals.from_dict(frame.to_dict(as_series=False), backend=library).to_native()
    return converted


def text_series(labels: AnyArray) -> pl.Series:
    return pl.Series(labels.tolist(), dtype=pl.String)


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Raise an error that names the columns and their lengths, unless all are equal."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {length:,}" for name, length in lengths.items())
        raise DataError(f"The columns differ in length ({listed}).", remedy="Give one value per judgment.")


def check_column_lengths(columns: Mapping[str, object]) -> None:
    """`check_lengths` for the columns that a caller passed; None stands for a missing column."""
    lengths = {}
    for name, values in columns.items():
        if values is None:
            continue
        if isinstance(values, str | bytes) or not isinstance(values, Sized):
            raise DataError(
                f"{name} must be a column of values, got {values!r}.", remedy="Pass a list, an array or a series."
            )
        try:
            lengths[name] = len(values)
        except TypeError as error:  # len() raises an error for NumPy arrays without dimensions
            raise DataError(f"{name} must be a column of values, got {values!r}.") from error
    check_lengths(lengths)


def check_codes(codes: AnyArray, name: str, size: int) -> None:
    """Raise an error for anything but integers from 0 up to `size`."""
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise DataError(
            f"{name} must be a one-dimensional array of integer codes, got {type(codes).__name__}.",
            remedy="Use the class method `of` to build a table from labels.",
        )
    if codes.size and (codes.min() < 0 or codes.max() >= size):
        row = int(np.flatnonzero((codes < 0) | (codes >= size))[0])
        raise DataError(f"Row {row + 1}: {name} must be a code from 0 to {size - 1}, got {codes[row]}.")


def number_column(values: Any, name: str, rows: int) -> FloatArray:
    """Return a copy of a column of finite numbers, one per row."""
    try:
        column = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers: {error}.") from error
    if column.shape != (rows,):
        raise DataError(f"{name}: {column.size} values for {rows} rows.", remedy="Give one number per judgment.")
    if (bad := np.flatnonzero(~np.isfinite(column))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: {name} must be a finite number, got {column[bad[0]]}.")
    return column


def valid_weights(weight: FloatArray) -> BoolArray:
    return (weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT)


def weight_column(values: Any, rows: int) -> FloatArray | None:
    """Return a column of positive weights; None if there are none."""
    if values is None:
        return None
    weight = number_column(values, "weight", rows)
    if (bad := np.flatnonzero(~valid_weights(weight))).size:
        got = weight[bad[0]]
        expected = "positive" if got <= 0 else f"between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}"
        raise DataError(f"Row {int(bad[0]) + 1}: weight must be {expected}, got {got}.")
    return weight


def freeze(table: Any) -> None:
    """Make every array of a frozen dataclass read-only, and every mapping a read-only view."""
    for entry in fields(table):
        value = getattr(table, entry.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(table, entry.name, _read_only(value))
        elif isinstance(value, Mapping):
            frozen = {k: _read_only(v) for k, v in value.items()}
            object.__setattr__(table, entry.name, MappingProxyType(frozen))


def _read_only(array: AnyArray) -> AnyArray:
    view = array.view()
    view.flags.writeable = False
    return view


MAX_LISTED = 100
_MAX_SHOWN = 10


class MalformedRow(NamedTuple):
    """A row that could not be used.

    Parameters
    ----------
    line : int
        The line of the file on which the row begins; for data frames and Parquet, the row counted from 1. 0 if unknown.
    column : str
        The column at fault, or "" if it is the whole row.
    reason : str
        What is wrong.
    """

    line: int
    column: str
    reason: str

    def sentence(self, unit: str) -> str:
        """Return one sentence with the place and the reason; `unit` is "line" or "row"."""
        where = f", column {self.column!r}" if self.column else ""
        place = f"{unit.capitalize()} {self.line:,}" if self.line else "A row"
        return f"{place}{where}: {self.reason}."


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """How every row of a source was handled: kept, skipped, set aside, or malformed.

    Parameters
    ----------
    source : str
        Name of the file, or "the data frame".
    kind : str
        "comparisons", "ratings" or "rankings".
    format : str
        The format the source was read as.
    columns : mapping of str to str
        The column of each role.
    rows_read, kept : int
        Number of rows, without blank lines, and how many of them became judgments.
    ties : int
        How many of the kept judgments are ties.
    both_bad : int
        How many of the ties say that both items are bad.
    skips : int
        Rows in which the annotator declined to answer.
    duplicates : int
        Exact repeats (same annotator, query, items and answer); they are kept.
    set_aside : mapping of str to int
        Rows that the platform itself marks as not being judgments, by reason: gold questions, rejected workers.
    malformed_count : int
        Rows that could not be used.
    self_comparisons : int
        Malformed rows that compare an item with itself.
    unknown_items : int
        Malformed rows whose winner is not one of the two items.
    broken_lines : int
        Malformed rows that could not be parsed.
    malformed : tuple of MalformedRow
        The first hundred malformed rows.
    unit : {"line", "row"}
        Whether malformed rows are numbered by line or by row.
    notes : tuple of str
        Remarks on how columns were understood.
    entries : int
        Number of rows of the source, if each holds several judgments; then `rows_read` counts these. Else 0.
    """

    source: str
    kind: str
    format: str
    columns: Mapping[str, str]
    rows_read: int
    kept: int
    ties: int = 0
    both_bad: int = 0
    skips: int = 0
    duplicates: int = 0
    set_aside: Mapping[str, int] = field(default_factory=dict)
    malformed_count: int = 0
    self_comparisons: int = 0
    unknown_items: int = 0
    broken_lines: int = 0
    malformed: tuple[MalformedRow, ...] = ()
    unit: str = "line"
    notes: tuple[str, ...] = ()
    entries: int = 0

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        roles = ", ".join(role if role == name else f"{name} as {role}" for role, name in self.columns.items())
        read_as = "" if self.format == "tidy" else f", read as {self.format}"
        found = [f"{self.source}{read_as}: {self.kind} from the columns {roles}.", self._counts()]
        if self.duplicates:
            found.append(f"{_count(self.duplicates, 'exact repeat')} of an annotator's own answer kept.")
        # A row of several judgments may be wrong in the same way for each of them.
        found += dict.fromkeys(m.sentence(self.unit) for m in self.malformed[:_MAX_SHOWN])
        if (more := self.malformed_count - _MAX_SHOWN) > 0:
            found.append(f"… and {_count(more, 'more row')} left out.")
        return found + list(self.notes)

    def dropped_summary(self) -> str:
        """Return one sentence on the malformed rows; empty if there are none."""
        if not self.malformed_count:
            return ""
        first = self.malformed[0]
        return (
            f"{self.source}: {self.malformed_count:,} of {_count(self.rows_read, 'row')} could not be used and "
            f"{'was' if self.malformed_count == 1 else 'were'} left out. The first: {first.sentence(self.unit)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {
            "columns": dict(self.columns),
            "set_aside": dict(self.set_aside),
            "malformed": [m._asdict() for m in self.malformed],
            "notes": list(self.notes),
        }

    def _counts(self) -> str:
        both_bad = f", of which {self.both_bad:,} both bad" if self.both_bad else ""
        ties = f" ({_count(self.ties, 'tie')}{both_bad})" if self.ties else ""
        rows = f"{_count(self.rows_read, 'row')} read"
        if self.entries:
            rows = f"{_count(self.entries, 'row')} read, which hold {_count(self.rows_read, 'judgment')}"
        parts = [rows, f"{self.kept:,} kept{ties}"]
        if self.skips:
            parts.append(f"{self.skips:,} skipped by the annotator")
        parts += [f"{count:,} set aside ({reason})" for reason, count in self.set_aside.items()]
        if self.malformed_count:
            parts.append(f"{self.malformed_count:,} left out{self._faults()}")
        return ", ".join(parts) + "."

    def _faults(self) -> str:
        """Return the usual causes with their counts."""
        counts = (
            (self.self_comparisons, "compare an item with itself"),
            (self.unknown_items, "name a winner that is not one of the two items"),
            (self.broken_lines, "cannot be parsed"),
        )
        causes = ", ".join(f"{count:,} {what}" for count, what in counts if count)
        return f" ({causes})" if causes else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
