"""Shared code of the CrowdAgg scripts: crowds, methods by name, and paired differences with tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from measure import FIRST_SEED, Key, Table, standard_error

from crowdrank import (
    MPM,
    BayesianCrowdBT,
    Borda,
    BradleyTerry,
    CondorcetFuse,
    CrowdAgg,
    CrowdBT,
    DawidSkene,
    EMElo,
    GradedResponse,
    GreedyOrder,
    MeanRating,
    Ratings,
    ZRating,
)
from crowdrank.data import Judgments
from crowdrank.errors import DataWarning
from crowdrank.models import Model
from crowdrank.models.selection import convert_for
from crowdrank.results import Ranking
from crowdrank.simulation import Crowd, preference_crowd, rating_crowd

PEER, OURS = "crowd-bt", "crowd-agg"
PUBLISHED = CrowdAgg(win_rule="printed", quality_prior=None, pooled=False, resolve_sign=False)
READINGS: dict[str, Model] = {
    OURS: CrowdAgg(),
    "crowd-agg, rbp": CrowdAgg(measure="rbp"),
    "crowd-agg, answer": CrowdAgg(win_rule="answer"),
    "crowd-agg, share": CrowdAgg(win_rule="share"),
    "crowd-agg, printed": CrowdAgg(win_rule="printed"),
    "crowd-agg, published": PUBLISHED,
    "crowd-agg, published, rbp": CrowdAgg(
        win_rule="printed", quality_prior=None, pooled=False, resolve_sign=False, measure="rbp"
    ),
}
BASELINES: dict[str, Model] = {
    "condorcet-fuse": CondorcetFuse(),
    "greedy-order": GreedyOrder(),
    "borda": Borda(),
    "bradley-terry": BradleyTerry(),
    "mpm": MPM(),
    "em-elo": EMElo(),
    PEER: CrowdBT(),
    "bayesian-crowd-bt": BayesianCrowdBT(),
}
OF_GRADES: dict[str, Model] = {
    "mean-rating": MeanRating(),
    "z-rating": ZRating(),
    "dawid-skene": DawidSkene(),
    "graded-response": GradedResponse(),
}
METHODS = READINGS | BASELINES | OF_GRADES


@dataclass(frozen=True)
class Topic:
    """A kind of crowd, and into how many grades its truth falls."""

    draw: Callable[..., Crowd]
    levels: int = 5

    def grades(self, truth: np.ndarray) -> np.ndarray:
        """As many items of each."""
        grade = np.empty(len(truth))
        grade[np.argsort(truth)] = np.arange(len(truth)) * self.levels // len(truth)
        return grade


TOPICS = {
    "preferences 20/30/25": Topic(partial(preference_crowd, items=20, annotators=30, votes_each=25)),
    "preferences 15/20/60": Topic(partial(preference_crowd, items=15, annotators=20, votes_each=60)),
    "preferences 30/40/10": Topic(partial(preference_crowd, items=30, annotators=40, votes_each=10)),
    "5 levels 30/15/20": Topic(partial(rating_crowd, items=30, annotators=15, grades_each=20)),
    "2 levels 100/40/10": Topic(partial(rating_crowd, items=100, annotators=40, grades_each=10, levels=2), 2),
}


def shown(topics: Mapping[str, Topic]) -> dict[str, Callable[[], Crowd]]:
    """A crowd of each kind, for `SHOWS`."""
    return {name: partial(topic.draw, seed=FIRST_SEED) for name, topic in topics.items()}


def fit(model: Model, judgments: Judgments, quick: bool = False) -> Ranking:
    """Of judgments made into the kind that the model reads; Borda reads lists, where there are grades."""
    if quick and isinstance(model, BayesianCrowdBT):
        model = replace(model, draws=20, warmup=20, max_sweeps=100)
    lists = isinstance(judgments, Ratings) and isinstance(model, Borda)
    assert isinstance(judgments, Ratings) or not lists
    read = judgments.to_rankings() if lists else convert_for(model, judgments)[0]
    with warnings.catch_warnings():
        # that eq. 6 is inverted, and that a prior holds items together that nobody compared, is said on the page
        warnings.simplefilter("ignore", DataWarning)
        return model.fit(read)


def can_read(name: str, judgments: Judgments) -> bool:
    """Models of grades are entered for grades."""
    return name not in OF_GRADES or isinstance(judgments, Ratings)


def less(found: Mapping[Key, Sequence[float]], baseline: str) -> dict[Key, list[float]]:
    """Each row less another one, trial by trial."""
    return {
        (f"{row} less {baseline}", column): np.subtract(values, found[baseline, column]).tolist()
        for (row, column), values in found.items()
        if row != baseline
    }


def p_value(differences: Sequence[float]) -> float:
    """Of a two-sided t test that they are zero on average; 1 where all are, nan of a single one."""
    from scipy.stats import t

    error = standard_error(differences)
    if len(differences) < 2 or error == 0:
        return 1.0 if len(differences) > 1 and not np.any(differences) else np.nan
    return float(2 * t.sf(abs(np.mean(differences)) / error, len(differences) - 1))


@dataclass(frozen=True)
class Paired(Table):
    """Differences trial by trial, with the p of a t test that there is none."""

    def _cell(self, row: str, column: str) -> str:
        shown = super()._cell(row, column)
        if not shown or np.isnan(p := p_value(self.found[row, column])):
            return shown
        return f"{shown} (p < .001)" if p < 0.001 else f"{shown} (p {p:.3f})".replace("0.", ".")
