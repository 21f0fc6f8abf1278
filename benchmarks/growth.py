"""How cost grows with size: reading files, the bootstrap, the choice of a question, TPP and learning from crowds.

python benchmarks/growth.py                     all of it, written to benchmarks/results/
python benchmarks/growth.py --quick             the two or three smallest sizes of each, printed only
python benchmarks/growth.py --only questions    one part, printed only
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import machine
import numpy as np
from report import duration, write_csv

import crowdrank as cr
from crowdrank.errors import ConvergenceWarning

_RESULTS = Path(__file__).parent / "results"
# A run longer than this is not repeated, and none is begun that should take longer than the limit.
_LONGEST_REPEATED, _REPETITIONS = 2.0, 3


@dataclass(frozen=True)
class Entry:
    """One measurement at one size."""

    part: str
    what: str
    unit: str
    """What the size counts."""
    size: int
    seconds: float


@dataclass(frozen=True)
class Task:
    """A line of the figure: how to prepare a size, and what is then timed."""

    part: str
    what: str
    unit: str
    sizes: Sequence[int]
    prepare: Callable[[int], Callable[[], Any]]
    quick: int = 2
    """How many of the sizes a quick run does."""

    def run(self, quick: bool, limit: float) -> Iterator[Entry]:
        """Run sizes from the smallest; stop when the next one would exceed the limit under linear growth."""
        before: Entry | None = None
        for size in self.sizes[: self.quick] if quick else self.sizes:
            if before is not None and before.seconds * size / before.size > limit:
                print(f"{self.part}, {self.what}: {size:,} {self.unit} and more would take longer than {limit:.0f} s")
                return
            before = Entry(self.part, self.what, self.unit, size, best_of(self.prepare(size)))
            print(f"{self.part:<18} {self.what:<32} {size:>11,} {self.unit:<10} {duration(before.seconds)}", flush=True)
            yield before


def best_of(run: Callable[[], Any]) -> float:
    best = np.inf
    for _ in range(_REPETITIONS):
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
        if best > _LONGEST_REPEATED:
            break
    return float(best)


def reading(folder: Path, ending: str) -> Callable[[int], Callable[[], Any]]:
    """Names of 10,000 items and 500 annotators, one file a size, removed when the next is written."""
    import door

    def prepare(rows: int) -> Callable[[], Any]:
        file = folder / f"votes.{ending}"
        door.write_votes(file, 10_000, rows)
        return lambda: cr.read(file)

    return prepare


def resampling(rows: int, resamples: int, items: int = 1_000) -> Callable[[], Any]:
    """Bradley-Terry refitted to answers of resampled annotators."""
    from crowd_peers import draw

    from crowdrank.models import BradleyTerry, with_bootstrap

    votes, _ = draw(items, 100, rows)
    model = BradleyTerry()
    ranking = model.fit(votes)
    return lambda: with_bootstrap(model, votes, ranking, resamples).uncertainty


def asking(whom: str) -> Callable[[int], Callable[[], Any]]:
    """The most informative question after two votes per item, for one annotator or the best for 1,000."""
    import questions

    def prepare(items: int) -> Callable[[], Any]:
        columns = questions.after(2)(items, 1_000, np.random.default_rng(0))
        beliefs = questions.believed(columns)
        if whom == "one":
            return lambda: questions.best_pair(beliefs, 0)
        return lambda: questions.best_triplet(beliefs)

    return prepare


def thurstonian(fits: bool) -> Callable[[int], Callable[[], Any]]:
    """Queries of 10 items, each judged by 10 annotators on 30 % of its pairs: 130 judgments a query."""
    from crowdrank.models.thurstonian.sampler import Sampler
    from crowdrank.simulation import domain_crowd

    def prepare(queries: int) -> Callable[[], Any]:
        judgments = domain_crowd(queries=queries, items=10, sparsity=0.3, seed=1).judgments
        if fits:
            return lambda: cr.TPP().fit(judgments)
        sampler, rng = Sampler.of(judgments, None, 0), np.random.default_rng(0)
        state = sampler.tune(rng, sampler.init(rng))
        return lambda: sampler.run(rng, state, 20)

    return prepare


def learning(queries: int) -> Callable[[], Any]:
    """15 iterations of EM with a linear function: queries of 15 items, ordered by 10 annotators."""
    import ltr_crowds
    from ltr_crowds import build_crowd_lists, list_crowd

    made = list_crowd(queries=queries, expertise="uniform(-0.4,-0.02)", first_expertise=None, labels="mallows", seed=1)
    values = np.column_stack(list(made.features.values()))
    crowd = build_crowd_lists(made.judgments.items, made.judgments, np.arange(len(values)), None, None, None)
    return lambda: ltr_crowds.ours(crowd, values)


def tasks(folder: Path) -> list[Task]:
    rows = (10_000, 100_000, 1_000_000, 10_000_000)
    queries = (10, 30, 100, 300, 1_000)
    return [
        Task("file door", "CSV", "rows", rows, reading(folder, "csv")),
        Task("file door", "Parquet", "rows", rows, reading(folder, "parquet")),
        Task("bootstrap", "50 resamples", "rows", rows[:3], lambda size: resampling(size, 50)),
        Task("resamples", "100,000 rows", "resamples", (10, 50, 200, 1_000), lambda size: resampling(100_000, size)),
        Task("question", "one annotator's best pair", "items", (100, 1_000, 10_000, 100_000), asking("one")),
        Task("question", "best of all triplets", "items", (100, 1_000, 10_000, 100_000), asking("all")),
        Task("TPP", "fit, default settings", "queries", queries, thurstonian(fits=True)),
        Task("TPP", "20 sweeps of a chain", "queries", queries, thurstonian(fits=False)),
        Task("LTR from crowds", "15 iterations", "queries", queries, learning),
    ]


def exponents(entries: Sequence[Entry]) -> dict[tuple[str, str], float]:
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for e in entries:
        points.setdefault((e.part, e.what), []).append((e.size, e.seconds))
    return {name: figures.exponent(of) for name, of in points.items()}


def table(entries: Sequence[Entry]) -> str:
    """A line each: what it takes at every size, and the power of the size it grows as."""
    lines = ["| | | | power |", "| --- | --- | --- | ---: |"]
    for (part, what), power in exponents(entries).items():
        here = [e for e in entries if (e.part, e.what) == (part, what)]
        took = ", ".join(f"{e.size:,}: {duration(e.seconds)}" for e in here)
        lines.append(f"| {part} | {what} | {here[0].unit} {took} | {power:.2f} |")
    return "\n".join(lines) + "\n"


def page(entries: Sequence[Entry], described: str) -> str:
    return (
        f"# Growth\n\n{described}\n\nTimes are the best of up to {_REPETITIONS}. The power is the slope between the "
        "logarithms of size and time over the largest two decades of sizes: 1 is linear. ../README.md describes "
        "the method.\n\n" + table(entries)
    )


def draw_figure(entries: Sequence[Entry], folder: Path) -> None:
    """A panel a part; a line is named with its power."""
    powers = exponents(entries)
    panels = []
    for part in dict.fromkeys(e.part for e in entries):
        lines: dict[str, list[tuple[float, float]]] = {}
        for e in (e for e in entries if e.part == part):
            power = powers[part, e.what]
            name = e.what if power != power else f"{e.what}, n^{power:.2f}"
            lines.setdefault(name, []).append((e.size, e.seconds))
        unit = next(e.unit for e in entries if e.part == part)
        panels.append(figures.Panel(part, lines, unit, ours=next(iter(lines))))
    figures.draw(panels, folder / "growth.svg", columns=2, width=250, height=190)


def write(entries: Sequence[Entry], text: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_csv(entries, out / "growth.csv")
    (out / "growth.md").write_text(text, encoding="utf-8")
    machine.record(Path(__file__), out, "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest sizes of each, printed only")
    parser.add_argument("--only", default="", help="parts to run, separated by commas: " + ", ".join(_PARTS))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds one run may be expected to take")
    parser.add_argument("--out", type=Path, help="where to write; benchmarks/results for a full run")
    options = parser.parse_args()
    out = options.out or (None if options.quick or options.only else _RESULTS)
    warnings.simplefilter("ignore", ConvergenceWarning)
    described = machine.sentence(machine.describe())
    chosen = [_PARTS[name] for name in options.only.split(",")] if options.only else list(_PARTS.values())
    with tempfile.TemporaryDirectory() as folder:
        todo = [task for task in tasks(Path(folder)) if task.part in chosen]
        for task in todo:
            task.prepare(task.sizes[0])()  # imports and compilation come before the clock
        entries = [entry for task in todo for entry in task.run(options.quick, options.limit)]
    print("\n" + table(entries))
    if out is not None:
        write(entries, page(entries, described), out)
        draw_figure(entries, out if options.out else figures.IMAGES)


_PARTS = {
    "door": "file door",
    "bootstrap": "bootstrap",
    "resamples": "resamples",
    "questions": "question",
    "tpp": "TPP",
    "ltr": "LTR from crowds",
}


if __name__ == "__main__":
    main()
