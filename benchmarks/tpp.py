"""Processor time of TPP by number of judgments: 100 queries of 30 items, 200 annotators, 40,000 to 320,000 judgments.

python benchmarks/tpp.py            all of it, written to results/tpp.md
python benchmarks/tpp.py --quick    50 annotators, printed only
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import made, record
from report import duration

from crowdrank import TPP
from crowdrank.errors import ConvergenceWarning
from crowdrank.models.thurstonian.sampler import Sampler
from crowdrank.simulation import domain_crowd

_RESULTS = Path(__file__).parent / "results"
SHOWS = {"tpp": TPP()}
_SHARES = (0.005, 0.01, 0.02, 0.04)
_SWEEPS = 20
_REPETITIONS = 3


@dataclass(frozen=True)
class Entry:
    """One size."""

    judgments: int
    fit_seconds: float
    """From judgments in memory to scores, default settings."""
    sweeps: int
    """Sweeps until the chains converged."""
    r_hat: float
    sweep_seconds: float
    """Of one chain alone, the best of several."""


def measure(annotators: int, share: float) -> Entry:
    judgments = domain_crowd(annotators=annotators, sparsity=share, seed=1).judgments
    start = time.process_time()
    ranking = TPP().fit(judgments)
    taken = time.process_time() - start
    sampler, rng, walks = Sampler.of(judgments, None, 0), np.random.default_rng(0), []
    state = sampler.tune(rng, sampler.init(rng))
    for _ in range(_REPETITIONS):
        start = time.process_time()
        state, _ = sampler.run(rng, state, _SWEEPS)
        walks.append((time.process_time() - start) / _SWEEPS)
    steps, r_hat = ranking.convergence.steps, float(ranking.parameters["r_hat"])
    return Entry(len(judgments), taken, steps, r_hat, min(walks))


def report(entries: list[Entry]) -> str:
    lines = [
        "# TPP",
        "",
        "Times are processor times, which depend less on other load than times on the clock.",
        "",
        "| judgments | fit, default settings | sweeps | R̂ of 95 % of scores | one sweep | a judgment and sweep |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for entry in entries:
        each = 1e9 * entry.sweep_seconds / entry.judgments
        lines.append(
            f"| {entry.judgments:,} | {duration(entry.fit_seconds)} | {entry.sweeps} | {entry.r_hat:.2f} "
            f"| {duration(entry.sweep_seconds)} | {each:.0f} ns |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true")
    quick = arguments.parse_args().quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    TPP(max_sweeps=10).fit(domain_crowd(queries=4, items=5, sparsity=0.5).judgments)  # compiles
    entries = [measure(50 if quick else 200, share) for share in _SHARES]
    told = report(entries)
    print(told)
    if not quick:
        (_RESULTS / "tpp.md").write_text(f"{told}\n{made()}\n", encoding="utf-8")
        record(Path(__file__), _RESULTS, "tpp")


if __name__ == "__main__":
    main()
