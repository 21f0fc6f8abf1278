"""Crowd-BT (Chen et al. 2013): Bradley-Terry with a quality per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, IterativeModel, check_connected, diagnose, require_kind
from crowdrank.models.cross_validation import is_auto, tune_settings
from crowdrank.models.crowd import (
    Priors,
    Start,
    Ties,
    build_crowd_ranking,
    check_ties,
    fit_map,
    likelihood,
    select_judgments,
)
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, sigmoid
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class CrowdBT(IterativeModel):
    """Bradley-Terry where each annotator answers truthfully with their own probability, the quality.

    Parameters
    ----------
    prior_scale : float, "auto" or None, default 3.0
        Standard deviation of the normal prior on scores. None for no such prior; then `virtual_weight` is needed.
        "auto" chooses by cross-validation.
    virtual_weight : float or "auto", default 0.0
        λ of the paper: wins and losses of every item against a virtual item (§3.2). "auto" chooses by cross-validation.
    quality_prior : (float, float), "auto" or None, default (3.0, 0.5)
        Beta prior on the quality: truthful and untruthful answers that each annotator is credited with beforehand.
        None for no prior, as in the paper. "auto" chooses by cross-validation.
    link : "logistic" or "probit", default "logistic"
        Noise of a truthful answer: that of Bradley and Terry, or Thurstone's normal noise (§3.1).
    ties : "drop" or "half", default "drop"
        Whether ties are ignored or count as half an answer each way. A tie does not tell who is truthful.
    start : "several", "one" or "gold", default "several"
        Start of the solver: the best of several; everyone fully trusted, as in the paper; or everyone trusted by their
        accuracy on gold pairs, as in the paper.
    solver : "joint" or "alternating", default "joint"
        Newton's method on scores and qualities together; or both in turn, as in the paper (§3.3).
    tolerance : float, default 1e-4
        Stop when no combination of parameters is further from the optimum than this, in standard errors.
    max_steps : int, default 200
        Maximum number of steps. A warning says if that was not enough.
    seed : int, default 0
        Seed of the draws behind rank intervals, and of the folds behind "auto".

    Notes
    -----
    Annotator k prefers a to b with probability

        P(a ≻ b) = ηₖ·σ(sₐ − s_b) + (1 − ηₖ)·σ(s_b − sₐ)

    A quality η near 1 is reliable, near ½ random, near 0 reversed. The estimate is the mode of the posterior (MAP).

    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz (2013). Pairwise ranking aggregation in a crowdsourced
    setting. WSDM.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> crowd = mixed_crowd(items=10, kinds={"good": 5, "reversed": 1}, votes_each=40, seed=1)
    >>> ranking = CrowdBT().fit(crowd.judgments)
    >>> len(ranking.scores)
    10
    >>> int((ranking.annotators.estimate("quality") < 0.5).sum())
    1
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] | None = 3.0
    virtual_weight: float | Literal["auto"] = 0.0
    quality_prior: tuple[float, float] | Literal["auto"] | None = (3.0, 0.5)
    link: Literal["logistic", "probit"] = "logistic"
    ties: Ties = "drop"
    start: Start = "several"
    solver: Literal["joint", "alternating"] = "joint"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        scale, virtual, quality = self.prior_scale, self.virtual_weight, self.quality_prior
        if scale is None and virtual == 0:
            raise SettingError("Scores need a prior in crowd-bt: set prior_scale or virtual_weight.")
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

    @property
    def _formula(self) -> int:
        return CROWD_BT if self.link == "logistic" else CROWD_BT_PROBIT

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(select_judgments(comparisons, self.ties)), has_prior=True)
        model = tune_settings(self, comparisons, options)
        priors = Priors(scale=model.prior_scale, virtual=model.virtual_weight, quality=model.quality_prior)
        estimate = fit_map(
            self, comparisons, self._formula, priors, options, ties=self.ties, start=self.start, solver=self.solver
        )
        return build_crowd_ranking(model, estimate, lambda: {"quality": estimate.logit_interval(sigmoid)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns. Ties have probability 0."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        quality = ranking.annotators.estimate("quality")[comparisons.annotator]
        with np.errstate(divide="ignore"):
            logit = np.log(quality) - np.log1p(-quality)
        left, right, *_ = likelihood.FORMULAS[self._formula](margin, logit, 0.0)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)
