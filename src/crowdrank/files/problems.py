"""Which rows cannot be used, and why: the first fault of a row is the one reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from crowdrank.files.report import MOST_LISTED, Malformed
from crowdrank.files.tables import Mask, Table

Explain = Callable[[int], str]


class Problems:
    """Rows of a table, less those that some check refused."""

    def __init__(self, table: Table):
        self.table = table
        self.fault = np.zeros(table.rows, np.int16)
        self.ignored: Mask = np.zeros(table.rows, bool) if table.blank is None else table.blank.copy()
        self.faults: list[tuple[str, Explain]] = [("", lambda _: "")]
        if table.broken:
            broken = np.zeros(table.rows, bool)
            broken[list(table.broken)] = True
            self.refuse(broken, "", lambda row: table.broken[row])
        self.broken = self.count
        counts = {reason: self.ignore(mask) for reason, mask in table.set_aside.items()}
        self.set_aside = {reason: count for reason, count in counts.items() if count}

    @property
    def usable(self) -> Mask:
        return np.equal(self.fault, 0) & ~self.ignored

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.fault))

    @property
    def rows_read(self) -> int:
        """Rows, less blank lines."""
        blank = self.table.blank
        return self.table.rows - (0 if blank is None else int(np.count_nonzero(blank)))

    def refuse(self, mask: Mask | pl.Series, column: str, explain: Explain) -> int:
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

    def ignore(self, mask: Mask) -> int:
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
            found.append(Malformed(place.line, "", place.remark) if place.remark else
                         Malformed(place.line, column, explain(row)))  # fmt: skip
        return tuple(found)


def shown(value: Any) -> str:
    """A cell as a message shows it: quoted, and not a page long."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 50 else f"{text[:48]}…{text[0] if isinstance(value, str) else ''}"
