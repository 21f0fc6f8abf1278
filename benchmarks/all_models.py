"""Every model on three sets of real judgments: the time of a fit and of its default uncertainty, as ratios.

python benchmarks/all_models.py                       every model on the three sets, written to benchmarks/results/
python benchmarks/all_models.py --quick               reading_difficulty only, printed
python benchmarks/all_models.py --only mpm,crowd-agg  some models, printed

Times are those of the processor, relative to the simplest model of each kind of judgments: in one run, ratios do not
depend on the load of the machine. Every model runs in a process of its own, warmed up on a few rows, and is ended after
`--limit` seconds of the processor. Data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import describe, record, sentence

import crowdrank as cr
from crowdrank.errors import CrowdrankError
from crowdrank.models.selection import convert_for

_HERE = Path(__file__).resolve().parent
_SETS = {
    "reading_difficulty": ("reading_difficulty/pairwise.csv", "bradley-terry"),
    "mq2008_agg": ("mq2008_agg/dev_rankings.csv", "plackett-luce"),
    "snow2008": ("snow2008/ratings.csv", "mean-rating"),
}
"""The file of each set, and the model that the others are compared with."""
_WARM_ROWS = 60
# Seconds of the processor in addition to the limit, for compiling during the warm-up.
_COMPILING = 60


@dataclass(frozen=True)
class Row:
    """One model on one set. Seconds of the processor; `status` says why they are missing."""

    data: str
    model: str
    status: str
    fit: float = float("nan")
    uncertainty: float = float("nan")
    method: str = ""


def load(name: str) -> Any:
    folder = Path(os.environ.get("CROWDRANK_DATA", _HERE.parents[1] / "shared" / "data"))
    return cr.read(folder / _SETS[name][0], warn=False)


def measure(data: str, judgments: Any, model: str, limit: float) -> Row:
    """Fit in a child process that can be ended, whatever compiled code it is in."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_run, args=(queue, judgments, model, limit))
    child.start()
    child.join()
    if child.exitcode == -signal.SIGXCPU:
        return Row(data, model, f"more than {limit:g} s")
    if queue.empty():
        return Row(data, model, f"exit status {child.exitcode}")
    return Row(data, model, **queue.get())


def _run(queue: Any, judgments: Any, name: str, limit: float) -> None:
    warnings.simplefilter("ignore")
    own = resource.getrusage(resource.RUSAGE_SELF)
    most = int(own.ru_utime + own.ru_stime + limit) + _COMPILING
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    model = cr.models.REGISTRY[name]()
    try:
        converted, _ = convert_for(model, judgments)
        first = converted.take(slice(0, _WARM_ROWS))
        with contextlib.suppress(CrowdrankError):  # too few judgments for this model
            assert model.fit(first).uncertainty
        begun = time.process_time()
        ranking = model.fit(converted)
        fitted = time.process_time()
        found = ranking.uncertainty
        seconds = {"fit": fitted - begun, "uncertainty": time.process_time() - fitted}
        queue.put({"status": "ok", **seconds, "method": found.method if found else "none"})
    except CrowdrankError as error:
        queue.put({"status": str(error).split(". ")[0]})


def table(rows: list[Row]) -> str:
    """Markdown: one line per model, ratios to the model of comparison of each set."""
    sets = list(dict.fromkeys(row.data for row in rows))
    lines = [f"| | {' | '.join(f'{name}: fit, uncertainty' for name in sets)} |", "|---" * (len(sets) + 1) + "|"]
    for model in dict.fromkeys(row.model for row in rows):
        cells = [_cell([row for row in rows if row.data == name], name, model) for name in sets]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rows: list[Row], data: str, model: str) -> str:
    row = next((row for row in rows if row.model == model), None)
    base = next((row for row in rows if row.model == _SETS[data][1] and row.status == "ok"), None)
    if row is None or row.status != "ok" or base is None:
        return row.status if row is not None else ""
    whole = base.fit + base.uncertainty
    return f"{row.fit / whole:.2f}, {row.uncertainty / whole:.2f} ({row.fit + row.uncertainty:.2f} s)"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--data", default="")
    options.add_argument("--limit", type=float, default=120.0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    sets = given.data.split(",") if given.data else ["reading_difficulty"] if given.quick else list(_SETS)
    models = given.only.split(",") if given.only else list(cr.models.REGISTRY)
    rows = []
    for name in sets:
        judgments = load(name)
        for model in dict.fromkeys([_SETS[name][1], *models]):
            rows.append(measure(name, judgments, model, given.limit))
            print(rows[-1], file=sys.stderr, flush=True)
    text = table(rows)
    print(text)
    if given.out or not (given.quick or given.only or given.data):
        out = given.out or _HERE / "results"
        out.mkdir(exist_ok=True)
        machine = describe()
        (out / "all_models.json").write_text(json.dumps({"machine": machine, "rows": [asdict(r) for r in rows]}) + "\n")
        (out / "all_models.md").write_text(f"{text}\n{sentence(machine)}\n")
        record(Path(__file__), out, "all_models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
