"""The same fit on one core and on several, with threads and Dask workers; and real message sizes next to estimates.

python benchmarks/scaling.py            ten million judgments of 10,000 items by 10,000 annotators
python benchmarks/scaling.py --quick    a million, printed only

Each fit runs in its own process, which may use a given number of cores; Dask workers are processes of one thread each
on this machine. The overhead of a pass is measured by passes that compute nothing: parameters are sent to every shard,
and sums of the same size are returned.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import crowd_bt
import kernels
import messages
import numpy as np
from machine import describe, record, sentence

import crowdrank as cr
from crowdrank.data import Comparisons
from crowdrank.data.chunks import TemporaryFolder, write_columns
from crowdrank.data.comparisons import stored_columns
from crowdrank.engines import LOCAL, Dask, Engine, ProgressEngine
from crowdrank.models.crowd import likelihood, objective
from crowdrank.models.crowd.encoding import answer_table

_RESULTS = Path(__file__).parent / "results"
_MODELS = {"bradley-terry": cr.BradleyTerry, "crowd-bt": cr.CrowdBT}
_SIZE, _QUICK = (10_000, 10_000, 10_000_000), (1_000, 1_000, 1_000_000)
_SENT = ((1_000, 1_000), (10_000, 10_000), (100_000, 10_000), (100_000, 100_000))
_EMPTY_PASSES = 20


@dataclass(frozen=True)
class Entry:
    """One model on so many cores."""

    model: str
    where: str
    """threads, or workers of Dask."""
    count: int
    judgments: int
    seconds: float
    passes: int
    overhead_milliseconds: float
    """Of a pass that computes nothing."""
    log_likelihood: float
    speed_up: float = 1.0


def echo(shard: Any, *parameters: Any) -> Any:
    return parameters


def fit_here(model: str, where: str, count: int, size: Sequence[int]) -> Entry:
    """In this process, which may use `count` cores from now on."""
    if where == "threads":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    votes, _ = crowd_bt.draw(*size)
    passes = 0

    def tell(number: int) -> None:
        nonlocal passes
        passes = number

    with _engine(where, count) as engine:
        judged = votes if where == "threads" else _in_files(votes)
        fits = [_clock(lambda: _MODELS[model]().fit(judged, engine=ProgressEngine(engine, tell))) for _ in range(3)]
        seconds, ranking = min(fits[1:], key=lambda fit: fit[0])  # the first one compiles, and loads
        overhead = _overhead(engine, judged)
    return Entry(
        model, where, count, len(votes), round(seconds, 3), passes, round(1e3 * overhead, 2), ranking.log_likelihood
    )


def _clock(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def _overhead(engine: Engine, votes: Comparisons) -> float:
    held = engine.load(answer_table(votes))
    parameters = np.zeros(len(votes.items)), np.zeros(len(votes.annotators))
    held.sum(echo, *parameters)
    return min(_clock(lambda: held.sum(echo, *parameters))[0] for _ in range(_EMPTY_PASSES))


def _in_files(votes: Comparisons) -> Comparisons:
    """As `crowdrank.scan` would give them."""
    return votes.with_storage(write_columns(iter([stored_columns(votes)]), TemporaryFolder()))


@contextmanager
def _engine(where: str, count: int) -> Iterator[Engine]:
    if where == "threads":
        yield LOCAL
        return
    import distributed

    wished: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**wished, silence_logs=logging.ERROR) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Dask(client)


def fit_apart(model: str, where: str, count: int, size: Sequence[int]) -> Entry:
    """In a process of its own."""
    job = [sys.executable, __file__, "--one", model, where, str(count), *map(str, size)]
    told = subprocess.run(job, capture_output=True, text=True, check=True).stdout
    return Entry(**json.loads(told.splitlines()[-1]))


def measure(size: Sequence[int]) -> list[Entry]:
    counts = sorted({1, os.cpu_count() or 1})
    found: list[Entry] = []
    for model in _MODELS:
        for where in ("threads", "workers"):
            alone = None
            for count in counts:
                entry = fit_apart(model, where, count, size)
                alone = alone or entry.seconds
                found.append(Entry(**asdict(entry) | {"speed_up": round(alone / entry.seconds, 2)}))
                print(found[-1], flush=True)
    return found


def message_sizes(items: int, annotators: int) -> list[str]:
    """Real messages of a pass of Crowd-BT, pickled, beside what `messages.py` reckons with."""
    shard = kernels.draw(items, annotators, 10_000)
    parameters = np.zeros(items), np.zeros(annotators), np.zeros((annotators, 0))
    rows, slopes = likelihood.evaluate(shard, *parameters, likelihood.CROWD_BT)
    sums = objective.hessian_product(rows, *parameters)
    real = [len(pickle.dumps(message, protocol=5)) for message in (parameters, slopes, sums)]
    said = messages.parameters_of(items, annotators), messages.sums_of(items, annotators)
    reckoned = (said[0], said[1], said[0])
    cells = [f"{mine / 1e6:.3f} MB ({mine / theirs - 1:+.2%})" for mine, theirs in zip(real, reckoned, strict=True)]
    return [f"{items:,}", f"{annotators:,}", *cells]


def page(entries: Sequence[Entry], described: dict[str, Any]) -> str:
    head = ("model", "on", "time", "speed-up", "passes", "a pass", "an empty pass", "log-likelihood")
    lines = [_line(head), _line(["---", "---", *["---:"] * 6])]
    for e in entries:
        each = f"{1e3 * e.seconds / e.passes:.1f} ms"
        lines.append(
            _line(
                (
                    e.model,
                    f"{e.count} {e.where}",
                    f"{e.seconds:.2f} s",
                    f"{e.speed_up:.2f}",
                    f"{e.passes}",
                    each,
                    f"{e.overhead_milliseconds:.1f} ms",
                    f"{e.log_likelihood:.6f}",
                )
            )
        )
    sizes = ("items", "annotators", "parameters", "sums of a gradient", "sums of a product")
    sent = [_line(sizes), _line(["---:"] * 5), *(_line(message_sizes(*size)) for size in _SENT)]
    judged = entries[0].judgments if entries else 0
    return (
        f"# The same fit on more cores\n\n{sentence(described)}\n\n{judged:,} judgments. An empty pass sends all "
        "parameters to every shard and returns sums of the same size.\n\n"
        + "\n".join(lines)
        + "\n\n## Messages\n\nSizes of the pickled messages of a crowd-bt pass, and their difference from the "
        + "estimates of `messages.py`.\n\n"
        + "\n".join(sent)
        + "\n"
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=float, help="judgments, if not ten million")
    options.add_argument("--out", type=Path, default=_RESULTS)
    options.add_argument("--quick", action="store_true", help="a million judgments, printed only")
    options.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        model, where, *numbers = given.one
        count, *size = map(int, numbers)
        print(json.dumps(asdict(fit_here(model, where, count, size))))
        return
    described = describe()
    items, annotators, rows = _QUICK if given.quick else _SIZE
    found = page(measure((items, annotators, int(given.rows or rows))), described)
    print(found)
    if not given.quick:
        (given.out / "scaling.md").write_text(found)
        record(Path(__file__), given.out, "scaling")


if __name__ == "__main__":
    main()
