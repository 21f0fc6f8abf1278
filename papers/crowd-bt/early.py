"""Not in the paper: what asking gains early. The default policy against random questions, up to 1,500 labels.

The four worlds of active.py, and recorded votes that are asked for one at a time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from active import ADAPTIVE, LEARNT, WORLDS, shown_of
from fits import Record, keep
from measure import Check, Key, Table, data_folder, drawn, options, over_seeds, report, standard_error
from pools import RANDOM, Recorded, signed
from table3 import judgments

from crowdrank import Comparisons, Gold
from crowdrank.active import Adaptive, Policy, Random, Rules
from crowdrank.active.collection import SimulatedCollection
from crowdrank.evaluation import accuracy, evaluate_scores
from crowdrank.online import CrowdBT, OnlineModel, SequentialMCMC
from crowdrank.simulation.crowd import respondents

BUDGETS = (100, 250, 500, 750, 1500)
EARLY, LAST = 750, 1500
WAYS: dict[str, tuple[Policy, OnlineModel]] = {RANDOM: (Random(), CrowdBT()), ADAPTIVE: (Adaptive(), LEARNT)}
BOARD = SequentialMCMC(warmup=300, draws=300, thin=2)
POOLS = {"reading levels": "reading_difficulty", "countries": "country_population"}
AREA = f"mean, {BUDGETS[0]} to {EARLY}"
SHOWS = {
    "beliefs": LEARNT,
    "board": BOARD,
    **{f"policy, {name}": policy for name, (policy, _) in WAYS.items()},
    **{f"crowd, {name}": partial(shown_of, world) for name, world in WORLDS.items()},
}

NOTES = f"""
100 items and 100 annotators in four worlds, as in active.py; any annotator may be asked about any pair. From the pools,
only votes that were recorded can be asked for, each once: reading levels (490 items, 12,726 votes) and countries (15
items, 3,184 votes). Labels of both policies are ranked by the same model, an MCMC run of 1,400 sweeps that learns all
priors. *{AREA}*: the area under the curve over the first labels, divided by their number (trapezoidal rule).
Differences are paired by trial.
"""


@cache
def recorded(pool: str) -> tuple[Comparisons, Gold]:
    _, votes, gold = judgments(None, None, known_folders=(POOLS[pool],))
    return votes.take(np.flatnonzero(votes.outcome != 0)), gold


def trial(kept: Path | None, column: tuple[str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    where, name = column
    found = keep(None if quick else kept, column, seed, lambda: curve(where, name, seed, quick))
    budgets = [int(budget) for budget in found if budget.isdigit()]
    cells: dict[Key, float] = {(f"{where}: {name}", str(budget)): found[str(budget)] for budget in budgets}
    early = [budget for budget in budgets if budget <= EARLY]
    area = np.trapezoid([found[str(budget)] for budget in early], early) / max(early[-1] - early[0], 1)
    return cells | {(f"{where}: {name}", AREA): float(area)}


def curve(where: str, name: str, seed: int, quick: bool) -> Record:
    """Accuracy by number of labels."""
    policy, model = WAYS[name]
    if where in POOLS:
        votes, gold = recorded(where)
        crowd, items, annotators = Recorded(votes), votes.items.labels, votes.annotators
        rules = Rules(pool=votes)

        def grade(scores: np.ndarray) -> float:
            return evaluate_scores(scores, votes.items, gold).accuracy
    else:
        crowd = respondents(*((10, 8) if quick else (100, 100)), *WORLDS[where], seed=seed)
        items, annotators, rules = crowd.items, crowd.annotators, Rules()

        def grade(scores: np.ndarray) -> float:
            return accuracy(scores, crowd.truth)

    run = SimulatedCollection(policy=policy, model=model, rules=rules)
    budgets = (10, 20) if quick else BUDGETS
    found: Record = {"converged": True}
    rng = np.random.default_rng([seed, 1])
    for step in run.run(crowd, model.start(items, annotators), budgets[-1], rng):
        if step.votes in budgets:
            ranked = BOARD.fold(BOARD.start(items, annotators), step.log.comparisons())
            found[str(step.votes)] = grade(ranked.mean)
    return found


def ahead(found: Mapping[Key, list[float]], wheres: list[str]) -> dict[Key, list[float]]:
    """Adaptive less random."""
    return {
        (where, column): np.subtract(values, found[f"{where}: {RANDOM}", column]).tolist()
        for where in wheres
        for (row, column), values in found.items()
        if row == f"{where}: {ADAPTIVE}"
    }


def checks(gained: Mapping[Key, list[float]]) -> Iterator[Check]:
    for (where, column), values in gained.items():
        if column in (AREA, str(LAST)):
            aim = 0.02 if column == AREA else 0.0
            words = "at least .020" if aim else "not below random"
            enough = float(np.mean(values)) >= aim or (not aim and np.mean(values) > -standard_error(values))
            yield Check(f"{where}, {column}", words, signed(values), bool(enough))


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept")
    folder = data_folder()
    pools = [name for name in POOLS if folder is not None and (folder / POOLS[name]).is_dir() and not told.quick]
    wheres = [*WORLDS, *pools]
    found = over_seeds(partial(trial, told.kept), [(where, name) for where in wheres for name in WAYS], told)
    gained = ahead(found, wheres)
    tables = [Table(found, title="Accuracy"), Table(gained, title=f"{ADAPTIVE} less {RANDOM}")]
    report(told, f"{NOTES}\n{drawn(told)}", tables, [] if told.quick else list(checks(gained)))
