"""Validate rows: parse the cells of each role, and record which rows cannot be used and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data.import_report import MAX_LISTED, MalformedRow
from crowdrank.data.tables import MAX_WEIGHT, MIN_WEIGHT, valid_weights
from crowdrank.errors import FormatError
from crowdrank.io import parse
from crowdrank.io.role_matching import RoleMatch, columns_error
from crowdrank.io.source_table import SourceTable

Explain = Callable[[int], str]
Scalar = TypeVar("Scalar", bound=np.generic)

_MAX_EXAMPLES = 3
_MAX_CELL_LENGTH = 50


class RowErrors:
    """Which rows of a table were refused; only the first fault of a row is reported.

    Parameters
    ----------
    table : SourceTable
        The table, which may already know of unreadable rows and rows to set aside.
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
        return int(np.count_nonzero(self.fault))

    @property
    def rows_read(self) -> int:
        """Number of rows that are not blank lines."""
        blank = self.table.blank_rows
        return self.table.rows - (0 if blank is None else int(np.count_nonzero(blank)))

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
            if location.remark:
                found.append(MalformedRow(location.line, "", location.remark))
            else:
                found.append(MalformedRow(location.line, column, explain(row)))
        return tuple(found)


def show_cell(value: object) -> str:
    """Return a cell for a message: quoted, and cut if it is long."""
    if value is None:
        return "nothing"
    text = repr(value)
    if len(text) <= _MAX_CELL_LENGTH:
        return text
    return f"{text[: _MAX_CELL_LENGTH - 2]}…{text[0] if isinstance(value, str) else ''}"


@dataclass
class RowCounts:
    """Counts for the import report, beyond malformed rows and rows set aside."""

    ties: int = 0
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
        self.frame = table.load(list(dict.fromkeys([*match.roles.values(), *features])), None)

    def has(self, role: str) -> bool:
        return role in self.match.roles

    def column(self, role: str) -> pl.Series:
        """Return the column of a role, unparsed."""
        return self.frame[self.match.roles[role]]

    def labels(self, role: str) -> pl.Series:
        """Parse the labels of a role; rows without one are refused."""
        found = parse.labels(self.column(role), self.table.strip_spaces)
        self.errors.refuse_missing(found, self.match.roles[role], role)
        return found

    def optional_labels(self, role: str) -> pl.Series | None:
        return self.labels(role) if self.has(role) else None

    def numbers(self, role: str) -> FloatArray:
        """Parse the numbers of a role; rows without a finite one are refused."""
        found = parse.numbers(self.column(role))
        self._refuse_numbers(role, np.isfinite(found), "a finite number")
        return found

    def optional_weights(self) -> FloatArray | None:
        if not self.has("weight"):
            return None
        found = parse.numbers(self.column("weight"))
        self._refuse_numbers("weight", valid_weights(found), f"a positive number ({MIN_WEIGHT:g} to {MAX_WEIGHT:g})")
        return found

    def _refuse_numbers(self, role: str, valid: BoolArray, expected: str) -> None:
        column = self.column(role)
        self.errors.refuse(
            ~valid, self.match.roles[role], lambda row: f"the {role} must be {expected}, got {show_cell(column[row])}"
        )

    def finish_checks(self) -> None:
        """Refuse the whole table if too few of its rows can be used."""
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
