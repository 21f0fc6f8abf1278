"""Crowd-BT (Chen et al. 2013): Bradley-Terry with a quality per annotator.

By default annotators are integrated out: the likelihood is in `marginal_likelihood`, the fit in `random_effects`. With
`estimation="joint"` the likelihood is in `likelihood`, the fit in `fitting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import (
    FitOptions,
    IterativeModel,
    check_choice,
    check_connected,
    diagnose,
    is_auto,
    require_kind,
)
from crowdrank.models.crowd.encoding import Start, select_judgments
from crowdrank.models.crowd.likelihood import CROWD_BT, CROWD_BT_PROBIT, sigmoid
from crowdrank.models.crowd.marginal_likelihood import link_terms
from crowdrank.models.crowd.random_effects import fit_random_effects
from crowdrank.results import Ranking

# With a spread near zero, refits to resampled judgments would all be alike.
_LEAST_REFITTED_SCALE = 0.3


@dataclass(frozen=True, kw_only=True)
class CrowdBT(IterativeModel):
    """Bradley-Terry where each annotator answers truthfully with their own probability, the quality.

    Parameters
    ----------
    prior_scale : float, "auto" or None, default "auto"
        Standard deviation of the normal prior on scores. "auto" learns it from the judgments. None for no such prior;
        then `virtual_weight` is needed.
    quality_prior : (float, float), "auto" or None, default "auto"
        Beta prior on the quality: truthful and untruthful answers that each annotator is credited with beforehand.
        "auto" learns it from the judgments. None for no prior, as in the paper.
    estimation : "marginal" or "joint", default "marginal"
        "marginal" treats the quality of annotators as a random effect and integrates it out, together with
        `prior_scale` and `quality_prior` where these are "auto". "joint" maximises over scores and qualities together,
        as in the paper; then "auto" chooses by cross-validation. With few answers per annotator the joint estimate
        spreads the scores too far.
    virtual_weight : float or "auto", default 0.0
        λ of the paper: wins and losses of every item against a virtual item (§3.2). Joint estimation only.
    link : "logistic" or "probit", default "logistic"
        Noise of a truthful answer: that of Bradley and Terry, or Thurstone's normal noise (§3.1).
    ties : "davidson", "half" or "drop", default "davidson"
        Model ties with a tendency to tie per annotator (Davidson 1970), count a tie as half an answer each way, or drop
        ties. Joint estimation counts ties as half an answer each way instead of modelling them.
    start : "several", "one" or "gold", default "several"
        Start of the solver in joint estimation: the best of several; everyone fully trusted, as in the paper; or
        everyone trusted by their accuracy on gold pairs, as in the paper.
    solver : "newton" or "alternating", default "newton"
        Solver of joint estimation: Newton's method on scores and qualities together; or both in turn, as in the paper
        (§3.3).
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

    A quality η near 1 is reliable, near ½ random, near 0 reversed. By default the score is the posterior mean with
    qualities and hyperparameters integrated out (Laplace approximations, mixed by their evidence). Where annotators are
    alike, the model reduces to Bradley-Terry. With ties, P(tie) = ν/(ν + 2·cosh(κ·(sₐ − s_b)/2)) with
    log ν = log νₖ + tₐ + t_b, and the formula above is that of a decided answer. The tendency νₖ of an annotator to tie
    is integrated out as well. The slope κ and the item effects t are learnt, so that ties count for as much as they say
    about the scores: many ties only say that both items are bad. Orders among annotators
    (`SideInformation(better=…)`) need joint estimation, which is then used.

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
    samples: ClassVar[bool] = True

    prior_scale: float | Literal["auto"] | None = "auto"
    quality_prior: tuple[float, float] | Literal["auto"] | None = "auto"
    estimation: Literal["marginal", "joint"] = "marginal"
    virtual_weight: float | Literal["auto"] = 0.0
    link: Literal["logistic", "probit"] = "logistic"
    ties: Literal["davidson", "half", "drop"] = "davidson"
    start: Start = "several"
    solver: Literal["newton", "alternating"] = "newton"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("estimation", self.estimation, ("marginal", "joint"))
        check_choice("link", self.link, ("logistic", "probit"))
        check_choice("ties", self.ties, ("davidson", "half", "drop"))
        check_choice("start", self.start, get_args(Start))
        check_choice("solver", self.solver, ("newton", "alternating"))
        scale, virtual, quality = self.prior_scale, self.virtual_weight, self.quality_prior
        if not (scale is None or is_auto(scale) or (not isinstance(scale, str) and 0 < scale < np.inf)):
            raise SettingError(f'prior_scale must be positive, "auto" or None, got {scale!r}.')
        if not (is_auto(virtual) or (not isinstance(virtual, str) and 0 <= virtual < np.inf)):
            raise SettingError(f'virtual_weight must be zero or more, or "auto", got {virtual!r}.')
        counts = () if quality is None or isinstance(quality, str) else quality
        if not (quality is None or is_auto(quality) or (len(counts) == 2 and min(counts) > 0)):
            raise SettingError(f'quality_prior must be two positive numbers, "auto" or None, got {quality!r}.')
        if scale is None and virtual == 0:
            raise SettingError("Scores need a prior in crowd-bt: set prior_scale or virtual_weight.")
        if self.estimation == "marginal":
            self._check_marginal()

    def _check_marginal(self) -> None:
        """Refuse settings that only joint estimation has."""
        joint_only = {
            "virtual_weight": self.virtual_weight != 0,
            "prior_scale=None": self.prior_scale is None,
            "quality_prior=None": self.quality_prior is None,
            "start": self.start != "several",
            "solver": self.solver != "newton",
        }
        for name, is_set in joint_only.items():
            if is_set:
                raise SettingError(f'{name} belongs to joint estimation: add estimation="joint".')

    @property
    def _formula(self) -> int:
        return CROWD_BT if self.link == "logistic" else CROWD_BT_PROBIT

    def with_estimated_settings(self, ranking: Ranking) -> CrowdBT:
        if self.estimation == "joint":
            return self
        scale, quality, found = self.prior_scale, self.quality_prior, ranking.parameters
        if scale == "auto":
            scale = max(found["prior_scale"], _LEAST_REFITTED_SCALE)
        if quality == "auto":
            mean, concentration = found["quality_mean"], found["quality_concentration"]
            quality = (mean * concentration, (1.0 - mean) * concentration)
        return replace(self, prior_scale=scale, quality_prior=quality)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        used = select_judgments(comparisons, "drop" if self.ties == "drop" else "half")
        check_connected(diagnose(used), has_prior=True)
        if self.estimation == "joint" or options.side_information.better:
            return self._fit_jointly(comparisons, options)
        estimate = fit_random_effects(
            self,
            used,
            self._formula,
            options,
            model_ties=self.ties == "davidson",
            scale=None if isinstance(self.prior_scale, str) else self.prior_scale,
            quality=None if isinstance(self.quality_prior, str) else self.quality_prior,
        )
        return estimate.ranking(self)

    def _fit_jointly(self, comparisons: Comparisons, options: FitOptions) -> Ranking:
        from crowdrank.models.crowd import Priors, build_crowd_ranking, fit_map

        model: Any = self._with_usual_priors()
        if self.estimation == "joint":
            from crowdrank.models.cross_validation import tune_settings

            model = tune_settings(self, comparisons, options)
        priors = Priors(scale=model.prior_scale, virtual=model.virtual_weight, quality=model.quality_prior)
        estimate = fit_map(
            self,
            comparisons,
            self._formula,
            priors,
            options,
            ties="drop" if self.ties == "drop" else "half",
            start=self.start,
            solver="joint" if self.solver == "newton" else self.solver,
        )
        return build_crowd_ranking(model, estimate, lambda: {"quality": estimate.logit_interval(sigmoid)})

    def _with_usual_priors(self) -> CrowdBT:
        """Priors for a joint estimate that was not asked for: those of typical crowds, in place of "auto"."""
        scale = 3.0 if is_auto(self.prior_scale) else self.prior_scale
        return replace(self, prior_scale=scale, quality_prior=self._usual_quality_prior)

    @property
    def _usual_quality_prior(self) -> tuple[float, float] | None:
        return (3.0, 0.5) if isinstance(self.quality_prior, str) else self.quality_prior

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        left, right, *_ = link_terms(margin, self._formula)
        if comparisons.annotator is None or not ranking.has_annotators:
            quality = np.full(len(margin), ranking.parameters.get("quality_mean", 1.0))
        else:
            quality = ranking.annotators.estimate("quality")[comparisons.annotator]
        left, right = quality * left + (1.0 - quality) * right, quality * right + (1.0 - quality) * left
        tie = self._tie_probability(ranking, comparisons, margin)
        return np.stack((left * (1.0 - tie), tie, right * (1.0 - tie)), axis=1)

    def _tie_probability(self, ranking: Ranking, comparisons: Comparisons, margin: FloatArray) -> FloatArray:
        if "tie" not in ranking.parameters:
            return np.zeros(len(margin))
        tendency = np.full(len(margin), np.exp(ranking.parameters["tie"]))
        if comparisons.annotator is not None and ranking.has_annotators:
            tendency = ranking.annotators.estimate("tie_tendency")[comparisons.annotator]
        slope, effect = ranking.parameters["tie_slope"], ranking.item_parameters["tie_effect"]
        tendency = tendency * np.exp(effect[comparisons.left] + effect[comparisons.right])
        return np.asarray(tendency / (tendency + 2.0 * np.cosh(0.5 * slope * margin)))
