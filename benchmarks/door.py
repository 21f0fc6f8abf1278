"""Time from file to judgments, and from file to printed ranking.

python benchmarks/door.py            all of it
python benchmarks/door.py --quick    the small files only
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report import duration, verdict
from votes import draw

_ANNOTATORS = 500
_READ = (
    "import sys, time, crowdrank; a = time.perf_counter(); crowdrank.read(sys.argv[1]); print(time.perf_counter() - a)"
)


@dataclass(frozen=True)
class Entry:
    """One way to read a file."""

    what: str
    rows: int
    items: int
    first_seconds: float
    """First run, with nothing compiled yet, as after an installation."""
    seconds: float
    """Best of the following runs."""
    aim: float | None = None


def write_votes(path: Path, items: int, rows: int) -> None:
    """Write a realistic file, with names of items and annotators."""
    import polars as pl

    votes = draw(items, rows)
    labels = pl.Series([f"item {k:05d}" for k in range(items)])
    people = pl.Series([f"annotator {k:03d}" for k in range(_ANNOTATORS)])
    judged_by = np.random.default_rng(0).integers(_ANNOTATORS, size=rows)
    table = pl.DataFrame(
        {
            "annotator": people.gather(judged_by),
            "left": labels.gather(votes.left),
            "right": labels.gather(votes.right),
            "winner": labels.gather(votes.winner),
        }
    )
    if path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path)


def measure(quick: bool = False) -> list[Entry]:
    """Files are written to a temporary folder; so is what Numba compiles, for the first time of each."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        small, large, huge = (Path(folder) / name for name in ("small.csv", "large.csv", "huge.parquet"))
        write_votes(small, 50, 1_000)
        found.append(_rank(small, 50, 1_000, repetitions=5, aim=1.0))
        if not quick:
            write_votes(large, 10_000, 1_000_000)
            found.append(_read(large, 10_000, 1_000_000, repetitions=3))
            found.append(_rank(large, 10_000, 1_000_000, repetitions=3, aim=10.0))
            write_votes(huge, 10_000, 10_000_000)
            found.append(_read(huge, 10_000, 10_000_000, repetitions=2))
    return found


def _rank(path: Path, items: int, rows: int, repetitions: int, aim: float) -> Entry:
    command = [str(_script()), "rank", str(path)]
    return _entry("crowdrank rank", path, items, rows, command, repetitions, aim)


def _read(path: Path, items: int, rows: int, repetitions: int) -> Entry:
    command = [sys.executable, "-c", _READ, str(path)]
    return _entry("crowdrank.read", path, items, rows, command, repetitions, None)


def _script() -> Path:
    """The command as installed beside this Python."""
    beside = Path(sys.executable).with_name("crowdrank")
    found = str(beside) if beside.exists() else shutil.which("crowdrank")
    if found is None:
        raise SystemExit("The crowdrank command is not installed: pip install -e . in this environment first.")
    return Path(found)


def _entry(
    what: str, path: Path, items: int, rows: int, command: list[str], repetitions: int, aim: float | None
) -> Entry:
    with tempfile.TemporaryDirectory() as kept:
        times = [_time(command, {**os.environ, "NUMBA_CACHE_DIR": kept}) for _ in range(repetitions + 1)]
    entry = Entry(f"{what}, {path.suffix[1:]}", rows, items, times[0], min(times[1:]), aim)
    print(
        f"  {entry.what:<24} {rows:>10,} rows   first {duration(times[0])}, then {duration(entry.seconds)}", flush=True
    )
    return entry


def _time(command: list[str], environment: dict[str, str]) -> float:
    """Wall time of the whole process, or what it printed of its own accord as its last word."""
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])} … failed:\n{done.stderr[-2000:]}")
    return float(done.stdout) if "-c" in command else took


def verdicts(entries: Sequence[Entry]) -> list[str]:
    """Each aim twice: as it usually is, and the first time after an installation."""
    found = []
    for entry in (e for e in entries if e.aim is not None):
        for when, took in (("", entry.seconds), (", the first time", entry.first_seconds)):
            what = f"{entry.what}, {entry.rows:,} rows{when}: {duration(took)} (aim under {entry.aim:g} s)"
            found.append(verdict(took < (entry.aim or 0.0), what))
    return found


def table(entries: Sequence[Entry]) -> str:
    if not entries:
        return "Not measured in this run."
    lines = ["| | rows | items | first time | then |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {e.what} | {e.rows:,} | {e.items:,} | {duration(e.first_seconds)} | {duration(e.seconds)} |"
        for e in entries
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    found = measure(quick="--quick" in sys.argv)
    print("\n" + table(found) + "\n\n" + "\n".join(verdicts(found)))
