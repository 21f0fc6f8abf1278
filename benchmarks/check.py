"""Check that nothing has become slower: ratios to a bare loop or to another library, compared with stored ratios.

python benchmarks/check.py           fail if a ratio exceeds 1.5 times its stored value
python benchmarks/check.py --keep    measure and store the new values

Ratios of times within one run are comparable across machines; times are not. The number of passes over the judgments
does not depend on the machine and is stored as it is.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crowd_bt
import kernels
import numpy as np
import polars as pl
from machine import describe, record
from peers import Crowdrank, NumPy
from votes import draw

import crowdrank as cr
from crowdrank.data import Comparison

_KEPT = Path(__file__).parent / "results" / "check.json"
_WORST = 1.5
_TRIES = 3


def of_kernels() -> dict[str, float]:
    """Processor time of each kernel relative to the bare loop."""
    found = kernels.measure_all(kernels.QUICK)
    return {f"{e.kernel}, {e.threads} threads": e.times_bare for e in found if e.kernel != "bare loop"}


def of_fits() -> dict[str, float]:
    """Time of a Crowd-BT fit relative to the same objective in NumPy, maximised by SciPy."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 100_000)
    rival = crowd_bt.NumPy(votes)
    crowd_bt.JOINT.fit(votes)
    ours, _ = crowd_bt.clock(lambda: crowd_bt.JOINT.fit(votes))
    theirs, _ = crowd_bt.clock(lambda: rival.fit(1e-9))
    return {"crowd-bt, 100,000 judgments, over NumPy": round(ours / theirs, 2)}


def of_passes() -> dict[str, float]:
    """Number of passes of a fit over its judgments."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 1_000_000)
    found: dict[str, float] = {}
    for model in (cr.BradleyTerry(), crowd_bt.JOINT):
        passes: list[int] = []
        name = model.fit(votes, engine=cr.engines.ProgressEngine(cr.engines.LOCAL, passes.append)).model
        found[f"{name}, 1,000,000 judgments, passes"] = float(passes[-1])
    return found


def of_reading() -> dict[str, float]:
    """Processor time of scanning Parquet, relative to reading and encoding the same columns with polars."""
    votes, _ = crowd_bt.draw(1_000, 1_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "votes.parquet"
        votes.to_frame().write_parquet(file)
        theirs = _least_processor_time(lambda: pl.read_parquet(file).with_columns(pl.all().cast(pl.Categorical)))
        ours = _least_processor_time(lambda: cr.scan(file))
    return {"reading 1,000,000 judgments of Parquet, over polars": round(ours / theirs, 2)}


def of_models() -> dict[str, float]:
    """Processor time of a fit with its default uncertainty, relative to bradley-terry's."""
    votes, _ = crowd_bt.draw(300, 300, 12_000)
    names = ("bradley-terry", "rank-centrality", "crowd-agg", "mpm", "em-elo")
    seconds = {}
    for name in names:
        model = cr.models.REGISTRY[name]()
        seconds[name] = _least_processor_time(lambda model=model: model.fit(votes).uncertainty)
    base = seconds.pop(names[0])
    return {f"{name}, 12,000 judgments, over bradley-terry": round(each / base, 2) for name, each in seconds.items()}


def of_small_data() -> dict[str, float]:
    """Processor time of fits to 4,000 votes over NumPy with SciPy's L-BFGS, and of online updates over smaller ones."""
    drawn = draw(100, 4_000, 0)
    ours, numpy = Crowdrank(), NumPy()
    given, columns = ours.load(drawn), numpy.load(drawn)
    ratio = _ratio(lambda: ours.fit(ours.fresh(given), 1e-4), lambda: numpy.fit(columns, 1e-8), 20)
    found = {"bradley-terry, 4,000 votes, over NumPy": ratio}
    votes, _ = crowd_bt.draw(100, 100, 4_000)
    rival = crowd_bt.NumPy(votes)
    ratio = _ratio(lambda: crowd_bt.JOINT.fit(votes), lambda: rival.fit(1e-8), 20)
    found["crowd-bt, 4,000 votes, over NumPy"] = ratio
    for model in (cr.online.CrowdBT(), cr.online.TrueSkill(), cr.online.Elo(), cr.online.Glicko2()):
        ratio = _ratio(_updates(model, 10_000), _updates(model, 100), 5)
        found[f"{type(model).__name__}, update among 10,000 items, over 100"] = ratio
    return found


def _updates(model: Any, items: int) -> Callable[[], Any]:
    """A thousand updates of beliefs about this many items."""
    names, rng = [f"item {n}" for n in range(items)], np.random.default_rng(0)
    pairs = [rng.choice(items, 2, replace=False) for _ in range(1_000)]
    judgments = [Comparison(names[a], names[b], names[a], "ann") for a, b in pairs]
    start = model.start(names, ["ann"])
    return lambda: functools.reduce(model.update, judgments, start)


def _ratio(ours: Callable[[], Any], theirs: Callable[[], Any], repetitions: int) -> float:
    """Least processor times of several runs in turn."""
    pairs = [(_processor_time(ours), _processor_time(theirs)) for _ in range(repetitions)]
    one, other = (min(times) for times in zip(*pairs, strict=True))
    return round(one / other, 2)


def _processor_time(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _least_processor_time(work: Callable[[], Any]) -> float:
    return min(_processor_time(work) for _ in range(4))


def measured() -> dict[str, float]:
    return of_kernels() | of_fits() | of_passes() | of_reading() | of_models() | of_small_data()


def grown(found: dict[str, float], kept: dict[str, float]) -> dict[str, float]:
    """Ratios that have grown too much, and by which factor."""
    times = {name: ratio / kept[name] for name, ratio in found.items() if name in kept}
    return {name: by for name, by in times.items() if by > _WORST}


def check(kept: dict[str, float]) -> dict[str, float]:
    """Only ratios that are too large in every run count, because other load may slow down one side of a ratio."""
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
