"""Majority-Vote-BT (Chen et al. 2013): Bradley-Terry on the majority answer to each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, DataDiagnostics, Items, Judgments, PairCounts
from crowdrank.engines import Engine
from crowdrank.errors import DataError, DisconnectedError, SeparationError, SettingError
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

# Tolerance of a resample's fit, in standard errors: a hundredth does not matter among resamples.
_RESAMPLE_TOLERANCE = 0.01
_MAJORITIES_ONLY = "Counting only pairs with a majority: "


@dataclass(frozen=True, kw_only=True)
class MajorityBT(Model):
    """Bradley-Terry on the majority answer to each pair, without tied pairs.

    Parameters
    ----------
    prior_scale : float or None, default 3.0
        Standard deviation of the normal prior on scores; None for plain maximum likelihood.
    virtual_weight : float, default 0.0
        λ of Crowd-BT (§3.2): wins and losses of every item against a virtual item.
    tolerance : float, default 1e-4
        Stop when no combination of scores is further from the optimum than this, in standard errors.
    max_steps : int, default 100
        Maximum number of Newton steps. A warning says if that was not enough.
    seed : int, default 0
        Seed of the bootstrap behind standard errors and rank intervals.

    Notes
    -----
    Every pair with a majority is one comparison with P(a ≻ b) = σ(sₐ − s_b), whatever the size of the majority.
    Annotators all count the same.

    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in a crowdsourced
    setting. WSDM.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "a", "b"], ["b", "b", "b", "c"], ["a", "a", "b", "b"])
    >>> MajorityBT().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    virtual_weight: float = 0.0
    tolerance: float = 1e-4
    max_steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.prior_scale, str):
            raise SettingError(f"prior_scale must be positive, or None for no prior, got {self.prior_scale!r}.")
        BradleyTerry(**model_settings(self))  # it checks the same settings

    @property
    def _has_prior(self) -> bool:
        return self.prior_scale is not None or self.virtual_weight > 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        diagnostics, decided = diagnose(comparisons), diagnose(majorities(comparisons))
        check_connected(diagnostics, self._has_prior)
        if not self._has_prior:
            _require_sound(decided)
        objective = self._objective(comparisons.counts, comparisons.items, options.engine)
        found = maximize(objective, objective.start(0.0), tolerance=self.tolerance, max_steps=self.max_steps)
        ranking = build_ranking(
            self,
            comparisons,
            found.parameters,
            convergence=Convergence(found.converged, found.steps, found.distance),
            measure=lambda: self._measure(comparisons, found.parameters, options.engine),
        )
        return ranking.with_parts(notes=lambda: _notes(diagnostics, decided))

    def _objective(
        self, counts: PairCounts, items: Items, engine: Engine, weight: FloatArray | float = 1.0
    ) -> Objective:
        won = majority_sign(counts)
        held = engine.load(Pairs(counts.first, counts.second, won, weight * np.abs(won)))  # a tied pair has weight 0
        return Objective(held, items, LOGISTIC, self.prior_scale, self.virtual_weight)

    def _measure(self, comparisons: Comparisons, scores: FloatArray, engine: Engine) -> Uncertainty:
        items, total = comparisons.items, comparisons.counts.total

        def refit(counts: PairCounts) -> FloatArray:
            if not self._has_prior and not diagnose(_as_comparisons(counts, items)).strongly_connected:
                raise DataError(
                    "The bootstrap drew a resample without finite scores. Set prior_scale to get standard errors."
                )
            # Resampling cannot change the majority of a pair that was judged once. How often a pair is drawn, relative
            # to how often it was judged, is its weight: so such pairs are as uncertain as in Bradley-Terry.
            objective = self._objective(counts, items, engine, counts.total / total)
            found = maximize(objective, scores, tolerance=_RESAMPLE_TOLERANCE, max_steps=self.max_steps)
            return items.centre(found.parameters)

        return bootstrap_counts(comparisons, refit, seed=self.seed)


def majority_sign(counts: PairCounts) -> FloatArray:
    """1 where the majority of a pair prefers `first`, −1 where `second`, 0 where the vote is tied."""
    return np.sign(counts.net)


def majorities(comparisons: Comparisons) -> Comparisons:
    """One comparison per pair that has a majority."""
    return _as_comparisons(comparisons.counts, comparisons.items)


def _as_comparisons(counts: PairCounts, items: Items) -> Comparisons:
    won = majority_sign(counts)
    rows = np.flatnonzero(won)
    return Comparisons(
        items=items,
        left=counts.first[rows],
        right=counts.second[rows],
        outcome=won[rows].astype(np.int8),
        positions_known=False,
    )


def _require_sound(decided: DataDiagnostics) -> None:
    try:
        check_connected(decided, has_prior=False)
    except (DisconnectedError, SeparationError) as error:
        raise type(error)(f"{_MAJORITIES_ONLY}{error}") from error


def _notes(diagnostics: DataDiagnostics, decided: DataDiagnostics) -> list[str]:
    """Notes on the judgments, and on what only their majorities lack."""
    known = diagnostics.notes()
    return known + [f"{_MAJORITIES_ONLY}{note}" for note in decided.notes() if note not in known]
