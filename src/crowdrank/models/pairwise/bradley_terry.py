"""Bradley & Terry 1952: logistic noise on every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.models.base import FitOptions, require_kind
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, outcome_probabilities
from crowdrank.models.pairwise.paired import PairwiseModel, check_ties, fit_pairwise
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class BradleyTerry(PairwiseModel):
    """Scores under logistic noise: P(a beats b) = 1 / (1 + exp(b − a)).

    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> BradleyTerry().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True

    ties: Literal["davidson", "half", "drop"] = "davidson"
    """Modelled with a parameter of their own (Davidson 1970), counted half to each side, or left out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties, ("davidson", "half", "drop"))

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        return fit_pairwise(self, require_kind(Comparisons, judgments, self), self.ties, LOGISTIC, DAVIDSON, options)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        tie = ranking.parameters.get("tie")
        return outcome_probabilities(margin, 0.0 if tie is None else tie, LOGISTIC if tie is None else DAVIDSON)
