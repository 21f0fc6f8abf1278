"""Validate rows: parse the cells of each role, and record which rows cannot be used and why.

A cell that cannot be read is parsed as null or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, BoolArray, FloatArray
from crowdrank.data.tables import MAX_LISTED, MAX_WEIGHT, MIN_WEIGHT, MalformedRow, valid_weights
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import RoleMatch, columns_error, load_expressions
from crowdrank.io.source_table import SourceTable, text_series

_DATES = (
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M%#z",
    "%Y-%m-%d",
    "%Y-%m-%dT%I:%M:%S %p",
    "%Y-%m-%dT%I:%M %p",
)
# Times since 1970 in milli-, micro- or nanoseconds exceed these from 1973 on; in seconds, only from the year 5138.
_CLOCK_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def parse_labels(column: pl.Series, strip_spaces: bool) -> pl.Series:
    """Return text, null where a cell is empty. Integers that became floats next to missing cells lose their ".0"."""
    text = _text(column)
    if strip_spaces:
        text = text.str.strip_chars()
    empty = text.str.len_bytes() == 0
    return text.set(empty, None) if empty.any() else text


def _text(column: pl.Series) -> pl.Series:
    # Renamed, because polars reads a series name such as "*" or "^…$" as a pattern.
    name, column = column.name, column.alias("cell")
    if column.dtype == pl.Object:
        column = text_series("cell", column.to_list())
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise FormatError(f"column {name!r} holds lists or objects; it must hold one value per row.")
    try:
        if kind.is_float() or kind.is_decimal():
            return _number_text(column.cast(pl.Float64))
        return column.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"column {name!r} ({kind}) cannot be read as text.") from error


def _number_text(column: pl.Series) -> pl.Series:
    value = pl.col("cell")
    whole = (value == value.floor()) & (value.abs() < 2**53)
    text = pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
    return column.fill_nan(None).to_frame().select(text).to_series()


def parse_numbers(column: pl.Series) -> FloatArray:
    """Return numbers, NaN where a cell is not a number."""
    if column.dtype == pl.Duration:
        column = column.alias("cell").dt.total_nanoseconds() / 1e9
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        column = parse_labels(column, strip_spaces=True)
        if has_decimal_commas(column):
            column = column.str.replace(",", ".", literal=True)
        elif has_thousands(column):
            column = column.str.replace_all(",", "", literal=True)
    return column.alias("cell").cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def has_decimal_commas(text: pl.Series) -> bool:
    """Return whether most cells are numbers with a decimal comma (12,5), and none has a point or several commas."""
    with_comma = text.str.contains(",", literal=True).sum()
    decimal = text.str.contains(r"^[+-]?\d+,\d{1,2}$").sum()
    few = 2 * with_comma < len(text) - text.null_count()
    return bool(with_comma) and with_comma == decimal and not few and not text.str.contains(".", literal=True).any()


def has_thousands(text: pl.Series) -> bool:
    """Return whether commas group the digits of numbers: 1,234."""
    with_comma = text.str.contains(",", literal=True).sum()
    return bool(with_comma) and with_comma == text.str.contains(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$").sum()


def missing_numbers(column: pl.Series) -> BoolArray:
    """Return which cells are empty or say that there is no number: NA, nan, n/a, -."""
    words = parse_labels(column, strip_spaces=True).str.to_lowercase()
    return words.is_in(("na", "nan", "n/a", "null", "none", "-", "–")).fill_null(True).to_numpy()


def parse_timestamps(column: pl.Series) -> FloatArray:
    """Return seconds since 1970 from dates, ISO text or numbers of a clock; NaN where a cell is none of these."""
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _to_seconds(column.cast(pl.Datetime) if column.dtype == pl.Date else column)
    if column.dtype.is_numeric():
        return _clock_to_seconds(parse_numbers(column))
    text = parse_labels(column, strip_spaces=True)
    clock = text.cast(pl.Float64, strict=False)
    if clock.null_count() > text.null_count():
        return np.where(clock.is_null().to_numpy(), _iso(text), clock.fill_null(np.nan).to_numpy())
    return _clock_to_seconds(clock.fill_null(np.nan).to_numpy())


def _iso(text: pl.Series) -> FloatArray:
    """Parse each cell by the first pattern that fits; most files need only one."""
    cell = text.str.replace(" ?(UTC|GMT|Z)$", "").str.replace(r"^(\d{4})[./](\d\d)[./](\d\d)\b", "${1}-${2}-${3}")
    cell = _with_year_first(cell).str.replace(r"^(\d{4}-\d\d?-\d\d?),? ", "${1}T")
    hours = cell.str.extract(r" GMT([+-]\d\d?)$").cast(pl.Float64)  # Google Forms: 1:00:00 PM GMT+1
    cell = cell.str.replace(r" GMT[+-]\d\d?$", "")
    found = np.full(len(text), np.nan)
    for pattern in _DATES:
        missing = np.isnan(found)
        if np.count_nonzero(missing) <= text.null_count():
            break
        found = np.where(missing, _to_seconds(cell.str.to_datetime(pattern, strict=False, time_unit="us")), found)
    offset: FloatArray = 3600 * hours.fill_null(0).to_numpy()
    return found - offset


def _with_year_first(cell: pl.Series) -> pl.Series:
    """Return dates such as 31/12/2024 as 2024-12-31, if some date shows which number is the day."""
    pattern = r"^(\d{1,2})[./](\d{1,2})[./](\d{4})\b"
    first, second = (cell.str.extract(pattern, n).cast(pl.Int32) for n in (1, 2))
    if first.null_count() == len(cell) or ((first > 12).any() and (second > 12).any()):
        return cell
    if (first > 12).any():
        return cell.str.replace(pattern, "${3}-${2}-${1}")
    # A number above 12 is a day. If there is none, the order of day and month is unknown.
    return cell.str.replace(pattern, "${3}-${1}-${2}") if (second > 12).any() else cell


def _to_seconds(column: pl.Series) -> FloatArray:
    micros = column.alias("cell").dt.timestamp("us").cast(pl.Float64)
    return (micros / 1e6).fill_null(np.nan).to_numpy()


def _clock_to_seconds(values: FloatArray) -> FloatArray:
    """Convert to seconds; the unit is guessed from the median."""
    seen = np.abs(values[np.isfinite(values)])
    median = float(np.median(seen)) if seen.size else 0.0
    return values / next((unit for limit, unit in _CLOCK_UNITS if median > limit), 1.0)


def parse_numbers_or_text(column: pl.Series) -> AnyArray:
    """Return numbers if every cell that is not empty is a number, else text with "" for empty cells."""
    text = parse_labels(column, strip_spaces=True)
    found = parse_numbers(column)
    if np.count_nonzero(np.isnan(found)) <= text.null_count():
        return found
    return np.array(text.fill_null("").to_list(), dtype=object)


Explain = Callable[[int], str]
Scalar = TypeVar("Scalar", bound=np.generic)

_MAX_EXAMPLES = 3
_MAX_CELL_LENGTH = 50


class RowErrors:
    """Which rows of a table were refused; only the first fault of a row is reported.

    Parameters
    ----------
    table : SourceTable
        The table, which may already list unreadable rows and rows to set aside.
    """

    def __init__(self, table: SourceTable):
        self.table = table
        self.fault = np.zeros(table.rows, np.int16)  # 0, or the position of the row's fault in `faults`
        self.faults: list[tuple[str, Explain]] = [("", lambda _: "")]
        self.ignored: BoolArray = np.zeros(table.rows, bool) if table.blank_rows is None else table.blank_rows.copy()
        if table.unreadable_rows:
            unreadable = np.zeros(table.rows, bool)
            unreadable[list(table.unreadable_rows)] = True
            self.refuse(unreadable, "", lambda row: table.unreadable_rows[row])
        self.unreadable = self.count
        counts = {reason: self.ignore(mask) for reason, mask in table.set_aside.items()}
        self.set_aside = {reason: count for reason, count in counts.items() if count}

    @property
    def usable(self) -> BoolArray:
        return np.equal(self.fault, 0) & ~self.ignored

    @property
    def count(self) -> int:
        return self.judgments(np.not_equal(self.fault, 0))

    @property
    def rows_read(self) -> int:
        """Number of rows that are not blank lines."""
        blank = self.table.blank_rows
        return self.judgments(np.ones(self.table.rows, bool) if blank is None else ~blank)

    @property
    def kept(self) -> int:
        """Number of judgments that are kept."""
        return self.judgments(self.usable)

    def judgments(self, mask: BoolArray) -> int:
        """Count the judgments among some rows: the parts of a split judgment are one."""
        parts = self.table.part_of
        return int(np.count_nonzero(mask)) if parts is None else len(np.unique(parts[mask]))

    def refuse(self, mask: BoolArray | pl.Series, column: str, explain: Explain) -> int:
        """Mark usable rows as malformed; returns how many."""
        wrong = np.asarray(mask) & self.usable
        found = int(np.count_nonzero(wrong))
        if found:
            self.fault[wrong] = len(self.faults)
            self.faults.append((column, explain))
        return found

    def refuse_missing(self, column: pl.Series, name: str, role: str) -> None:
        if column.null_count():
            self.refuse(column.is_null(), name, lambda _: f"the {role} is missing")

    def ignore(self, mask: BoolArray) -> int:
        """Leave usable rows out without calling them malformed; returns how many."""
        left_out = mask & self.usable
        self.ignored |= left_out
        return int(np.count_nonzero(left_out))

    def malformed(self, most: int = MAX_LISTED) -> tuple[MalformedRow, ...]:
        """Return the first malformed rows, with their lines in the file."""
        rows = np.flatnonzero(self.fault)[:most].tolist()
        if not rows:
            return ()
        found = []
        for row, location in zip(rows, self.table.locate(rows), strict=True):
            column, explain = self.faults[self.fault[row]]
            where = f" ({location.file})" if location.file else ""
            if location.remark:
                found.append(MalformedRow(location.line, "", location.remark + where))
            else:
                found.append(MalformedRow(location.line, column, explain(row) + where))
        return tuple(found)


def show_cell(value: object) -> str:
    """Return a cell for a message: quoted, and cut if it is long."""
    if value is None:
        return "nothing"
    text = repr(value.to_list() if isinstance(value, pl.Series) else value)
    if len(text) <= _MAX_CELL_LENGTH:
        return text
    return f"{text[: _MAX_CELL_LENGTH - 2]}…{text[0] if isinstance(value, str) else ''}"


@dataclass
class RowCounts:
    """Counts for the import report, beyond malformed rows and rows set aside."""

    ties: int = 0
    both_bad: int = 0
    skips: int = 0
    duplicates: int = 0
    self_comparisons: int = 0
    unknown_items: int = 0
    notes: list[str] = field(default_factory=list)


class Rows:
    """The rows of a table whose columns have roles, while they are validated.

    Parameters
    ----------
    table : SourceTable
        The table.
    match : RoleMatch
        The column of each role.
    features : sequence of str
        More columns to load.
    strict : bool
        Whether a row that cannot be used is an error.
    """

    # Whether exact repeats of an annotator's own answer are counted.
    counts_duplicates = True

    def __init__(self, table: SourceTable, match: RoleMatch, features: Sequence[str] = (), strict: bool = False):
        self.table, self.match, self.features, self.strict = table, match, features, strict
        self.errors = RowErrors(table)
        self.counts = RowCounts()
        self._all_usable = False
        self.frame = load_expressions(table, list(dict.fromkeys([*match.roles.values(), *features])))

    def has(self, role: str) -> bool:
        return role in self.match.roles

    def column(self, role: str) -> pl.Series:
        """Return the column of a role, unparsed."""
        return self.frame[self.match.roles[role]]

    def labels(self, role: str) -> pl.Series:
        """Parse the labels of a role; rows without one are refused."""
        found = parse_labels(self.column(role), self.table.strip_spaces)
        self.errors.refuse_missing(found, self.match.roles[role], role)
        return found

    def optional_labels(self, role: str) -> pl.Series | None:
        return self.labels(role) if self.has(role) else None

    def numbers(self, role: str) -> FloatArray:
        """Parse the numbers of a role; rows without a finite one are refused."""
        column = self.column(role)
        found = parse_numbers(column)
        if column.dtype == pl.String and has_decimal_commas(parse_labels(column, strip_spaces=True)):
            self.note(f"Commas in {self.match.roles[role]!r} were read as decimal points.")
        self.refuse_numbers(role, np.isfinite(found), "a finite number")
        return found

    def optional_weights(self) -> FloatArray | None:
        if not self.has("weight"):
            return None
        found = parse_numbers(self.column("weight"))
        self.refuse_numbers("weight", valid_weights(found), f"a positive number ({MIN_WEIGHT:g} to {MAX_WEIGHT:g})")
        return found

    def refuse_numbers(self, role: str, valid: BoolArray, expected: str) -> None:
        """Refuse rows whose number is not valid."""
        column = self.column(role)
        self.errors.refuse(
            ~valid, self.match.roles[role], lambda row: f"the {role} must be {expected}, got {show_cell(column[row])}"
        )

    def finish_checks(self) -> None:
        """Raise an error if too few rows of the table can be used."""
        read, wrong = self.errors.rows_read, self.errors.count
        if not read:
            raise FormatError(f"{self.table.name}: has columns but no rows.")
        if self.strict:
            self._refuse_any_left_out(wrong)
        left = self.errors.usable.any()
        if not left and not wrong:
            raise FormatError(f"{self.table.name}: contains no judgments: {self._why_none()}.")
        if 2 * wrong > read or not left:
            raise too_few_usable(self.table.name, self.match, wrong, read, self._first(_MAX_EXAMPLES))
        self._all_usable = bool(self.errors.usable.all())

    def _refuse_any_left_out(self, wrong: int) -> None:
        if wrong:
            raise FormatError(f"{self.table.name}: {self._first(1)}")
        left_out = {"skip": self.counts.skips, **self.errors.set_aside}
        if any(left_out.values()):
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in left_out.items() if count)
            raise FormatError(
                f"{self.table.name}: {sum(left_out.values()):,} rows are not judgments: {reasons}.",
                remedy="Pass strict=False to leave them out.",
                option="strict",
                value="False",
            )

    def _why_none(self) -> str:
        aside = self.errors.set_aside
        if not aside:
            return "every row was skipped by its annotator"
        return "every row was set aside or skipped: " + ", ".join(f"{reason} ({n:,})" for reason, n in aside.items())

    def _first(self, most: int) -> str:
        return " ".join(m.sentence(self.table.unit) for m in self.errors.malformed(most))

    @overload
    def usable(self, column: pl.Series) -> pl.Series: ...
    @overload
    def usable(self, column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]: ...
    @overload
    def usable(self, column: None) -> None: ...
    def usable(self, column: pl.Series | npt.NDArray[Scalar] | None) -> pl.Series | npt.NDArray[Scalar] | None:
        """Return the cells of the rows that are kept."""
        if column is None or self._all_usable:
            return column
        return column.filter(self.errors.usable) if isinstance(column, pl.Series) else column[self.errors.usable]

    def note(self, sentence: str) -> None:
        self.counts.notes.append(sentence)


def too_few_usable(name: str, match: RoleMatch, wrong: int, read: int, examples: str) -> FormatError:
    roles = ", ".join(f"{column!r} as {role}" for role, column in match.roles.items())
    problem = (
        f"{name}: {wrong:,} of {read:,} rows cannot be used, so the columns probably have other roles ({roles}). "
        f"{examples}"
    )
    return columns_error(problem, "Name the columns yourself:", {"ROLE": "COLUMN"})
