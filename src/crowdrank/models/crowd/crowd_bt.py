"""Chen et al. 2013: Bradley-Terry in which each annotator tells the truth with a probability of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, IterativeModel, check_connected, diagnose, require_kind
from crowdrank.models.cross_validation import is_auto, tune_settings
from crowdrank.models.crowd import Priors, Start, Ties, build_crowd_ranking, check_ties, climb_from, counted, likelihood
from crowdrank.models.crowd.likelihood import PROBIT, RELIABLE, sigmoid
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class CrowdBT(IterativeModel):
    """Bradley-Terry where annotator k tells the truth with probability ηₖ.

    P(k says a beats b) = ηₖ·σ(a − b) + (1 − ηₖ)·σ(b − a): η near 1 is reliable, near ½ random, near 0 reversed.
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] | None = 3.0
    """Standard deviation of the normal prior on scores; None where `virtual_weight` alone holds them."""
    virtual_weight: float | Literal["auto"] = 0.0
    """Wins and losses (λ) of every item against a virtual one (§3.2)."""
    quality_prior: tuple[float, float] | Literal["auto"] | None = (3.0, 0.5)
    """Beta prior on η: truths and lies each annotator is credited with beforehand; None for none, as in the paper."""
    link: Literal["logistic", "probit"] = "logistic"
    """The noise of a truthful answer: Bradley and Terry's, or Thurstone's (§3.1)."""
    ties: Ties = "drop"
    """A tie says nothing of who tells the truth: left out, or half an answer each way."""
    start: Start = "several"
    """Everyone trusted ("one"), or as far as they answer gold pairs ("gold"), as the paper; or the best of several."""
    solver: Literal["joint", "alternating"] = "joint"
    """Scores and qualities together, or in turn with each η set exactly ("alternating", the paper's)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        scale, virtual, quality = self.prior_scale, self.virtual_weight, self.quality_prior
        if scale is None and virtual == 0:
            raise SettingError("Scores need a prior here: set prior_scale or virtual_weight.")
        if not (scale is None or is_auto(scale) or (not isinstance(scale, str) and 0 < scale < np.inf)):
            raise SettingError(f'prior_scale must be positive, "auto" or None, got {scale!r}.')
        if not (is_auto(virtual) or (not isinstance(virtual, str) and 0 <= virtual < np.inf)):
            raise SettingError(f'virtual_weight must be zero or more, or "auto", got {virtual!r}.')
        counts = () if quality is None or isinstance(quality, str) else quality
        if not (quality is None or is_auto(quality) or (len(counts) == 2 and min(counts) > 0)):
            raise SettingError(f'quality_prior must be two positive numbers, "auto" or None, got {quality!r}.')
        if self.link not in ("logistic", "probit"):
            raise SettingError(f"link must be logistic or probit, got {self.link!r}.")
        if self.start not in get_args(Start):
            raise SettingError(f"start must be one of {', '.join(get_args(Start))}, got {self.start!r}.")
        if self.solver not in ("joint", "alternating"):
            raise SettingError(f"solver must be joint or alternating, got {self.solver!r}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(counted(comparisons, self.ties)), has_prior=True)
        model: Any = tune_settings(self, comparisons, options)
        priors = Priors(scale=model.prior_scale, virtual=model.virtual_weight, quality=model.quality_prior)
        formula = RELIABLE if self.link == "logistic" else PROBIT
        summit = climb_from(
            self, comparisons, formula, priors, options, ties=self.ties, start=self.start, solver=self.solver
        )
        return build_crowd_ranking(model, summit, lambda: {"quality": summit.of_gates(sigmoid)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        quality = ranking.annotators.estimate("quality")[comparisons.annotator]
        formula = likelihood.FORMULAS[RELIABLE if self.link == "logistic" else PROBIT]
        with np.errstate(divide="ignore"):
            left, right, *_ = formula(margin, np.log(quality) - np.log1p(-quality), 0.0)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)
