"""The same fit on one core and on several, with threads and Dask workers; and real message sizes next to estimates.

python benchmarks/scaling.py            ten million judgments of 10,000 items by 10,000 annotators: results/scaling.md
python benchmarks/scaling.py --rows 1e8 --models crowd-bt --workers 1,2,4 --fits 2 --name scaling-1e8
                                        a hundred million, scanned from Parquet files (2.5 GB of disk)
python benchmarks/scaling.py --quick    a million, printed only

Each fit runs in its own process, which may use a given number of cores; Dask workers are processes of one thread each
on this machine. The overhead of a pass is measured by passes that compute nothing: parameters are sent to every shard,
and sums of the same size are returned.

Four workers on two cores take turns, so their time on the clock says little about four machines. The processor time of
every process is therefore measured as well. *Work* is the processor time of one thread without a cluster divided by
that of all processes together. *Efficiency* is what the same processes would reach with a core each if the driver and
the workers never worked at the same time: the processor time of one thread divided by the number of workers times
(the driver with the scheduler + the busiest worker). It leaves out the network.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import crowd_bt
import kernels
import large
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
# More judgments are written to Parquet and scanned.
_MOST_IN_MEMORY = 20_000_000


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
    own_processor_seconds: float
    """Of the process that fits; with workers it is the driver and the scheduler."""
    worker_processor_seconds: Sequence[float] = ()
    """Of each worker."""
    speed_up: float = 1.0
    work: float = 1.0
    """Processor time of one thread without a cluster, divided by that of all processes."""
    efficiency: float = 1.0
    """The same, divided by the number of workers times (driver + busiest worker)."""

    def compared_with(self, alone: Entry, thread: Entry) -> Entry:
        """With its speed-up over one of the same kind, and work and efficiency relative to one thread."""
        least = thread.own_processor_seconds
        total = self.own_processor_seconds + sum(self.worker_processor_seconds)
        longest = self.own_processor_seconds + max(self.worker_processor_seconds, default=0.0)
        efficiency = least / (self.count * longest) if self.where == "workers" else least / total
        return replace(
            self,
            speed_up=round(alone.seconds / self.seconds, 2),
            work=round(least / total, 2),
            efficiency=round(efficiency, 2),
        )


@dataclass(frozen=True)
class Plan:
    """What to fit, as given on the command line."""

    size: tuple[int, int, int]
    models: Sequence[str]
    threads: Sequence[int]
    workers: Sequence[int]
    fits: int
    scratch: Path | None


def echo(shard: Any, *parameters: Any) -> Any:
    return parameters


def fit_here(model: str, where: str, count: int, size: Sequence[int], fits: int, parquet: Path | None) -> Entry:
    """In this process, which may use `count` cores from now on. The first fit compiles and loads; it does not count."""
    if where == "threads":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    votes = crowd_bt.draw(*size)[0] if parquet is None else cr.scan(parquet, folder=parquet.parent)
    passes = 0

    def tell(number: int) -> None:
        nonlocal passes
        passes = number

    with _engine(where, count) as (engine, processor_times):
        judged = votes if where == "threads" or parquet is not None else _in_files(votes)
        found = []
        for _ in range(fits):
            before = processor_times()
            seconds, ranking = _clock(lambda: _MODELS[model]().fit(judged, engine=ProgressEngine(engine, tell)))
            used = [round(after - earlier, 2) for after, earlier in zip(processor_times(), before, strict=True)]
            found.append((seconds, used, ranking.log_likelihood))
        seconds, used, log_likelihood = min(found[1:])
        overhead = _overhead(engine, judged)
    return Entry(
        model,
        where,
        count,
        len(votes),
        round(seconds, 3),
        passes,
        round(1e3 * overhead, 2),
        log_likelihood,
        used[0],
        used[1:],
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
def _engine(where: str, count: int) -> Iterator[tuple[Engine, Callable[[], list[float]]]]:
    """An engine, and a function that returns the processor times of this process and of each worker."""
    if where == "threads":
        yield LOCAL, lambda: [time.process_time()]
        return
    import distributed

    wished: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**wished, silence_logs=logging.ERROR) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Dask(client), lambda: [time.process_time(), *client.run(time.process_time).values()]


def fit_apart(model: str, where: str, count: int, plan: Plan, parquet: Path | None) -> Entry:
    """In a process of its own."""
    numbers = map(str, (count, *plan.size, plan.fits))
    job = [sys.executable, __file__, "--one", model, where, *numbers, "" if parquet is None else str(parquet)]
    told = subprocess.run(job, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Entry(**json.loads(told.splitlines()[-1]))


def measure(plan: Plan) -> list[Entry]:
    """Every model with threads and with workers. One thread comes first: the others are compared with it."""
    found: list[Entry] = []
    with large.scratch_folder(plan.scratch) as folder:
        parquet = _parquet(plan.size, folder) if plan.size[2] > _MOST_IN_MEMORY else None
        for model in plan.models:
            thread = fit_apart(model, "threads", 1, plan, parquet)
            for where, counts in (("threads", plan.threads), ("workers", plan.workers)):
                alone = None
                for count in counts:
                    is_first = (where, count) == ("threads", 1)
                    entry = thread if is_first else fit_apart(model, where, count, plan, parquet)
                    alone = alone or entry
                    found.append(entry.compared_with(alone, thread))
                    print(found[-1], flush=True)
    return found


def _parquet(size: Sequence[int], folder: Path) -> Path:
    """Judgments of a crowd, written one file after the other, so that they never are in memory together."""
    items, annotators, rows = size
    large.write(large.imagine(items, annotators), rows, folder / "votes")
    return folder / "votes"


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
    head = (
        "model",
        "on",
        "time",
        "speed-up",
        "processor time",
        "work",
        "efficiency",
        "passes",
        "a pass",
        "an empty pass",
        "log-likelihood",
    )
    lines = [_line(head), _line(["---", "---", *["---:"] * (len(head) - 2)])]
    for e in entries:
        each = f"{1e3 * e.seconds / e.passes:.1f} ms"
        lines.append(
            _line(
                (
                    e.model,
                    f"{e.count} {e.where}",
                    f"{e.seconds:.2f} s",
                    f"{e.speed_up:.2f}",
                    _processor_time(e),
                    f"{e.work:.2f}",
                    f"{e.efficiency:.2f}",
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
        "parameters to every shard and returns sums of the same size. Work is the processor time of one thread divided "
        "by that of all processes; efficiency is that of one thread divided by the number of workers times the driver "
        "and the busiest worker, as if each had a core of its own.\n\n"
        + "\n".join(lines)
        + "\n\n## Messages\n\nSizes of the pickled messages of a crowd-bt pass, and their difference from the "
        + "estimates of `messages.py`.\n\n"
        + "\n".join(sent)
        + "\n"
    )


def _processor_time(entry: Entry) -> str:
    workers = entry.worker_processor_seconds
    return f"{entry.own_processor_seconds:.1f} s" + (f" + {sum(workers):.1f} s in workers" if workers else "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=float, help="judgments, if not ten million")
    options.add_argument("--models", default=",".join(_MODELS))
    cores = sorted({1, os.cpu_count() or 1})
    options.add_argument("--threads", default=",".join(map(str, cores)))
    options.add_argument("--workers", default=",".join(map(str, cores)))
    options.add_argument("--fits", type=int, default=3, help="of each kind, without the first, the best counts")
    options.add_argument("--scratch", type=Path, help="where judgments that do not fit in memory are written")
    options.add_argument("--out", type=Path, default=_RESULTS)
    options.add_argument("--name", default="scaling", help="of the result file")
    options.add_argument("--quick", action="store_true", help="a million judgments, printed only")
    options.add_argument("--one", nargs=8, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        model, where, *numbers, parquet = given.one
        count, *size, fits = map(int, numbers)
        print(json.dumps(asdict(fit_here(model, where, count, size, fits, Path(parquet) if parquet else None))))
        return
    if given.fits < 2:
        options.error("--fits must be at least 2: the first fit compiles and loads.")
    described = describe()
    items, annotators, rows = _QUICK if given.quick else _SIZE
    threads, workers = (
        [int(count) for count in counts.split(",") if count] for counts in (given.threads, given.workers)
    )
    size = (items, annotators, int(given.rows or rows))
    plan = Plan(size, given.models.split(","), threads, workers, given.fits, given.scratch)
    found = page(measure(plan), described)
    print(found)
    if not given.quick:
        (given.out / f"{given.name}.md").write_text(found)
        record(Path(__file__), given.out, given.name)


if __name__ == "__main__":
    main()
