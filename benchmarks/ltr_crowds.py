"""Learning to rank from crowds against a plain NumPy version of the paper's sampler, in one run.

100 queries of 15 items, 10 annotators, true Mallows lists, 15 iterations of EM, the same ranking function fitted in
both. The paper's sampler starts cold and takes N_s steps a query; more of them are tried until θ is as exact as ours.

python benchmarks/ltr_crowds.py            all of it, written to results/ltr-crowds.md
python benchmarks/ltr_crowds.py --quick    N_s = 500 only, printed
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import made, record
from report import duration

from crowdrank.data.side_information import NOTHING_KNOWN
from crowdrank.ltr.em import EM, EStep
from crowdrank.ltr.linear import Linear
from crowdrank.ltr.training_set import CrowdLists, build_crowd_lists
from crowdrank.models.lists.mallows_likelihood import estimate_theta
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists
from crowdrank.simulation import list_crowd

Vector = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_RESULTS = Path(__file__).parent / "results"
_QUERIES, _ITEMS, _ANNOTATORS, _ITERATIONS = 100, 15, 10, 15
_STEPS = (500, 2_000, 8_000)
_EXPERTISE = "uniform(-0.4,-0.02)"


@dataclass(frozen=True)
class Entry:
    """One way to do it."""

    name: str
    seconds: float
    processor: float
    """Seconds of all cores together: what a busy machine does not change."""
    error: float
    """Root mean square, of θ."""


@dataclass
class Plain:
    """Algorithms 1 and 2 as printed: random transpositions, all queries at once, arrays and nothing else."""

    places: Integers
    """Where each annotator puts each item: query, annotator, item."""
    rng: np.random.Generator

    def distances(self, orders: Integers) -> Integers:
        rows = np.arange(len(orders))[:, None, None]
        seen = self.places[rows, np.arange(self.places.shape[1])[:, None], orders[:, None, :]]
        later = np.triu(np.ones((orders.shape[1],) * 2, bool), 1)
        return np.sum((seen[..., :, None] > seen[..., None, :]) & later, axis=(2, 3))

    def sample(self, scores: Vector, theta: Vector, steps: int) -> tuple[Vector, Integers]:
        """The mean distance of each annotator, and the likeliest list that was seen of each query."""
        queries, size = scores.shape
        orders = self.rng.permuted(np.tile(np.arange(size), (queries, 1)), axis=1)
        far = self.distances(orders)
        value = far @ theta + _log_plackett_luce(scores, orders)
        best, seen, total, row = orders.copy(), value.copy(), np.zeros(len(theta)), np.arange(queries)
        for _ in range(steps):
            p, q = self.rng.integers(size, size=(2, queries))
            fresh = orders.copy()
            fresh[row, p], fresh[row, q] = orders[row, q], orders[row, p]
            fresh_far = self.distances(fresh)
            fresh_value = fresh_far @ theta + _log_plackett_luce(scores, fresh)
            taken = np.log(self.rng.random(queries)) < fresh_value - value
            orders[taken], far[taken], value[taken] = fresh[taken], fresh_far[taken], fresh_value[taken]
            better = value > seen
            best[better], seen[better] = orders[better], value[better]
            total += far.mean(axis=0)
        return total / steps, best

    def run(self, values: Vector, steps: int) -> Vector:
        queries, annotators, size = self.places.shape
        scores, theta, scorer = np.zeros((queries, size)), np.full(annotators, -1.0), None
        starts = np.arange(queries + 1) * size
        for _ in range(_ITERATIONS):
            far, best = self.sample(scores, theta, steps)
            theta = np.array([estimate_theta(float(one), size) for one in far])
            item = (best + starts[:-1, None]).ravel().astype(np.int32)
            lists = RankedLists(item, np.tile(np.arange(size, dtype=np.int32), queries), starts, np.ones(queries))
            scorer = Linear().fit(lists, values, starts, scorer)
            scores = scorer.scores(values).reshape(queries, size)
        return theta


def _log_plackett_luce(scores: Vector, orders: Integers) -> Vector:
    chosen = np.take_along_axis(scores, orders, axis=1)
    left = np.logaddexp.accumulate(chosen[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((chosen - left).sum(axis=1))


def ours(crowd: CrowdLists, values: Vector) -> Vector:
    em = EM(Linear(), EStep(), "expected", 1.0, _ITERATIONS, 0.0, NOTHING_KNOWN)
    return em.run(crowd, values).theta


def measure(quick: bool) -> list[Entry]:
    made = list_crowd(
        queries=_QUERIES,
        items=_ITEMS,
        annotators=_ANNOTATORS,
        expertise=_EXPERTISE,
        first_expertise=None,
        labels="mallows",
        seed=1,
    )
    values, lists = np.column_stack(list(made.features.values())), made.judgments
    crowd = build_crowd_lists(lists.items, lists, np.arange(len(values)), None, None, None)
    ours(crowd.subset(np.arange(20)), values)  # loops are compiled
    entries = [_timed("crowdrank", made, lambda: ours(crowd, values))]
    print(entries[-1], flush=True)
    places = np.empty((_QUERIES, _ANNOTATORS, _ITEMS), np.int64)
    np.put_along_axis(places, lists.item.reshape(places.shape) % _ITEMS, np.arange(_ITEMS)[None, None], axis=2)
    for steps in _STEPS[:1] if quick else _STEPS:
        plain = Plain(places, np.random.default_rng(0))
        entries.append(_timed(f"NumPy, N_s = {steps:,}", made, lambda p=plain, s=steps: p.run(values, s)))
        print(entries[-1], flush=True)
        if entries[-1].error <= 1.1 * entries[0].error:
            break
    return entries


def _timed(name: str, made: Any, run: Any) -> Entry:
    start, busy = time.perf_counter(), time.process_time()
    theta = run()
    taken, busy = time.perf_counter() - start, time.process_time() - busy
    return Entry(name, taken, busy, float(np.sqrt(np.mean((theta - made.annotators["expertise"]) ** 2))))


def report(entries: list[Entry]) -> str:
    lines = [
        "# Learning to rank from crowds",
        "",
        f"{_QUERIES} queries of {_ITEMS} items, {_ANNOTATORS} annotators with θ {_EXPERTISE}, "
        f"{_ITERATIONS} iterations, one run after the other.",
        "",
        "| | time | times ours | processor time | times ours | RMSE of θ |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {e.name} | {duration(e.seconds)} | {e.seconds / entries[0].seconds:.0f} | {duration(e.processor)} | "
        f"{e.processor / entries[0].processor:.0f} | {e.error:.4f} |"
        for e in entries
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    text = report(measure(quick))
    print(text)
    if not quick:
        (_RESULTS / "ltr-crowds.md").write_text(f"{text}\n{made()}\n", encoding="utf-8")
        record(Path(__file__), _RESULTS, "ltr-crowds")
