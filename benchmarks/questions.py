"""Time to find the most informative question: 10,000 items, for one annotator or the best of 1,000.

python benchmarks/questions.py            all of it
python benchmarks/questions.py --quick    a tenth of the items and annotators, printed only
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from machine import made, record
from report import duration
from scipy.special import expit

from crowdrank.active.branch_and_bound import SearchResult
from crowdrank.active.information_gain import best_pair, best_triplet
from crowdrank.online.beliefs import Beliefs, Vocabulary
from crowdrank.online.moments import fold

_RESULTS = Path(__file__).parent / "results"
_ITEMS, _ANNOTATORS = 10_000, 1_000
_REPETITIONS = 5
_EXPLORATIONS = (0.0, 1.0, 10.0)
Columns = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Entry:
    """One state of beliefs, at one exploration."""

    state: str
    exploration: float
    pair_seconds: float
    """One annotator's best pair."""
    triplet_seconds: float
    """The best of all triplets."""
    boxes: int
    """Pairs of boxes looked at for it."""
    pairs: int
    """Pairs of items looked at for it."""
    gain: float


def fresh(items: int, annotators: int, rng: np.random.Generator) -> Columns:
    return np.zeros(items), np.ones(items), np.full(annotators, 10.0), np.ones(annotators)


def after(votes: float) -> Callable[[int, int, np.random.Generator], Columns]:
    """So many votes an item, on random pairs by random annotators, taken in as the paper does."""

    def state(items: int, annotators: int, rng: np.random.Generator) -> Columns:
        columns = fresh(items, annotators, rng)
        count = int(votes * items)
        scores, quality = rng.normal(size=items), rng.beta(5, 1, size=annotators)
        left, who = rng.integers(items, size=count), rng.integers(annotators, size=count)
        right = (left + rng.integers(1, items, size=count)) % items
        truth = rng.random(count) < expit(scores[left] - scores[right])
        outcome = np.where(truth == (rng.random(count) < quality[who]), 1, -1).astype(np.int8)
        fold(left, right, outcome, who, np.ones(count), *columns, False, False, False)
        return columns

    return state


def level(items: int, annotators: int, rng: np.random.Generator) -> Columns:
    """Variances all the same: only the lead tells pairs apart."""
    return rng.normal(size=items), np.ones(items), *_any_annotators(annotators, rng)


def anything(items: int, annotators: int, rng: np.random.Generator) -> Columns:
    return rng.normal(size=items), rng.uniform(0.05, 1.0, items), *_any_annotators(annotators, rng)


def wild(items: int, annotators: int, rng: np.random.Generator) -> Columns:
    """Variances up to 9, beyond what the paper's formulas are for."""
    return 2 * rng.normal(size=items), 10 ** rng.uniform(-4, np.log10(9), items), *_any_annotators(annotators, rng)


def _any_annotators(count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.uniform(1, 20, count), rng.uniform(0.5, 10, count)


STATES: dict[str, Callable[[int, int, np.random.Generator], Columns]] = {
    "fresh": fresh,
    "after 0.2 votes an item": after(0.2),
    "after 2 votes an item": after(2),
    "after 20 votes an item": after(20),
    "variances equal": level,
    "all continuous": anything,
    "variances up to 9": wild,
}


def believed(columns: Columns) -> Beliefs:
    mean, variance, alpha, beta = columns
    return Beliefs(
        items=Vocabulary.of(map(str, range(len(mean)))),
        annotators=Vocabulary.of(map(str, range(len(alpha)))),
        item_columns={"mean": mean, "variance": variance},
        annotator_columns={"alpha": alpha, "beta": beta},
    )


def clock(ask: Callable[[], SearchResult | None]) -> tuple[float, SearchResult]:
    """The best of several, and what was found."""
    best, found = np.inf, None
    for _ in range(_REPETITIONS):
        begun = time.perf_counter()
        found = ask()
        best = min(best, time.perf_counter() - begun)
    assert found is not None
    return best, found


def measure(state: str, items: int, annotators: int) -> list[Entry]:
    beliefs = believed(STATES[state](items, annotators, np.random.default_rng(0)))
    best_pair(beliefs, 0)  # imports and compilation come before the clock
    entries = []
    for exploration in _EXPLORATIONS:
        one, _ = clock(lambda gamma=exploration: best_pair(beliefs, 0, gamma))  # type: ignore[misc]
        every, found = clock(lambda gamma=exploration: best_triplet(beliefs, gamma))  # type: ignore[misc]
        entries.append(Entry(state, exploration, one, every, found.boxes, found.pairs, found.gain))
    return entries


def table(entries: list[Entry]) -> str:
    lines = [
        "| beliefs | exploration | best pair of one annotator | best of all triplets | boxes | pairs |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for entry in entries:
        times = f"{duration(entry.pair_seconds)} | {duration(entry.triplet_seconds)}"
        lines.append(f"| {entry.state} | {entry.exploration:g} | {times} | {entry.boxes:,} | {entry.pairs:,} |")
    return "\n".join(lines) + "\n"


def write(entries: list[Entry]) -> None:
    names = [field.name for field in fields(Entry)]
    rows = [",".join(str(asdict(entry)[name]) for name in names) for entry in entries]
    (_RESULTS / "questions.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    (_RESULTS / "questions.md").write_text(f"{table(entries)}\n{made()}\n")
    record(Path(__file__), _RESULTS, "questions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items and annotators, printed only")
    quick = parser.parse_args().quick
    scale = 10 if quick else 1
    entries: list[Entry] = []
    for state in STATES:
        entries += measure(state, _ITEMS // scale, _ANNOTATORS // scale)
    print(table(entries), flush=True)
    if not quick:
        write(entries)


if __name__ == "__main__":
    main()
