"""More judgments than fit in memory: the command on a folder of Parquet files, within a memory limit.

python benchmarks/large.py                                  a hundred million judgments, 4 GB: results/large.md
python benchmarks/large.py --rows 1e7 --memory 500MB --name some
python benchmarks/large.py --rows 1e7,1e8,1e9 --models crowd-bt --uncertainty yes --name growth-large
                                                            growth: results/growth-large.md; 1e9 take 25 GB of disk
python benchmarks/large.py --quick                          a million, printed only

Each run is `crowdrank rank FOLDER --memory …` in its own process. The progress is read from a pseudo-terminal: when
reading ended, and how many passes were made. The memory is the peak resident memory of the process and its children,
including mapped files. The files of one number of judgments are removed before the next ones are written, and results
are written after every run, so that an interrupted series keeps what it has measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
from machine import describe, record, sentence
from scipy.special import expit
from scipy.stats import kendalltau

from crowdrank.engines.out_of_core import parse_bytes

_RESULTS = Path(__file__).parent / "results"
_ROWS_PER_FILE = 2_000_000
_MODELS = ("bradley-terry", "crowd-bt")
_TOPICS = ("essay", "photo", "answer", "headline", "summary", "poster", "recipe", "melody")
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Entry:
    """One run of the command."""

    model: str
    uncertainty: bool
    judgments: int
    items: int
    annotators: int
    limit_megabytes: int
    peak_megabytes: int
    """Resident at the peak, after reading began."""
    reading_megabytes: int
    """Resident at the peak while reading."""
    disk_megabytes: int
    """Of temporary files, at the most."""
    reading_seconds: float
    fitting_seconds: float
    """From the end of reading to the end of the command."""
    processor_seconds: float
    """Of the whole command, user and system."""
    parquet_megabytes: int
    passes: int
    kendall: float
    """Correlation with the truth."""
    log_likelihood: float

    @property
    def within(self) -> bool:
        return self.peak_megabytes <= self.limit_megabytes


@dataclass(frozen=True)
class Truth:
    """Who would win, and who would say so."""

    items: pl.Series
    scores: np.ndarray[Any, np.dtype[np.float64]]
    annotators: pl.Series
    quality: np.ndarray[Any, np.dtype[np.float64]]


def imagine(items: int, annotators: int) -> Truth:
    """Scores from N(0, 1) and qualities from Beta(5, 1), behind names as long as real ones."""
    rng = np.random.default_rng(0)
    labels = [f"{_TOPICS[n % len(_TOPICS)]}-{n:06d}-v{n % 7}" for n in range(items)]
    people = [f"worker_{n:06x}{rng.integers(1 << 32):08x}" for n in range(annotators)]
    scores, quality = rng.standard_normal(items), rng.beta(5, 1, annotators)
    return Truth(pl.Series(labels), scores, pl.Series(people), quality)


def write(truth: Truth, rows: int, folder: Path) -> None:
    """Parts of a few million rows, one in memory at a time."""
    folder.mkdir(parents=True)
    for part, start in enumerate(range(0, rows, _ROWS_PER_FILE)):
        frame = _answers(truth, min(_ROWS_PER_FILE, rows - start), part)
        frame.write_parquet(folder / f"part-{part:05d}.parquet")


def _answers(truth: Truth, rows: int, part: int) -> pl.DataFrame:
    rng = np.random.default_rng([1, part])
    items = len(truth.items)
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    who = rng.integers(len(truth.annotators), size=rows)
    better = rng.random(rows) < expit(truth.scores[left] - truth.scores[right])
    won = np.where(better == (rng.random(rows) < truth.quality[who]), left, right)
    names = truth.items
    return pl.DataFrame(
        {"worker": truth.annotators[who], "left": names[left], "right": names[right], "winner": names[won]}
    )


class Screen:
    """A terminal for the command to tell its progress on."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.reading_ended: float | None = None
        self.passes = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        unread = b""
        while True:
            try:
                fresh = os.read(self.ours, 1 << 16)
            except OSError:  # the other end is closed
                return
            unread = (unread + fresh)[-4096:]
            if self.reading_ended is None and b"Ranking" in unread:
                self.reading_ended = time.perf_counter()
            for found in re.findall(rb"pass ([\d,]+)", unread):
                self.passes = max(self.passes, int(found.replace(b",", b"")))

    def close(self) -> None:
        os.close(self.theirs)
        self._reader.join(5.0)
        os.close(self.ours)


@dataclass
class Peaks:
    """What the system says of a process, looked at again and again."""

    resident: int = 0
    reading: int = 0
    disk: int = 0

    def look(self, process: psutil.Process, folder: Path, reading: bool) -> None:
        try:
            family = [process, *process.children(recursive=True)]
            resident = sum(_resident(member.pid) for member in family)
        except (psutil.Error, OSError):  # it has just ended
            return
        self.resident = max(self.resident, resident)
        if reading:
            self.reading = self.resident
        self.disk = max(self.disk, _size(folder))


def _resident(pid: int) -> int:
    """Bytes resident at the peak of this process, mapped files included."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 0 if found is None else int(found[1]) * 1024


def _size(folder: Path) -> int:
    """Bytes on disk of all files below; some may be going while they are counted."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(path, name)).st_blocks * 512
    return total


def run(
    votes: Path, truth: Truth, model: str, memory: str, uncertainty: bool, rows: int, settings: Sequence[str] = ()
) -> Entry:
    with tempfile.TemporaryDirectory(dir=votes.parent) as scratch:
        told = Path(scratch) / "ranking.json"
        inside = Path(scratch) / "temporary"
        inside.mkdir()
        command = [
            str(Path(sys.executable).parent / "crowdrank"),
            "rank",
            str(votes),
            "--memory",
            memory,
            "--model",
            model,
            "--uncertainty",
            "model" if uncertainty else "none",
            "--json",
        ]
        for setting in settings:
            command += ["--set", setting]
        screen, peaks = Screen(), Peaks()
        environment = os.environ | {"TMPDIR": str(inside), "COLUMNS": "200", "TERM": "xterm"}
        begun, used = time.perf_counter(), _used_by_children()
        with told.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=screen.theirs, env=environment)
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            peaks.look(watched, inside, screen.reading_ended is None)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        ended, used = time.perf_counter(), _used_by_children() - used
        screen.close()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        answer = json.loads(told.read_text())
    read = screen.reading_ended or ended
    return Entry(
        " ".join((model, *settings)),
        uncertainty,
        rows,
        len(truth.items),
        len(truth.annotators),
        round(parse_bytes(memory) / 1e6),
        round(peaks.resident / 1e6),
        round(peaks.reading / 1e6),
        round(peaks.disk / 1e6),
        round(read - begun, 1),
        round(ended - read, 1),
        round(used, 1),
        round(_size(votes) / 1e6),
        screen.passes,
        round(_agreement(answer, truth), 4),
        answer["log_likelihood"],
    )


def _used_by_children() -> float:
    """Processor seconds of all child processes that have ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _agreement(answer: Any, truth: Truth) -> float:
    scores = {row["item"]: row["score"] for row in answer["ranking"]}
    return float(kendalltau([scores[name] for name in truth.items], truth.scores).statistic)


def page(entries: Sequence[Entry], described: dict[str, Any]) -> str:
    """One line per run, and the growth of time and memory with the number of judgments if there are several."""
    head = (
        "judgments",
        "Parquet",
        "model",
        "uncertainty",
        "limit",
        "peak",
        "while reading",
        "temporary files",
        "reading",
        "fitting",
        "processor time",
        "passes",
        "Kendall's τ to the truth",
        "log-likelihood",
    )
    lines = [_line(head), _line(["---:", "---:", "---", "---", *["---:"] * (len(head) - 4)])]
    for e in entries:
        peak = f"{e.peak_megabytes:,} MB" + ("" if e.within else " (**over**)")
        lines.append(
            _line(
                (
                    f"{e.judgments:,}",
                    f"{e.parquet_megabytes / 1e3:.2f} GB",
                    e.model,
                    "yes" if e.uncertainty else "no",
                    f"{e.limit_megabytes:,} MB",
                    peak,
                    f"{e.reading_megabytes:,} MB",
                    f"{e.disk_megabytes:,} MB",
                    f"{e.reading_seconds:,.1f} s",
                    f"{e.fitting_seconds:,.1f} s",
                    f"{e.processor_seconds:,.1f} s",
                    f"{e.passes}",
                    f"{e.kendall:.4f}",
                    f"{e.log_likelihood:.6f}",
                )
            )
        )
    first, sizes = entries[0], sorted({e.judgments for e in entries})
    title = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    return (
        f"# {title} judgments on disk\n\n{sentence(described)}\n\n"
        f"{first.items:,} items, {first.annotators:,} annotators. "
        "`crowdrank rank FOLDER --memory LIMIT --model MODEL`, the whole command; fitting ends with it.\n\n"
        + "\n".join(lines)
        + "\n"
        + "".join(f"\n{line}" for line in growth(entries))
    )


def growth(entries: Sequence[Entry]) -> list[str]:
    """Exponents of time and peak memory by number of judgments, from the fewest to the most of each model."""
    found = []
    for kind in dict.fromkeys((e.model, e.uncertainty, e.limit_megabytes) for e in entries):
        own = sorted(
            (e for e in entries if (e.model, e.uncertainty, e.limit_megabytes) == kind), key=lambda e: e.judgments
        )
        few, many = own[0], own[-1]
        if few.judgments == many.judgments:
            continue
        decades = math.log(many.judgments / few.judgments)

        def exponent(name: str, few: Entry = few, many: Entry = many, decades: float = decades) -> str:
            return f"{math.log(getattr(many, name) / max(getattr(few, name), 1e-9)) / decades:.2f}"

        errors = "with" if kind[1] else "without"
        found.append(
            f"{kind[0]} {errors} uncertainty, from {few.judgments:,} to {many.judgments:,} judgments: reading grows "
            f"with an exponent of {exponent('reading_seconds')}, fitting {exponent('fitting_seconds')}, processor time "
            f"{exponent('processor_seconds')}, peak memory {exponent('peak_megabytes')}.\n"
        )
    return found


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


@contextmanager
def scratch_folder(named: Path | None) -> Iterator[Path]:
    """A folder that is emptied at the end."""
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="large-", dir=named))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", default="1e8", help="one number of judgments or several: 1e7,1e8,1e9")
    options.add_argument("--items", type=float, default=1e4)
    options.add_argument("--annotators", type=float, default=1e4)
    options.add_argument("--memory", default="4GB", help="one limit or several: 500MB,4GB")
    options.add_argument("--models", default=",".join(_MODELS))
    options.add_argument("--set", dest="settings", action="append", default=[], help="a setting: estimation=joint")
    options.add_argument("--uncertainty", choices=("both", "no", "yes"), default="both")
    options.add_argument("--scratch", type=Path, help="where the Parquet and temporary files go")
    options.add_argument("--out", type=Path, default=_RESULTS)
    options.add_argument("--name", default="large", help="of the result files")
    options.add_argument("--quick", action="store_true", help="a million judgments, printed only")
    given = options.parse_args()
    sizes = [1_000_000] if given.quick else [int(float(size)) for size in given.rows.split(",")]
    described, truth = describe(), imagine(int(given.items), int(given.annotators))
    wanted = {"both": (False, True), "no": (False,), "yes": (True,)}[given.uncertainty]
    entries: list[Entry] = []
    for rows in sizes:
        with scratch_folder(given.scratch) as folder:
            _check_disk(folder, rows)
            votes = folder / "votes"
            begun = time.perf_counter()
            write(truth, rows, votes)
            took = time.perf_counter() - begun
            print(f"{rows:,} judgments, {_size(votes) / 1e9:.2f} GB of Parquet, in {took:.0f} s", flush=True)
            for memory, model, uncertainty in product(given.memory.split(","), given.models.split(","), wanted):
                entries.append(run(votes, truth, model, memory, uncertainty, rows, given.settings))
                print(asdict(entries[-1]), flush=True)
                if not given.quick:
                    _keep(entries, described, given.out, given.name)
    if given.quick:
        print(page(entries, described))
    return 0 if all(entry.within for entry in entries) else 1


def _check_disk(folder: Path, rows: int) -> None:
    """Refuse to fill the disk: about 9 bytes of Parquet and 13 of codes per judgment."""
    needed, free = 25 * rows, shutil.disk_usage(folder).free
    if needed > free:
        raise SystemExit(f"{rows:,} judgments need {needed / 1e9:.0f} GB in {folder}, {free / 1e9:.0f} GB are free.")


def _keep(entries: Sequence[Entry], described: dict[str, Any], out: Path, name: str) -> None:
    content = {"machine": described, "entries": [asdict(e) for e in entries]}
    (out / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    (out / f"{name}.md").write_text(page(entries, described))
    record(Path(__file__), out, name)


if __name__ == "__main__":
    sys.exit(main())
