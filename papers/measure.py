"""Shared code of all scripts: trials over seeds in two processes, and tables of means next to the paper's numbers."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from fingerprints import Sampled as Sampled
from fingerprints import StandardErrors as StandardErrors
from provenance import made, record

from crowdrank.errors import ConvergenceWarning

FIRST_SEED = 1000
"""No setting was chosen on crowds of these seeds."""

Key = tuple[str, str]
"""A row and a column of a table."""
Trial = Callable[..., Mapping[Key, float]]


def options(script: str, about: str, *arguments: str, trials: int = 20) -> argparse.Namespace:
    """--trials, --quick, --out and --processes, and the positional arguments a script adds; each may be left out."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in arguments:
        parser.add_argument(name, type=Path, nargs="?")
    parser.add_argument("--trials", type=int, default=trials, help=f"number of crowds per column (default {trials})")
    parser.add_argument("--quick", action="store_true", help="one trial, short chains, printed only")
    parser.add_argument("--out", type=Path, help="folder for the tables (default: results/ next to the script)")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    told = parser.parse_args()
    told.about, told.script, told.stopped_short = about, Path(script), Counter()
    made()  # now: code may change while trials run
    if told.quick:
        told.trials = told.processes = 1
    elif told.out is None:
        told.out = told.script.parent / "results"
    return told


def over_seeds(trial: Trial, columns: Sequence[Hashable], told: argparse.Namespace) -> dict[Key, list[float]]:
    """`trial(column, seed, quick)` for every column and seed; what each cell of the table was, trial by trial."""
    jobs = [(column, FIRST_SEED + n) for column in columns for n in range(told.trials)]
    found: dict[Key, list[float]] = {}
    for cells, stopped_short in _answers(partial(_watched, trial, told.quick), jobs, told.processes):
        told.stopped_short += stopped_short
        for key, value in cells.items():
            found.setdefault(key, []).append(value)
    return found


def _watched(trial: Trial, quick: bool, job: tuple[Any, int]) -> tuple[Mapping[Key, float], Counter[str]]:
    """The trial's cells, and how many fits of which model did not converge."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", ConvergenceWarning)
        cells = trial(*job, quick)
    # the warning begins with the model's name
    names = (str(w.message).split()[0] for w in heard if issubclass(w.category, ConvergenceWarning))
    return cells, Counter(names)


def _answers(call: Callable[[Any], Any], jobs: Sequence[Any], processes: int) -> Iterator[Any]:
    """In the order of the jobs."""
    if processes == 1:
        yield from _counted(map(call, jobs), len(jobs))
        return
    # threads of ours may hold locks that a forked process would wait for
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from _counted(pool.map(call, jobs), len(jobs))


def _counted(answers: Iterable[Any], total: int) -> Iterator[Any]:
    return_to_start = sys.stderr.isatty()
    for done, answer in enumerate(answers, 1):
        if return_to_start or done % 20 == 0:
            print(f"{done} of {total} trials", end="\r" if return_to_start else "\n", file=sys.stderr, flush=True)
        yield answer


@dataclass(frozen=True)
class Table:
    """Means of trials by row and column, beside what the paper printed and what they should reach."""

    found: Mapping[Key, Sequence[float]]
    paper: Mapping[Key, float] = field(default_factory=dict)
    at_least: Mapping[Key, float] = field(default_factory=dict)
    title: str = ""

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(row for row, _ in self.found))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for _, column in self.found))

    def markdown(self) -> str:
        """Below each row that the paper has too, the paper's."""
        lines = [_line(["", *self.columns]), _line(["---"] * (1 + len(self.columns)))]
        for row in self.rows:
            lines.append(_line([row, *(self._cell(row, column) for column in self.columns)]))
            printed = [self.paper.get((row, column)) for column in self.columns]
            if any(number is not None for number in printed):
                lines.append(_line(["*paper*", *("" if n is None else f"*{decimals(n)}*" for n in printed)]))
        return (f"## {self.title}\n\n" if self.title else "") + "\n".join(lines) + "\n"

    def _cell(self, row: str, column: str) -> str:
        return with_error(self.found[row, column]) if (row, column) in self.found else ""

    def checks(self) -> list[Check]:
        return [
            Check(
                f"{row}, {column}",
                f"at least {decimals(aim)}",
                with_error(self.found[row, column]),
                round(float(np.mean(self.found[row, column])), 3) >= aim,
            )
            for (row, column), aim in self.at_least.items()
            if (row, column) in self.found
        ]

    def records(self) -> Iterator[dict[str, Any]]:
        for (row, column), values in self.found.items():
            yield {
                "table": self.title,
                "row": row,
                "column": column,
                "mean": round(float(np.mean(values)), 5),
                "standard_error": round(standard_error(values), 5),
                "trials": len(values),
                "paper": self.paper.get((row, column)),
                "at_least": self.at_least.get((row, column)),
            }


@dataclass(frozen=True)
class Check:
    """A number that was aimed at, and whether it was reached."""

    what: str
    aim: str
    found: str
    met: bool


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def with_error(values: Sequence[float]) -> str:
    error = standard_error(values)
    return decimals(float(np.mean(values))) + ("" if np.isnan(error) else f" ± {decimals(error)}")


def decimals(value: float) -> str:
    """Three, without the zero before the point; none of a large number."""
    if abs(value) >= 10:
        return f"{value:,.0f}"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def report(told: argparse.Namespace, notes: str, tables: Sequence[Table], checks: Sequence[Check] = ()) -> None:
    """Prints the tables and, where there is a folder for them, writes them as Markdown and CSV."""
    checks = [*(check for table in tables for check in table.checks()), *checks]
    if any(table.paper for table in tables):
        notes += " Rows called *paper* are as printed there."
    parts = [f"# {told.about.strip()}\n", f"{notes.strip()}\n", f"{made()}\n", *(table.markdown() for table in tables)]
    if checks:
        cells = [[c.what, c.aim, c.found, "met" if c.met else "MISSED"] for c in checks]
        parts.append("## Aims\n\n" + "\n".join(map(_line, [["", "aim", "found", ""], ["---"] * 4, *cells])) + "\n")
    text = "\n".join(parts)
    print(text)
    if told.out is None:
        return
    told.out.mkdir(parents=True, exist_ok=True)
    place = told.out / told.script.stem
    place.with_suffix(".md").write_text(text, encoding="utf-8", newline="\n")
    records = [record for table in tables for record in table.records()]
    with place.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    if not told.quick:
        record(told.script, told.out, told.script.stem)


def drawn(told: argparse.Namespace) -> str:
    """How many trials a table is the mean of, and how many fits of them did not converge."""
    last = FIRST_SEED + told.trials - 1
    text = f"Means of {told.trials} trials (seeds {FIRST_SEED} to {last}) ± standard error."
    short = ", ".join(f"{count} of {name}" for name, count in told.stopped_short.items())
    return f"{text} Fits that did not converge: {short}." if short else text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def data_folder() -> Path | None:
    """The folder of real judgments: CROWDRANK_DATA, or ../shared/data beside the checkout; None where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CROWDRANK_DATA") or beside)
    return folder if folder.is_dir() else None
