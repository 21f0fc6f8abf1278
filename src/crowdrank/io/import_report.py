"""What became of every row of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MOST_LISTED = 100
_MOST_SHOWN = 10


class Malformed(NamedTuple):
    """One row that could not be used."""

    line: int
    """The line of the file it begins on; for frames and Parquet, the row counted from 1; 0 where that is unknown."""
    column: str
    """The column at fault, "" where it is the whole row."""
    reason: str

    def sentence(self, unit: str) -> str:
        where = f", column {self.column!r}" if self.column else ""
        place = f"{unit.capitalize()} {self.line:,}" if self.line else "A row"
        return f"{place}{where}: {self.reason}."


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """Every row read is kept, a skip, set aside, or malformed."""

    source: str
    kind: str
    format: str
    columns: Mapping[str, str]
    """Role to column: what was read as what."""
    rows_read: int
    kept: int
    ties: int = 0
    skips: int = 0
    duplicates: int = 0
    """Exact repeats (same annotator, query, items and answer), kept all the same."""
    set_aside: Mapping[str, int] = field(default_factory=dict)
    """Rows that the platform itself tells apart from judgments, by reason: gold questions, rejected workers …"""
    malformed_count: int = 0
    self_comparisons: int = 0
    """How many of the malformed rows compare an item with itself."""
    unknown_items: int = 0
    """How many name a winner that was not shown."""
    broken_lines: int = 0
    """How many could not be read at all."""
    malformed: tuple[Malformed, ...] = ()
    """The first hundred malformed rows."""
    unit: str = "line"
    """What the malformed rows are counted in: lines of the file, or rows."""
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Plain sentences for the screen."""
        roles = ", ".join(role if role == name else f"{name} as {role}" for role, name in self.columns.items())
        read_as = "" if self.format == "tidy" else f", read as {self.format}"
        found = [f"{self.source}{read_as}: {self.kind} from the columns {roles}.", self._counts()]
        if self.duplicates:
            found.append(f"{_count(self.duplicates, 'exact repeat')} of an annotator's own answer kept.")
        found += [m.sentence(self.unit) for m in self.malformed[:_MOST_SHOWN]]
        if (more := self.malformed_count - _MOST_SHOWN) > 0:
            found.append(f"… and {_count(more, 'more row')} left out.")
        return found + list(self.notes)

    def dropped(self) -> str:
        """One sentence on the rows left out; empty where there are none."""
        if not self.malformed_count:
            return ""
        first = self.malformed[0]
        return (
            f"{self.source}: {self.malformed_count:,} of {_count(self.rows_read, 'row')} could not be used and "
            f"{'was' if self.malformed_count == 1 else 'were'} left out; the first: {first.sentence(self.unit)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
        """What was wrong with them, where it is one of the usual things."""
        counts = (
            (self.self_comparisons, "compare an item with itself"),
            (self.unknown_items, "name a winner that was not shown"),
            (self.broken_lines, "cannot be read"),
        )
        told = ", ".join(f"{count:,} {what}" for count, what in counts if count)
        return f" ({told})" if told else ""


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
