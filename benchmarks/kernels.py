"""Crowd-BT's kernels compared with a bare loop: nanoseconds per judgment and pass.

python benchmarks/kernels.py            a million judgments, and ten
python benchmarks/kernels.py --quick    a million

The bare loop does the minimum of any implementation: it reads the scores of both items and the quality of the
annotator, computes one exponential and one logarithm, and adds to three sums. A kernel also computes the gradient, the
curvature of the row and the diagonal of the Fisher information.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from machine import describe, record

from crowdrank.engines.local import LocalEngine
from crowdrank.inference import curvature
from crowdrank.models.crowd import likelihood as crowd_likelihood
from crowdrank.models.crowd import objective as crowd_objective
from crowdrank.models.crowd.likelihood import CROWD_BT, Answers
from crowdrank.models.pairwise import likelihood as pairwise_likelihood
from crowdrank.models.pairwise.likelihood import LOGISTIC, Pairs

_RESULT = Path(__file__).parent / "results" / "kernels.json"
_REPETITIONS = 7
QUICK, SIZES = (1_000_000,), (1_000_000, 10_000_000)


@dataclass(frozen=True)
class Entry:
    """One kernel at one size."""

    kernel: str
    judgments: int
    items: int
    annotators: int
    threads: int
    nanoseconds: float
    """A judgment and pass, by the clock on the wall."""
    processor_nanoseconds: float
    """A judgment and pass, of all threads together, without the time others had the processor."""
    times_bare: float
    """The processor's time over the bare loop's on as many threads."""


@numba.njit(nogil=True, cache=True, error_model="numpy")
def bare_loop(winner, loser, annotator, scores, quality, by_score, by_quality):  # type: ignore[no-untyped-def]
    value = 0.0
    for row in range(len(winner)):
        i, j, k = winner[row], loser[row], annotator[row]
        margin = np.exp(scores[j] - scores[i])
        value += np.log(quality[k] + margin)
        by_score[i] += margin
        by_score[j] -= margin
        by_quality[k] += margin
    return value


def bare(shard: Answers, scores: Any, quality: Any) -> tuple[float]:
    by_score, by_quality = np.zeros(len(scores)), np.zeros(len(quality))
    return (bare_loop(shard.winner, shard.loser, shard.annotator, scores, quality, by_score, by_quality),)


def draw(items: int, annotators: int, rows: int) -> Answers:
    rng = np.random.default_rng(0)
    winner = rng.integers(items, size=rows).astype(np.int32)
    loser = ((winner + rng.integers(1, items, size=rows)) % items).astype(np.int32)
    who = rng.integers(annotators, size=rows).astype(np.int32)
    return Answers(winner, loser, who, np.broadcast_to(1.0, rows), np.zeros((rows, 0)))


def clocks(
    kernels: dict[str, Callable[[Any], Any]], shards: dict[str, list[Any]], threads: int
) -> dict[str, tuple[float, float]]:
    """The best passes over all shards, by the wall and by the processor; kernels take turns, to be slowed alike."""
    best = dict.fromkeys(kernels, (np.inf, np.inf))
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_REPETITIONS + 1):
            for name, kernel in kernels.items():
                begun = time.perf_counter()
                used = sum(pool.map(partial(_processor_time, kernel), shards[name]))
                wall, processor = best[name]
                best[name] = min(wall, time.perf_counter() - begun), min(processor, used)
    return best


def _processor_time(kernel: Callable[[Any], Any], shard: Any) -> float:
    begun = time.thread_time()
    kernel(shard)
    return time.thread_time() - begun


def measure(items: int, annotators: int, rows: int, threads: int) -> list[Entry]:
    rng = np.random.default_rng(1)
    scores, logits = rng.normal(size=items), rng.normal(2.0, 1.0, size=annotators)
    none = np.zeros((annotators, 0))
    answers = draw(items, annotators, rows)
    cut = list(LocalEngine().load(answers).shards)  # type: ignore[attr-defined]
    pairs = [Pairs(a.winner, a.loser, np.ones(a.rows, np.int8), a.weight) for a in cut]
    curved = [crowd_likelihood.evaluate(shard, scores, logits, none, CROWD_BT)[0] for shard in cut]
    bent = [pairwise_likelihood.evaluate(shard, scores, 0.0, LOGISTIC)[0] for shard in pairs]
    kernels: dict[str, Callable[[Any], Any]] = {
        "bare loop": lambda shard: bare(shard, scores, np.exp(logits)),
        "crowd-bt, gradient and curvature": lambda shard: crowd_likelihood.evaluate(
            shard, scores, logits, none, CROWD_BT
        ),
        "crowd-bt, curvature times a vector": lambda shard: crowd_objective.hessian_product(
            shard, scores, logits, none
        ),
        "bradley-terry, gradient and curvature": lambda shard: pairwise_likelihood.evaluate(
            shard, scores, 0.0, LOGISTIC
        ),
        "bradley-terry, curvature times a vector": lambda shard: curvature.hessian_product(shard, scores),
    }
    shards = dict(zip(kernels, (cut, cut, curved, pairs, bent), strict=True))
    seconds = clocks(kernels, shards, threads)
    _, base = seconds["bare loop"]
    return [
        Entry(
            name,
            rows,
            items,
            annotators,
            threads,
            round(1e9 * wall / rows, 2),
            round(1e9 * processor / rows, 2),
            round(processor / base, 2),
        )
        for name, (wall, processor) in seconds.items()
    ]


def measure_all(sizes: tuple[int, ...]) -> list[Entry]:
    found = []
    for rows in sizes:
        for threads in sorted({1, os.cpu_count() or 1}):
            for entry in measure(10_000, 10_000, rows, threads):
                print(
                    f"{rows:12,} judgments, {threads} threads  {entry.kernel:40} {entry.nanoseconds:7.2f} ns  "
                    f"{entry.processor_nanoseconds:7.2f} ns of processor  {entry.times_bare:5.2f} x bare"
                )
                found.append(entry)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    described = describe()
    found = measure_all(QUICK if options.parse_args().quick else SIZES)
    content = {"machine": described, "entries": [asdict(entry) for entry in found]}
    _RESULT.write_text(json.dumps(content, indent=2) + "\n")
    record(Path(__file__), _RESULT.parent, _RESULT.stem)


if __name__ == "__main__":
    main()
