"""Stopping: whether the decision "top 3" is correct when it is announced, and how well the votes were forecast.

12 items, of which the best three are to be found, and 30 annotators. Questions are chosen by the policy `adaptive`, the
decision is checked every 25 votes, and it is announced when it is 95 % certain and confirmed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Check, Key, Sampled, Table, options, over_seeds, report, with_error

from crowdrank import Comparisons
from crowdrank.active import Adaptive
from crowdrank.active.collection import SimulatedCollection
from crowdrank.active.stopping import Top, forecast, is_confirmed
from crowdrank.online import Posterior, SequentialMCMC
from crowdrank.simulation import crowd_bt
from crowdrank.simulation.crowd import Respondents, respondents

CROWDS: Mapping[str, Mapping[str, Any]] = {
    "order, beta(5,2)": {"labels": "order", "quality": "beta(5,2)"},
    "scale 6, beta(5,2)": {"labels": "logistic", "scale": 6.0, "quality": "beta(5,2)"},
    "scale 6, beta(2,1)": {"labels": "logistic", "scale": 6.0, "quality": "beta(2,1)"},
    "scale 3, beta(5,2)": {"labels": "logistic", "scale": 3.0, "quality": "beta(5,2)"},
}
ALL = "all"
BEST = Top(3)
EVERY = 25
MOST = 800
PARTS = {"a third": 1 / 3, "half": 1 / 2, "two thirds": 2 / 3}
EARLY = (100, 200)
FACTOR = 1.5
ASKED = (*(f"after {votes} votes" for votes in EARLY), *PARTS)
ROWS = (
    "settled",
    "right when announced",
    "right without confirming",
    *(f"within {FACTOR}, {when}" for when in ASKED),
    *(f"interval, {when}" for when in ASKED),
)

NOTES = f"""
Columns are crowds: annotators who tell the true order, or answer by a logistic draw on scores of this scale, with
probability η from a Beta. *Settled* is the share of collections in which the best three were announced within {MOST:,}
votes; the two rows below are of those, *without confirming* if the first look at 200 draws had been believed.

Forecasts are of the votes in all, from 800 draws. Rows called *within {FACTOR}* say in what share of the settled
collections the forecast, asked after so much of what it took, was neither {FACTOR} times too high nor too low; rows
called *interval* in what share the 80 % interval held what it took. After 100 and 200 votes nobody knows yet which
collections will settle: there the interval counts as right for one that never did if it reaches beyond {MOST:,}.

Priors are learnt; where answers follow the true order they differ from those that the crowd was drawn from. The
exponent of the forecast was fitted on other seeds. The choice of crowds was not blind: scale 3 was tried first, on some
of these seeds too, and scale 6 was added because so few collections were decided.
"""


class Look(NamedTuple):
    votes: int
    beliefs: Posterior


class Played(NamedTuple):
    """A collection, until its decision is announced or the votes are used up."""

    looks: list[Look]
    announced: Look | None
    hasty: Look | None
    """What the first look would have had announced."""


def trial(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    crowd = respondents(items=8 if quick else 12, annotators=30, scores="normal", seed=seed, **CROWDS[column])
    played = play(crowd, seed, MOST)
    cells = {"settled": float(played.announced is not None)} | dict(foretold(played, quick, SequentialMCMC(seed=seed)))
    for row, look in (("right when announced", played.announced), ("right without confirming", played.hasty)):
        if look is not None:
            cells[row] = float(best(look.beliefs.mean) == best(crowd.truth))
    return {(row, column): value for row, value in cells.items()}


def play(crowd: Respondents, seed: int, most: int) -> Played:
    model = SequentialMCMC(seed=seed, refit_every=EVERY)
    collection = SimulatedCollection(policy=Adaptive(), model=model)
    rng, looks, hasty = np.random.default_rng([seed, EVERY]), [], None
    for votes, beliefs, _ in collection.run(crowd, model.start(crowd.items, crowd.annotators), most, rng):
        if votes % EVERY:
            continue
        looks.append(Look(votes, cast(Posterior, beliefs)))
        if BEST.decided_by(looks[-1].beliefs):
            hasty = hasty or looks[-1]
            if is_confirmed(BEST, looks[-1].beliefs, model):
                return Played(looks, looks[-1], hasty)
    return Played(looks, None, hasty)


def best(scores: np.ndarray) -> set[int]:
    return set(np.argsort(-scores)[: BEST.k].tolist())


def foretold(played: Played, quick: bool, model: SequentialMCMC) -> Iterator[tuple[str, float]]:
    at = {look.votes: look.beliefs for look in played.looks}
    took = np.inf if played.announced is None else played.announced.votes
    asked: dict[str, float] = {f"after {votes} votes": votes for votes in EARLY}
    if np.isfinite(took):
        asked |= {name: max(EVERY, EVERY * round(took * part / EVERY)) for name, part in PARTS.items()}
    for name, votes in asked.items():
        if votes not in at or votes >= took:
            continue
        told = forecast(model.resample(at[int(votes)]), BEST, paths=20 if quick else 100)
        if np.isfinite(took):
            yield f"within {FACTOR}, {name}", float(took / FACTOR <= told.votes <= took * FACTOR)
        yield f"interval, {name}", float(told.low <= took <= told.high if np.isfinite(took) else told.high > MOST)


@dataclass(frozen=True)
class OfFewVotes(Sampled):
    """What is forecast after 100 votes, most of them right."""

    def draw(self, seed: int) -> list[float]:
        votes, model = (
            crowd_bt(8, 10, pairs=20, votes=5, quality="beta(5,2)", seed=FIRST_SEED).judgments,
            SequentialMCMC(),
        )
        beliefs = model.fold(model.start(votes.items, votes.annotators), cast(Comparisons, votes))
        told = forecast(beliefs, BEST, paths=100, seed=seed)
        return [float(np.minimum(votes, MOST)) for votes in (told.votes, told.low, told.high)]


SHOWS = {"beliefs": SequentialMCMC(refit_every=EVERY), "policy": Adaptive(), "forecast": OfFewVotes()}


def with_all(found: Mapping[Key, list[float]]) -> dict[Key, list[float]]:
    """The rows in order, and one column of all crowds together."""
    cells: dict[Key, list[float]] = {}
    for row in ROWS:
        by_crowd = {(row, crowd): found[row, crowd] for crowd in CROWDS if (row, crowd) in found}
        if by_crowd:
            cells |= by_crowd | {(row, ALL): [value for values in by_crowd.values() for value in values]}
    return cells


def aims(table: Table) -> list[Check]:
    return [
        Check(f"{row}, {ALL}", f"at least {aim}", with_error(values), float(np.mean(values)) >= aim)
        for row, aim in (("right when announced", 0.93), (f"within {FACTOR}, half", 0.8))
        if (values := table.found.get((row, ALL)))
    ]


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=125)
    crowds = list(CROWDS)[:1] if told.quick else list(CROWDS)
    table = Table(with_all(over_seeds(trial, crowds, told)))
    seeds = f"seeds {FIRST_SEED} to {FIRST_SEED + told.trials - 1}"
    report(told, f"{NOTES}\n{told.trials} collections a column ({seeds}), ± standard error.", [table], aims(table))
