"""Volkovs & Zemel 2012, as Crowd-BT's Variance-BT: annotators differ in how sharply they see differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, IterativeModel, check_connected, diagnose, require_kind
from crowdrank.models.crowd import Priors, Ties, build_crowd_ranking, check_ties, climb_from, counted
from crowdrank.models.crowd.likelihood import SCALED
from crowdrank.models.pairwise.likelihood import LOGISTIC, outcome_probabilities
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class VarianceBT(IterativeModel):
    """Bradley-Terry where annotator k sees differences κₖ times as sharply.

    P(k says a beats b) = σ(κₖ·(a − b)) with κ > 0: a careless annotator has κ near 0, nobody is ever reversed.
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    prior_scale: float = 3.0
    """Standard deviation of the normal prior on scores."""
    sharpness_scale: float = 1.0
    """Standard deviation of the normal prior on log κ, around κ = 1."""
    ties: Ties = "half"
    """Half an answer each way, which keeps κ in bounds where few answers are decided; or left out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        if not (0 < self.prior_scale < np.inf and 0 < self.sharpness_scale < np.inf):
            raise SettingError("prior_scale and sharpness_scale must be positive.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(counted(comparisons, self.ties)), has_prior=True)
        priors = Priors(scale=self.prior_scale, gate=(0.0, self.sharpness_scale))
        summit = climb_from(self, comparisons, SCALED, priors, options, ties=self.ties)
        return build_crowd_ranking(self, summit, lambda: {"sharpness": summit.of_gates(np.exp)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return outcome_probabilities(
            margin * ranking.annotators.estimate("sharpness")[comparisons.annotator], 0.0, LOGISTIC
        )
