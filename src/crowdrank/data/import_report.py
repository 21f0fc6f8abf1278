"""The import report: what became of every row of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    """What became of every row of a source: it was kept, a skip, set aside, or malformed.

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
    skips : int
        Rows in which the annotator declined to answer.
    duplicates : int
        Exact repeats (same annotator, query, items and answer); they are kept.
    set_aside : mapping of str to int
        Rows that the platform itself marks as no judgments, by reason: gold questions, rejected workers.
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
        What the numbers of malformed rows count.
    notes : tuple of str
        Remarks on how columns were understood.
    """

    source: str
    kind: str
    format: str
    columns: Mapping[str, str]
    rows_read: int
    kept: int
    ties: int = 0
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

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        roles = ", ".join(role if role == name else f"{name} as {role}" for role, name in self.columns.items())
        read_as = "" if self.format == "tidy" else f", read as {self.format}"
        found = [f"{self.source}{read_as}: {self.kind} from the columns {roles}.", self._counts()]
        if self.duplicates:
            found.append(f"{_count(self.duplicates, 'exact repeat')} of an annotator's own answer kept.")
        found += [m.sentence(self.unit) for m in self.malformed[:_MAX_SHOWN]]
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
        ties = f" ({_count(self.ties, 'tie')})" if self.ties else ""
        parts = [f"{_count(self.rows_read, 'row')} read", f"{self.kept:,} kept{ties}"]
        if self.skips:
            parts.append(f"{self.skips:,} skipped by the annotator")
        parts += [f"{count:,} set aside ({reason})" for reason, count in self.set_aside.items()]
        if self.malformed_count:
            parts.append(f"{self.malformed_count:,} left out{self._faults()}")
        return ", ".join(parts) + "."

    def _faults(self) -> str:
        """Return what was wrong, as counts of the usual causes."""
        counts = (
            (self.self_comparisons, "compare an item with itself"),
            (self.unknown_items, "name a winner that is not one of the two items"),
            (self.broken_lines, "cannot be parsed"),
        )
        causes = ", ".join(f"{count:,} {what}" for count, what in counts if count)
        return f" ({causes})" if causes else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
