"""Thurstone's case V: normal noise on every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.models.base import FitOptions, require_kind
from crowdrank.models.pairwise.covariates import covariate_margin
from crowdrank.models.pairwise.likelihood import PROBIT, THRESHOLD
from crowdrank.models.pairwise.paired import PairwiseModel, check_ties, fit_comparisons, predict_outcomes
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class Thurstone(PairwiseModel):
    """Thurstone's case V: scores under normal noise, with their spread learnt from the judgments.

    Parameters
    ----------
    prior_scale : float, "auto" or None, default "auto"
        Standard deviation of the normal prior on scores. "auto" learns it from the judgments, as in `BradleyTerry`.
        None is plain maximum likelihood, which needs every item to have both won and lost.
    virtual_weight : float, default 0
        Wins and losses (λ) of every item against a virtual item with score 0.
    ties : {"threshold", "per-item", "half", "drop"}, default "threshold"
        Model a tie as a difference below a threshold (Glenn & David 1960), let the threshold depend on both items,
        count half a win for each side, or drop ties.
    both_bad : {"tie", "apart"}, default "tie"
        Count an answer that both items are bad as a tie, or rank without these answers and report their share for each
        item, as "both_bad" in `Ranking.item_parameters`.
    covariates : tuple of str, default ()
        Features whose effect is estimated next to the scores and removed from them: "position" (which item was on the
        left), or columns read with the judgments. `covariate_effects` returns the coefficients.
    pooling : {"none", "partial"}, default "none"
        Whether the same label in several queries is one item: "partial" gives it an overall score and a deviation in
        each query, whose spread is learnt. `Ranking.overall` has the overall scores.
    tolerance : float, default 1e-4
        Newton's method stops when the distance to the optimum is at most this many standard errors.
    max_steps : int, default 100
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    P(a beats b) = Φ((s_a − s_b) / √2): both items are perceived with unit normal noise. With a threshold θ,
    P(a) = Φ((d − θ)/√2) and P(b) = Φ((−d − θ)/√2) with d = s_a − s_b; the rest are ties. With ties="per-item",
    θ·exp(t_a + t_b) takes the place of θ, with t ~ N(0, σ²) for each item and σ learnt; `Ranking.item_parameters` has t
    as "tie_effect".

    References
    ----------
    Thurstone 1927; Glenn & David 1960.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> Thurstone().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    formulas: ClassVar[tuple[int, int]] = (PROBIT, THRESHOLD)

    ties: Literal["threshold", "per-item", "half", "drop"] = "threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties, ("threshold", "per-item", "half", "drop"))

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_comparisons(self, require_kind(Comparisons, judgments, self), options)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns."""
        return predict_outcomes(self, ranking, comparisons, covariate_margin(ranking, comparisons, self.covariates))
