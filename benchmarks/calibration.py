"""Calibration: how often intervals, claims and tie groups hold on simulated crowds with a known truth.

python benchmarks/calibration.py                       all cells, 100 crowds each, kept in results/calibration.json
python benchmarks/calibration.py --quick               a few cells with 10 crowds, printed only
python benchmarks/calibration.py --crowds 20 --sizes small large --models crowd-bt bradley-terry
python benchmarks/calibration.py --figures             draws the figures and tables again from the kept results

Each cell (model, size, crowd, spread of the scores) is stored when it is finished, so a run that was interrupted goes
on where it stopped. Cells are measured again if they have fewer crowds, or if their model has changed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import made, record

from crowdrank.data import Comparisons, Items
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation.interval_coverage import Counts, Coverage, count_held, finite
from crowdrank.models import BradleyTerry, CrowdBT, by_name
from crowdrank.models.base import Model
from crowdrank.simulation.crowd import bernoulli, codes, draw, logistic, numbered_labels, outcomes, spawn_generators

Vector = npt.NDArray[np.float64]

DEFAULT, JOINT, PLAIN = "crowd-bt", "crowd-bt, joint", "bradley-terry"
MODELS: dict[str, Model] = {
    DEFAULT: CrowdBT(),
    JOINT: CrowdBT(estimation="joint", prior_scale=3.0, quality_prior=(3.0, 0.5)),
    PLAIN: BradleyTerry(),
}
SHOWS = MODELS
LEVEL, RANK_LEVEL, FIRST_SEED = 0.95, 0.9, 5_000
SPREADS = (0.0, 0.3, 1.0, 3.0)
"""Standard deviations of the true scores; with 0 every answer is a coin toss."""
RESULTS = Path(__file__).parent / "results"
REVERSED_SHARE = 0.1


@dataclass(frozen=True)
class Size:
    """Size of a collection."""

    items: int
    annotators: int
    votes: int

    def __str__(self) -> str:
        return f"{self.items} items, {self.votes:,} votes by {self.annotators:,}"


SIZES = {"small": Size(15, 10, 150), "large": Size(15, 10, 1_500), "arena": Size(30, 8_000, 15_000)}
CROWDS = {"prior": "beta(3,0.5)", "mixed": "beta(2,1)", "equal": 1.0, "reversed": "beta(3,0.5)"}
CROWD_NAMES = {
    "prior": "Beta(3, .5)",
    "mixed": "Beta(2, 1)",
    "equal": "all equal",
    "reversed": "10 % reversed",
    "coin": "coin tosses",
}


@dataclass(frozen=True)
class Cell:
    """One kind of data and the model that is fitted to it."""

    model: str
    size: str
    crowd: str
    spread: float

    @property
    def key(self) -> tuple[str, str, str, float]:
        return self.model, self.size, self.crowd, self.spread


def cells(models: Sequence[str], sizes: Sequence[str], crowds: Sequence[str]) -> Iterator[Cell]:
    """All cells, the quick ones first. With equal items every crowd tosses coins, so there is one such cell."""
    for size in sizes:
        for spread in SPREADS:
            for crowd in crowds if spread else ("coin",):
                for model in models:
                    yield Cell(model, size, crowd, spread)


def simulate(size: Size, crowd: str, spread: float, seed: int) -> tuple[Comparisons, Vector]:
    """Simulate logistic answers on random pairs by random annotators; true scores are normal."""
    truth_rng, quality_rng, pair_rng, annotator_rng, answer_rng = spawn_generators(seed, 5)
    truth = spread * truth_rng.standard_normal(size.items)
    quality = draw(CROWDS.get(crowd, 1.0), "quality", quality_rng, size.annotators, 0, 1)
    if crowd == "reversed":
        turned = slice(0, round(REVERSED_SHARE * size.annotators))
        quality[turned] = 1 - quality[turned]
    left = pair_rng.integers(size.items, size=size.votes)
    right = (left + pair_rng.integers(1, size.items, size.votes)) % size.items
    who = annotator_rng.integers(size.annotators, size=size.votes)
    better = logistic(truth[left] - truth[right])
    judgments = Comparisons(
        items=Items.of(numbered_labels("item", size.items).tolist()),
        left=codes(left),
        right=codes(right),
        outcome=outcomes(bernoulli(answer_rng, quality[who] * better + (1 - quality[who]) * (1 - better))),
        annotators=numbered_labels("annotator", size.annotators),
        annotator=codes(who),
    )
    return judgments, truth - truth.mean()


def measure(cell: Cell, crowds: int) -> dict[str, Any]:
    """Fit the model of a cell to its crowds."""
    model, counts, slopes = MODELS[cell.model], [], []
    begin = time.process_time()
    for n in range(crowds):
        judgments, truth = simulate(SIZES[cell.size], cell.crowd, cell.spread, FIRST_SEED + n)
        ranking = model.fit(judgments)
        counts.append(_counts(ranking, truth))
        if cell.spread:
            slopes.append(float(ranking.scores @ truth / (truth @ truth)))
    found = Coverage(tuple(counts)).as_dict()
    del found["simulations"]
    return {
        **{name: getattr(cell, name) for name in ("model", "size", "crowd", "spread")},
        "crowds": crowds,
        **found,
        "scale": finite(float(np.mean(slopes))) if slopes else None,
        "seconds_per_fit": (time.process_time() - begin) / crowds,
    }


def _counts(ranking: Any, truth: Vector) -> Counts:
    return count_held(ranking, truth, LEVEL, RANK_LEVEL)


class Store:
    """Results on disk, one entry per cell; `prints` are fingerprints of the models behind them."""

    def __init__(self, path: Path | None, prints: dict[str, Any]) -> None:
        from fingerprints import Block, differ

        self.path, self.prints = path, prints
        kept = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        before = {
            name: {kind: Block.from_json(block) for kind, block in found.items()}
            for name, found in kept.get("models", {}).items()
        }
        valid = {name for name in before if name in prints and not differ(before[name], prints[name])}
        self.entries = {_key(entry): entry for entry in kept.get("cells", []) if entry["model"] in valid}

    def crowds(self, cell: Cell) -> int:
        return int(self.entries.get(cell.key, {"crowds": 0})["crowds"])

    def add(self, entry: dict[str, Any]) -> None:
        self.entries[_key(entry)] = entry
        if self.path is not None:
            content = {
                "models": {name: {k: b.to_json() for k, b in found.items()} for name, found in self.prints.items()},
                "cells": list(self.entries.values()),
            }
            lines = ",\n".join(f"    {json.dumps(entry)}" for entry in content["cells"])
            text = f'{{\n  "models": {json.dumps(content["models"])},\n  "cells": [\n{lines}\n  ]\n}}\n'
            partial = self.path.with_suffix(".partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(self.path)

    def sorted(self) -> list[dict[str, Any]]:
        """Entries by size, crowd, spread and model."""
        order = (list(MODELS), list(SIZES), list(CROWD_NAMES))

        def place(entry: dict[str, Any]) -> tuple[int, int, float, int]:
            model, size, crowd = (
                names.index(entry[key]) if entry[key] in names else len(names)
                for names, key in zip(order, ("model", "size", "crowd"), strict=True)
            )
            return size, crowd, entry["spread"], model

        return sorted(self.entries.values(), key=place)


def _key(entry: dict[str, Any]) -> tuple[str, str, str, float]:
    return entry["model"], entry["size"], entry["crowd"], entry["spread"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", type=int, help="crowds per cell (100; 10 with --quick)")
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="names of models")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), help="sizes (all; small with --quick)")
    parser.add_argument("--kinds", nargs="+", choices=list(CROWDS), help="crowds (all; prior and equal with --quick)")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figures", action="store_true", help="measure nothing; only draw and write again")
    parser.add_argument("--out", type=Path, help="folder of the results (benchmarks/results unless --quick)")
    return parser.parse_args()


def main() -> None:
    from calibration_report import table, write_pages
    from fingerprints import fingerprint
    from provenance import fingerprints_of

    given = parse()
    others = {name: by_name(name)() for name in given.models if name not in MODELS}
    MODELS.update(others)
    warnings.simplefilter("ignore", CrowdrankWarning)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    prints: dict[str, Any] = {}
    if out is not None:
        prints = fingerprints_of(Path(__file__)) | {name: fingerprint(model) for name, model in others.items()}
    store = Store(None if out is None else out / "calibration.json", prints)
    crowds = given.crowds or (10 if given.quick else 100)
    sizes = given.sizes or (["small"] if given.quick else list(SIZES))
    kinds = given.kinds or (["prior", "equal"] if given.quick else list(CROWDS))
    for cell in () if given.figures else cells(given.models, sizes, kinds):
        if store.crowds(cell) < crowds:
            store.add(entry := measure(cell, crowds))
            print(*cell.key, f"{entry['seconds_per_fit']:.2f} s per fit", sep=", ", flush=True)
    print(table(store.sorted()))
    if out is not None:
        write_pages(store.sorted(), out, str(made()), update_docs=given.out is None)
        record(Path(__file__), out, "calibration")


if __name__ == "__main__":
    main()
