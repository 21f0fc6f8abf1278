"""Tables and verdicts from measurements."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

from peers import GENERAL, OURS

BAR = 1e-8
"""Converged: log-likelihood within this share of the highest anyone reached."""


@dataclass(frozen=True)
class Row:
    """One contender at one size."""

    rows: int
    items: int
    family: str
    way: str
    setting: float
    status: str
    seconds: float = nan
    build_seconds: float = nan
    peak_megabytes: float = nan
    reached: float = -inf
    """Log-likelihood."""
    short: float = nan
    """How far that is below the highest, as a share of it."""
    apart: float = nan
    """Largest difference of a centred score from ours."""
    agreement: float = nan
    """Correlation of the scores with ours."""
    accuracy: float = nan
    """Share of pairs of items in their true order."""

    @property
    def finished(self) -> bool:
        return self.reached > -inf

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def whole_seconds(self) -> float:
        """With what must be built first."""
        return self.seconds + self.build_seconds

    def gap(self, highest: float) -> float:
        return (highest - self.reached) / abs(highest) if self.finished else inf

    def judged(self, highest: float) -> Row:
        if not self.finished:
            return self
        short = self.gap(highest)
        return replace(self, short=short, status="converged" if short <= BAR else "stopped short")

    def with_result(self, **measured: float) -> Row:
        return replace(self, **measured)  # type: ignore[arg-type]

    def faster(self, other: Row) -> Row:
        if not other.finished:
            return self
        seconds, build = min(self.seconds, other.seconds), min(self.build_seconds, other.build_seconds)
        return replace(self, seconds=seconds, build_seconds=build)

    def progress(self, highest: float) -> str:
        name = f"{self.family} {self.way}"
        if not self.finished:
            return f"{name:<36} {self.status}"
        return f"{name:<36} {duration(self.seconds):>9}   short by {self.gap(highest):.1e}   setting {self.setting:g}"


def duration(seconds: float) -> str:
    if isnan(seconds):
        return ""
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _cells(row: Row) -> list[str]:
    name = f"{row.family} {row.way}"
    if not row.finished:
        return [name, row.status, *[""] * 7]
    return [
        name,
        row.status if row.converged else f"short by {row.short:.0e}",
        duration(row.seconds),
        duration(row.build_seconds) if row.build_seconds else "",
        f"{row.peak_megabytes:,.1f} MB",
        f"{row.reached:.6f}",
        f"{row.accuracy:.4f}",
        f"{row.apart:.1e}",
        f"{row.agreement:.9f}",
    ]


def tables(rows: Sequence[Row]) -> str:
    """One Markdown table a size, fastest first, those that did not converge below."""
    head = [
        "",
        "",
        "fit",
        "building its input",
        "peak memory",
        "log-likelihood",
        "pairs right",
        "furthest score",
        "correlation",
    ]
    parts = []
    for size in sorted({(r.items, r.rows) for r in rows}):
        chosen = sorted(
            (r for r in rows if (r.items, r.rows) == size),
            key=lambda r: (not r.converged, not r.finished, r.seconds if r.finished else 0.0),
        )
        lines = [_line(head), _line(["---"] * len(head)), *(_line(_cells(r)) for r in chosen)]
        parts.append(f"### {size[0]:,} items, {size[1]:,} votes\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def verdict(met: bool | None, text: str) -> str:
    """None where there was nothing to compare with."""
    return f"{ {True: 'met', False: 'MISSED', None: 'open'}[met]:<8}{text}"


def verdicts(rows: Sequence[Row], limit: float) -> list[str]:
    """How many times faster than each kind of peer, against what is aimed at."""
    libraries = {r.family for r in rows} - {OURS, *GENERAL}
    found = []
    for size in sorted({(r.items, r.rows) for r in rows}):
        here = [r for r in rows if (r.items, r.rows) == size]
        if size == (100, 4_000):
            aims: list[tuple[str, Callable[[Row], bool], float]] = [
                ("evalica given codes", lambda r: r.family == "evalica" and "codes" in r.way, 1.0),
                ("evalica given arrays", lambda r: r.family == "evalica" and "arrays" in r.way, 1.0),
                ("evalica given lists", lambda r: r.family == "evalica" and "lists" in r.way, 1.0),
            ]
        elif size[0] == 10_000:
            aims = [
                ("the fastest ranking library", lambda r: r.family in libraries, 10.0),
                ("the same as it comes", lambda r: r.family in libraries and "compiled before" not in r.way, 10.0),
                ("NumPy and L-BFGS", lambda r: r.family == "numpy", 3.0),
                ("scikit-learn", lambda r: r.family == "scikit-learn", 2.0),
            ]
        else:
            continue
        for what, chosen, aim in aims:
            if rivals := [r for r in here if chosen(r)]:
                found.append(_ratio(here, rivals, what, aim, limit))
    return found


def _ratio(here: Sequence[Row], rivals: Sequence[Row], what: str, aim: float, limit: float) -> str:
    ours = next(r for r in here if r.family == OURS)
    where = f"{ours.items:,} items, {ours.rows:,} votes: {what}"
    if not ours.converged:
        return verdict(False, f"{where}: crowdrank itself {ours.status}")
    converged = [r for r in rivals if r.converged]
    if not converged:
        if any("did not finish" in r.status or "too slow" in r.status for r in rivals):
            least = limit / ours.seconds
            return verdict(least >= aim, f"{where}: none in {limit:.0f} s, at least {least:.1f}× (aim {aim:g}×)")
        return verdict(None, f"{where}: none installed, or none converged")
    best = min(converged, key=lambda r: r.whole_seconds)
    times = best.whole_seconds / ours.seconds
    built = f", {best.seconds / ours.seconds:.2f}× without building its input" if best.build_seconds else ""
    took = f"{duration(best.whole_seconds)} against {duration(ours.seconds)}"
    return verdict(times >= aim, f"{where} ({best.way}): {times:.2f}× (aim {aim:g}×){built}; {took}")


def page(rows: Sequence[Row], verdicts: Sequence[str], door: str, machine: str, limit: float) -> str:
    return (
        "# Bradley-Terry compared with other libraries\n\n"
        f"{machine}\n\nTimes are the best of several; a fit may take {limit:.0f} s. ../README.md describes "
        "the method.\n\n## Verdicts\n\n```\n"
        + "\n".join(verdicts)
        + "\n```\n\n## Fits\n\n"
        + tables(rows)
        + "\n## From file to ranking\n\n"
        + door
        + "\n"
    )


def write_csv(rows: Sequence[Any], path: Path) -> None:
    """Of a data class, a line each; what is not a number stays empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(rows[0])], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: "" if isinstance(v, float) and v != v else v for k, v in asdict(row).items()})
