"""Bradley-Terry: logistic noise on every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.models.base import FitOptions, require_kind
from crowdrank.models.pairwise.covariates import covariate_margin
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC
from crowdrank.models.pairwise.paired import PairwiseModel, check_ties, fit_comparisons, predict_outcomes
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class BradleyTerry(PairwiseModel):
    """Bradley-Terry model: scores under logistic noise, with their spread learnt from the judgments.

    Parameters
    ----------
    prior_scale : float, "auto" or None, default "auto"
        Standard deviation of the normal prior on scores. "auto" learns it from the judgments, so that items that differ
        little are shrunk towards each other. None is plain maximum likelihood, which needs every item to have both won
        and lost.
    virtual_weight : float, default 0
        Wins and losses (λ) of every item against a virtual item with score 0, the regularisation of Chen et al. 2013,
        §3.2.
    ties : {"davidson", "per-item", "half", "drop"}, default "davidson"
        Model ties with a parameter of their own (Davidson 1970), model them with a tendency to tie for each item, count
        half a win for each side, or drop them.
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
    P(a beats b) = 1 / (1 + exp(s_b − s_a)). With Davidson's ties, P(a) : P(tie) : P(b) = e^{d/2} : e^θ : e^{−d/2} with
    d = s_a − s_b. With ties="per-item", θ + t_a + t_b takes the place of θ, with a tendency t ~ N(0, σ²) for each item
    and σ learnt; `Ranking.item_parameters` has t as "tie_effect".

    With a given `prior_scale`, scores maximise the posterior; its curvature gives the standard errors.
    With "auto", the evidence of the judgments decides on the spread τ, under a weak prior: up to 300 items, scores are
    posterior means with τ integrated out; beyond that, the best τ is taken. `Ranking.parameters` has it as
    "prior_scale".

    References
    ----------
    Bradley & Terry 1952; Davidson 1970; MacKay 1992; Rue, Martino & Chopin 2009.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> BradleyTerry().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    formulas: ClassVar[tuple[int, int]] = (LOGISTIC, DAVIDSON)

    ties: Literal["davidson", "per-item", "half", "drop"] = "davidson"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties, ("davidson", "per-item", "half", "drop"))

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_comparisons(self, require_kind(Comparisons, judgments, self), options)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns."""
        return predict_outcomes(self, ranking, comparisons, covariate_margin(ranking, comparisons, self.covariates))
