"""Chen et al. 2013's Majority-Vote-BT: the majority of each pair is one comparison for Bradley-Terry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, DataDiagnostics, Items, Judgments, PairCounts
from crowdrank.engines import Engine
from crowdrank.errors import DataError, DisconnectedError, SeparationError
from crowdrank.inference.newton import maximize
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    diagnose,
    model_settings,
    require_kind,
)
from crowdrank.models.bootstrap import bootstrap_counts
from crowdrank.models.pairwise.bradley_terry import BradleyTerry
from crowdrank.models.pairwise.likelihood import LOGISTIC, Pairs
from crowdrank.models.pairwise.paired import Objective
from crowdrank.results import Convergence, Ranking, Uncertainty

# How near its optimum a resample is fitted, in standard errors: a hundredth is lost among resamples.
_NEAR_ENOUGH = 0.01
_OF_MAJORITIES = "Of the majorities, tied pairs left out: "


@dataclass(frozen=True, kw_only=True)
class MajorityBT(Model):
    """Bradley-Terry on the majority's answer to each pair, tied pairs left out.

    >>> votes = Comparisons.of(["a", "a", "a", "b"], ["b", "b", "b", "c"], ["a", "a", "b", "b"])
    >>> MajorityBT().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    """Standard deviation of the normal prior on scores; None for plain maximum likelihood."""
    virtual_weight: float = 0.0
    """Wins and losses (λ) of every item against a virtual one, as Crowd-BT §3.2 regularises."""
    tolerance: float = 1e-4
    """Stop when no combination of scores is further than this from the optimum, in standard errors."""
    max_steps: int = 100
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        BradleyTerry(**model_settings(self))  # which has the same settings, and refuses what means nothing

    @property
    def _has_prior(self) -> bool:
        return self.prior_scale is not None or self.virtual_weight > 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        health, decided = diagnose(comparisons), diagnose(majorities(comparisons))
        check_connected(health, self._has_prior)
        if not self._has_prior:
            _refuse_unsound(decided)
        objective = self._objective(comparisons.counts, comparisons.items, options.engine)
        found = maximize(objective, objective.start(0.0), tolerance=self.tolerance, max_steps=self.max_steps)
        ranking = build_ranking(
            self,
            comparisons,
            found.parameters,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=lambda: self._measure(comparisons, found.parameters, options.engine),
        )
        return ranking.with_parts(notes=lambda: _notes(health, decided))

    def _objective(
        self, counts: PairCounts, items: Items, engine: Engine, weight: FloatArray | float = 1.0
    ) -> Objective:
        won = majority_of(counts)
        held = engine.load(Pairs(counts.first, counts.second, won, weight * np.abs(won)))  # a tied pair weighs nothing
        return Objective(held, items, LOGISTIC, self.prior_scale, self.virtual_weight)

    def _measure(self, comparisons: Comparisons, scores: FloatArray, engine: Engine) -> Uncertainty:
        items, total = comparisons.items, comparisons.counts.total

        def again(counts: PairCounts) -> FloatArray:
            if not self._has_prior and not diagnose(_as_comparisons(counts, items)).strongly_connected:
                raise DataError(
                    "A resample of these judgments has no finite scores: the bootstrap needs a prior, set prior_scale."
                )
            # A majority of one cannot be outvoted by drawing it again. What a pair is drawn oftener or rarer than it
            # was judged is its weight, so that such pairs are as unsure as under Bradley-Terry.
            objective = self._objective(counts, items, engine, counts.total / total)
            found = maximize(objective, scores, tolerance=_NEAR_ENOUGH, max_steps=self.max_steps)
            return items.centre(found.parameters)

        return bootstrap_counts(comparisons, again, seed=self.seed)


def majority_of(counts: PairCounts) -> FloatArray:
    """1 where most of a pair's weight is for `first`, -1 where for `second`, 0 where the vote is tied."""
    return np.sign(counts.net)


def majorities(comparisons: Comparisons) -> Comparisons:
    """One comparison a pair that has a majority."""
    return _as_comparisons(comparisons.counts, comparisons.items)


def _as_comparisons(counts: PairCounts, items: Items) -> Comparisons:
    won = majority_of(counts)
    rows = np.flatnonzero(won)
    return Comparisons(
        items=items,
        left=counts.first[rows],
        right=counts.second[rows],
        outcome=won[rows].astype(np.int8),
        positions_known=False,
    )


def _refuse_unsound(decided: DataDiagnostics) -> None:
    try:
        check_connected(decided, has_prior=False)
    except (DisconnectedError, SeparationError) as error:
        raise type(error)(f"{_OF_MAJORITIES}{error}") from error


def _notes(health: DataDiagnostics, decided: DataDiagnostics) -> list[str]:
    """What the judgments lack, and what their majorities lack besides."""
    known = health.notes()
    return known + [f"{_OF_MAJORITIES}{note}" for note in decided.notes() if note not in known]
