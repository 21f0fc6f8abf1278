"""Has anything become slower? Ratios to a bare loop, or to a peer, in one run, beside those that are kept.

python benchmarks/check.py           fails where a ratio has grown to more than 1.5 times what it was
python benchmarks/check.py --keep    measures, and keeps what it finds from now on

Ratios of times on one machine in one run mean the same on any machine; times do not. Passes over the judgments mean
the same anywhere, and are kept as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crowd_bt
import kernels
import polars as pl
from machine import describe, record

import crowdrank as cr

_KEPT = Path(__file__).parent / "results" / "check.json"
_WORST = 1.5
_TRIES = 3


def of_kernels() -> dict[str, float]:
    """Each kernel over the bare loop, by the processor's time."""
    found = kernels.measure_all(kernels.QUICK)
    return {f"{e.kernel}, {e.threads} threads": e.times_bare for e in found if e.kernel != "bare loop"}


def of_fits() -> dict[str, float]:
    """A fit of Crowd-BT over the same objective written in NumPy and climbed by SciPy."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 100_000)
    rival = crowd_bt.NumPy(votes)
    crowd_bt.JOINT.fit(votes)
    ours, _ = crowd_bt.clock(lambda: crowd_bt.JOINT.fit(votes))
    theirs, _ = crowd_bt.clock(lambda: rival.fit(1e-9))
    return {"crowd-bt, 100,000 judgments, over NumPy": round(ours / theirs, 2)}


def of_passes() -> dict[str, float]:
    """How often a fit passes over its judgments."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 1_000_000)
    found: dict[str, float] = {}
    for model in (cr.BradleyTerry(), crowd_bt.JOINT):
        passes: list[int] = []
        name = model.fit(votes, engine=cr.engines.ProgressEngine(cr.engines.LOCAL, passes.append)).model
        found[f"{name}, 1,000,000 judgments, passes"] = float(passes[-1])
    return found


def of_reading() -> dict[str, float]:
    """Scanning Parquet over reading the same columns and telling their names apart, by the processor's time."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "votes.parquet"
        votes.to_frame().write_parquet(file)
        theirs = _least_processor_time(lambda: pl.read_parquet(file).with_columns(pl.all().cast(pl.Categorical)))
        ours = _least_processor_time(lambda: cr.scan(file))
    return {"reading 1,000,000 judgments of Parquet, over polars": round(ours / theirs, 2)}


def _least_processor_time(work: Callable[[], Any]) -> float:
    least = float("inf")
    for _ in range(4):
        begun = time.process_time()
        work()
        least = min(least, time.process_time() - begun)
    return least


def measured() -> dict[str, float]:
    return of_kernels() | of_fits() | of_passes() | of_reading()


def grown(found: dict[str, float], kept: dict[str, float]) -> dict[str, float]:
    """What has become slower by too much, and how many times."""
    times = {name: ratio / kept[name] for name, ratio in found.items() if name in kept}
    return {name: by for name, by in times.items() if by > _WORST}


def check(kept: dict[str, float]) -> dict[str, float]:
    """A busy machine may slow one and not the other: only what is slower every time has become so."""
    slower = grown(measured(), kept)
    for _ in range(_TRIES - 1):
        if not slower:
            break
        again = grown(measured(), kept)
        slower = {name: min(by, again[name]) for name, by in slower.items() if name in again}
    return slower


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keep", action="store_true")
    if options.parse_args().keep:
        content: dict[str, Any] = {"machine": describe(), "ratios": measured()}
        _KEPT.write_text(json.dumps(content, indent=2) + "\n")
        record(Path(__file__), _KEPT.parent, _KEPT.stem)
        return 0
    slower = check(json.loads(_KEPT.read_text())["ratios"])
    for name, by in slower.items():
        print(f"{name}: {by:.2f} times what it was")
    print("Slower than it was." if slower else "Nothing has become slower.")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
