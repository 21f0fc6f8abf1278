"""Which rows cannot be used, and why: the first fault of a row is the one reported.

The rows of a table whose columns have roles: cells read and checked, unusable rows accounted for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data.columns import HEAVIEST, LIGHTEST, fine_weights
from crowdrank.errors import FormatError
from crowdrank.io import cells
from crowdrank.io.import_report import MOST_LISTED, Malformed
from crowdrank.io.role_matching import Match
from crowdrank.io.tables import Table

Explain = Callable[[int], str]


class Problems:
    """Rows of a table, less those that some check refused."""

    def __init__(self, table: Table):
        self.table = table
        self.fault = np.zeros(table.rows, np.int16)
        self.ignored: BoolArray = np.zeros(table.rows, bool) if table.blank is None else table.blank.copy()
        self.faults: list[tuple[str, Explain]] = [("", lambda _: "")]
        if table.broken:
            broken = np.zeros(table.rows, bool)
            broken[list(table.broken)] = True
            self.refuse(broken, "", lambda row: table.broken[row])
        self.broken = self.count
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
        """Rows, less blank lines."""
        blank = self.table.blank
        return self.table.rows - (0 if blank is None else int(np.count_nonzero(blank)))

    def refuse(self, mask: BoolArray | pl.Series, column: str, explain: Explain) -> int:
        """Mark rows that are still usable; returns how many were."""
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
        """Leave usable rows out without calling them wrong; returns how many."""
        left_out = mask & self.usable
        self.ignored |= left_out
        return int(np.count_nonzero(left_out))

    def malformed(self, most: int = MOST_LISTED) -> tuple[Malformed, ...]:
        """The first malformed rows, with their places in the file."""
        rows = np.flatnonzero(self.fault)[:most].tolist()
        if not rows:
            return ()
        found = []
        for row, place in zip(rows, self.table.locate(rows), strict=True):
            column, explain = self.faults[self.fault[row]]
            found.append(
                Malformed(place.line, "", place.remark) if place.remark else Malformed(place.line, column, explain(row))
            )
        return tuple(found)


def shown(value: Any) -> str:
    """A cell as a message shows it: quoted, and not a page long."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 50 else f"{text[:48]}…{text[0] if isinstance(value, str) else ''}"


_FIRST_FEW = 3
Array = TypeVar("Array", bound=np.generic)


@dataclass
class Counted:
    """What a report says of the rows beyond those left out."""

    ties: int = 0
    skips: int = 0
    duplicates: int = 0
    self_comparisons: int = 0
    unknown_items: int = 0
    notes: list[str] = field(default_factory=list)


class Rows:
    """One reading of one table."""

    counts_repeats = True
    """Whether rows that say again what their annotator has said before are counted."""

    def __init__(self, table: Table, match: Match, features: Sequence[str] = (), strict: bool = False):
        self.table, self.match, self.features, self.strict = table, match, features, strict
        self.problems = Problems(table)
        self.counted = Counted()
        self._all_usable = False
        self.frame = table.load(list(dict.fromkeys([*match.roles.values(), *features])), None)

    def has(self, role: str) -> bool:
        return role in self.match.roles

    def column(self, role: str) -> pl.Series:
        """A role's column as it stands."""
        return self.frame[self.match.roles[role]]

    def labels(self, role: str) -> pl.Series:
        """A role's labels; rows without one are refused."""
        found = cells.labels(self.column(role), self.table.trimmed)
        self.problems.refuse_missing(found, self.match.roles[role], role)
        return found

    def maybe_labels(self, role: str) -> pl.Series | None:
        return self.labels(role) if self.has(role) else None

    def numbers(self, role: str) -> FloatArray:
        """A role's numbers; rows without a finite one are refused."""
        found = cells.numbers(self.column(role))
        self._refuse_numbers(role, np.isfinite(found), "a finite number")
        return found

    def maybe_weight(self) -> FloatArray | None:
        if not self.has("weight"):
            return None
        found = cells.numbers(self.column("weight"))
        self._refuse_numbers("weight", fine_weights(found), f"a positive number ({LIGHTEST:g} to {HEAVIEST:g})")
        return found

    def _refuse_numbers(self, role: str, fine: BoolArray, need: str) -> None:
        column = self.column(role)
        self.problems.refuse(
            ~fine, self.match.roles[role], lambda row: f"the {role} must be {need}, got {shown(column[row])}"
        )

    def settle(self) -> None:
        """Every check is done: refuse the table where too little of it is usable."""
        read, wrong = self.problems.rows_read, self.problems.count
        if not read:
            raise FormatError(f"{self.table.name}: has columns but no rows.")
        if self.strict:
            self._refuse_drops(wrong)
        left = self.problems.usable.any()
        if not left and not wrong:
            raise FormatError(f"{self.table.name}: {self._nothing_judged()}; nothing was judged.")
        if 2 * wrong > read or not left:
            roles = ", ".join(f"{column!r} as {role}" for role, column in self.match.roles.items())
            raise FormatError(
                f"{self.table.name}: {wrong:,} of {read:,} rows cannot be used, so the columns may mean something else "
                f"({roles}). {self._first(_FIRST_FEW)} Say what they are: --column ROLE=COLUMN (columns={{…}})."
            )
        self._all_usable = bool(self.problems.usable.all())

    def _refuse_drops(self, wrong: int) -> None:
        if wrong:
            raise FormatError(f"{self.table.name}: {self._first(1)}")
        dropped = {"skip": self.counted.skips, **self.problems.set_aside}
        if any(dropped.values()):
            told = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
            raise FormatError(
                f"{self.table.name}: some rows are no judgments: {told}; without --strict they are left out."
            )

    def _nothing_judged(self) -> str:
        aside = self.problems.set_aside
        if not aside:
            return "every row was skipped by its annotator"
        return "every row was set aside or skipped: " + ", ".join(f"{reason} ({n:,})" for reason, n in aside.items())

    def _first(self, most: int) -> str:
        return " ".join(m.sentence(self.table.unit) for m in self.problems.malformed(most))

    @overload
    def usable(self, column: pl.Series) -> pl.Series: ...
    @overload
    def usable(self, column: npt.NDArray[Array]) -> npt.NDArray[Array]: ...
    @overload
    def usable(self, column: None) -> None: ...
    def usable(self, column: pl.Series | npt.NDArray[Array] | None) -> pl.Series | npt.NDArray[Array] | None:
        """A column's cells in the rows that are left."""
        if column is None or self._all_usable:
            return column
        return column.filter(self.problems.usable) if isinstance(column, pl.Series) else column[self.problems.usable]

    def note(self, sentence: str) -> None:
        self.counted.notes.append(sentence)
