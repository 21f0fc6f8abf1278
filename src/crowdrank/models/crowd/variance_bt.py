"""Variance-BT (Volkovs & Zemel 2012, as described by Chen et al. 2013): annotators differ in their precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, IterativeModel, check_connected, diagnose, require_kind
from crowdrank.models.crowd import MapEstimate, Priors, Ties, build_crowd_ranking, check_ties, fit_map, select_judgments
from crowdrank.models.crowd.likelihood import VARIANCE_BT
from crowdrank.models.pairwise.likelihood import LOGISTIC, outcome_probabilities
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class VarianceBT(IterativeModel):
    """Bradley-Terry where each annotator perceives score differences with their own precision.

    Parameters
    ----------
    prior_scale : float, default 3.0
        Standard deviation of the normal prior on scores.
    precision_scale : float, default 1.0
        Standard deviation of the normal prior on log κ, around κ = 1.
    ties : "half" or "drop", default "half"
        Whether ties count as half an answer each way, which keeps κ bounded where few answers are decided, or are
        ignored.
    tolerance : float, default 1e-4
        Stop when no combination of parameters is further from the optimum than this, in standard errors.
    max_steps : int, default 200
        Maximum number of steps. A warning says if that was not enough.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    Annotator k prefers a to b with probability

        P(a ≻ b) = σ(κₖ·(sₐ − s_b)),  κₖ > 0

    An annotator who guesses has a precision κ near 0. Nobody can be reversed.

    M. N. Volkovs, R. S. Zemel (2012). A flexible generative model for preference aggregation. WWW.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> crowd = mixed_crowd(items=10, kinds={"good": 4, "random": 2}, votes_each=40, seed=1)
    >>> precision = VarianceBT().fit(crowd.judgments).annotators.estimate("precision")
    >>> good = crowd.annotators["kind"] == "good"
    >>> bool(precision[good].min() > precision[~good].max())
    True
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    prior_scale: float = 3.0
    precision_scale: float = 1.0
    ties: Ties = "half"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        for name in ("prior_scale", "precision_scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingError(f"{name} must be positive, got {getattr(self, name)}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(select_judgments(comparisons, self.ties)), has_prior=True)
        priors = Priors(scale=self.prior_scale, logit=(0.0, self.precision_scale))

        def fit(comparisons: Comparisons, options: FitOptions) -> MapEstimate:
            return fit_map(self, comparisons, VARIANCE_BT, priors, options, ties=self.ties)

        estimate = fit(comparisons, options)
        return build_crowd_ranking(
            self,
            estimate,
            lambda: {"precision": estimate.logit_interval(np.exp)},
            refit=lambda tossed: fit(tossed, FitOptions(engine=options.engine)),
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns. Ties have probability 0."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return outcome_probabilities(
            margin * ranking.annotators.estimate("precision")[comparisons.annotator], 0.0, LOGISTIC
        )
