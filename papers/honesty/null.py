"""Null simulation: how many pairs a leaderboard separates at 95 % if every answer is random.

A leaderboard that claims 95 % may be wrong about one pair in twenty. With random answers, every separated pair is
wrong.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import Check, Key, StandardErrors, Table, drawn, options, over_seeds, report, with_error

from crowdrank import BayesianCrowdBT, BradleyTerry, CrowdBT
from crowdrank.active import POLICIES
from crowdrank.active.null_simulation import random_annotators, run_collection, separated_pairs
from crowdrank.errors import DataWarning
from crowdrank.online import CrowdBT as Online
from crowdrank.online import OnlineModel, SequentialMCMC

SETTINGS = {"60 items, 20 annotators": (60, 20), "20 items, 10 annotators": (20, 10)}
VOTES, QUICK_VOTES = 400, 30
MOST = 0.05
STEERED: dict[str, tuple[str, OnlineModel]] = {
    **{policy: (policy, SequentialMCMC()) for policy in POLICIES},
    **{f"{policy}, by online Crowd-BT": (policy, Online()) for policy in ("gain", "epsilon-greedy", "uncertainty")},
}
OURS = "bayesian-crowd-bt"
BOARDS = {
    OURS: BayesianCrowdBT(),
    "crowd-bt": CrowdBT(),
    "bradley-terry": BradleyTerry(),
    "bradley-terry, prior 1": BradleyTerry(prior_scale=1.0),
    "bradley-terry, prior 10": BradleyTerry(prior_scale=10.0),
}
SHOWS = {
    **BOARDS,
    **{f"{name}, standard errors": StandardErrors(model) for name, model in BOARDS.items()},
    **{f"policy {name}": policy() for name, policy in POLICIES.items()},
    "resampled beliefs": SequentialMCMC(),
    "online crowd-bt": Online(),
}

NOTES = """
Rows are the policies that chose the questions, with default settings. Their beliefs are sampled again every 25 answers
(`online.SequentialMCMC`) or, where stated, updated by `online.CrowdBT`. Columns are the models of the leaderboard, with
default settings except for the prior on scores where it is named. A pair is separated if its scores differ by more than
1.96 standard deviations of the difference; *by its draws*, if more than 97.5 % of the posterior draws agree.
"""


def trial(column: tuple[str, str], seed: int, quick: bool) -> Mapping[Key, float]:
    setting, steered = column
    policy, model = STEERED[steered]
    if quick and isinstance(model, SequentialMCMC):
        model = SequentialMCMC(warmup=10, draws=20)
    rng = np.random.default_rng([seed, *map(ord, steered)])
    log = run_collection(
        POLICIES[policy](), random_annotators(*SETTINGS[setting]), QUICK_VOTES if quick else VOTES, model, rng
    )
    boards = {**BOARDS, OURS: BayesianCrowdBT(draws=10, warmup=10, max_sweeps=40)} if quick else BOARDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = {board: separated_pairs(model.fit(log.comparisons())) for board, model in boards.items()}
    cells = {(steered, board): claim.by_scores for board, claim in found.items()}
    return cells | {(steered, f"{OURS}, by its draws"): found[OURS].by_draws}


def kept(table: Table) -> list[Check]:
    """The board that is published unless told otherwise must be honest whatever chose the questions."""
    return [
        Check(f"{row}, {column} ({table.title})", f"at most {MOST:.0%}", with_error(values), np.mean(values) <= MOST)
        for (row, column), values in table.found.items()
        if column.startswith(OURS)
    ]


if __name__ == "__main__":
    told = options(__file__, __doc__)
    votes = QUICK_VOTES if told.quick else VOTES
    tables = [
        Table(over_seeds(trial, [(setting, steered) for steered in STEERED], told), title=f"{setting}, {votes} answers")
        for setting in (list(SETTINGS)[-1:] if told.quick else SETTINGS)
    ]
    report(told, f"{NOTES}\n{drawn(told)}", tables, [check for table in tables for check in kept(table)])
