"""Bradley & Terry 1952: logistic noise on every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import Engine, here
from crowdrank.models.base import BaseModel, need
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, chances
from crowdrank.models.pairwise.paired import check_settings, fit_pairwise
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class BradleyTerry(BaseModel):
    """Scores under logistic noise: P(a beats b) = 1 / (1 + exp(b − a)).

    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> BradleyTerry().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    """Standard deviation of the normal prior on scores; None for plain maximum likelihood."""
    virtual_weight: float = 0.0
    """Wins and losses (λ) of every item against a virtual one, as Crowd-BT §3.2 regularises."""
    ties: Literal["davidson", "half", "drop"] = "davidson"
    """Modelled with a parameter of their own (Davidson 1970), counted half to each side, or left out."""
    tolerance: float = 1e-4
    """Stop when no combination of scores is further than this from the optimum, in standard errors."""
    max_steps: int = 100
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_settings(self, ("davidson", "half", "drop"))

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        return fit_pairwise(self, need(Comparisons, judgments, self), LOGISTIC, DAVIDSON, engine)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        tie = ranking.parameters.get("tie")
        return chances(margin, 0.0 if tie is None else tie, LOGISTIC if tie is None else DAVIDSON)
