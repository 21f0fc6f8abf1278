"""Chen et al. 2013: Bradley-Terry in which each annotator tells the truth with a probability of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons, Judgments
from crowdrank.likelihoods import annotated
from crowdrank.likelihoods.annotated import PROBIT, RELIABLE, sigmoid
from crowdrank.models.annotated import Priors, climb_from, conclude_annotated
from crowdrank.models.conclude import check_connected, check_solver, health_of, need
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class CrowdBT:
    """Bradley-Terry where annotator k tells the truth with probability ηₖ.

    P(k says a beats b) = ηₖ·σ(a − b) + (1 − ηₖ)·σ(b − a): η near 1 is reliable, near ½ random, near 0 reversed.
    """

    reads: ClassVar[type] = Comparisons
    weighs_annotators: ClassVar[bool] = True

    prior_scale: float | None = 3.0
    """Standard deviation of the normal prior on scores; None where `virtual_weight` alone holds them."""
    virtual_weight: float = 0.0
    """Wins and losses (λ) of every item against a virtual one (§3.2)."""
    quality_prior: tuple[float, float] = (3.0, 0.5)
    """Beta prior on η: truths and lies each annotator is credited with beforehand."""
    link: Literal["logistic", "probit"] = "logistic"
    """The noise of a truthful answer: Bradley and Terry's, or Thurstone's (§3.1)."""
    tolerance: float = 1e-4
    """Stop when no combination of parameters is further than this from the optimum, in standard errors."""
    max_steps: int = 200
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_solver(self)
        if self.prior_scale is None and not self.virtual_weight > 0:
            raise SettingError("Scores need a prior here: set prior_scale or virtual_weight.")
        if self.prior_scale is not None and not 0 < self.prior_scale < np.inf:
            raise SettingError(f"prior_scale must be positive, or None, got {self.prior_scale}.")
        if len(self.quality_prior) != 2 or not min(self.quality_prior) > 0:
            raise SettingError(f"quality_prior must be two positive numbers, got {self.quality_prior}.")
        if self.link not in ("logistic", "probit"):
            raise SettingError(f"link must be logistic or probit, got {self.link!r}.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        check_connected(health_of(comparisons), has_prior=True)
        priors = Priors(scale=self.prior_scale, virtual=self.virtual_weight, quality=self.quality_prior)
        summit = climb_from(self, comparisons, RELIABLE if self.link == "logistic" else PROBIT, priors, engine)
        return conclude_annotated(self, summit, lambda: {"quality": summit.of_gates(sigmoid)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> npt.NDArray[np.float64]:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        quality = ranking.annotators["quality"][comparisons.annotator]
        formula = annotated.FORMULAS[RELIABLE if self.link == "logistic" else PROBIT]
        left, right, *_ = formula(margin, np.log(quality / (1 - quality)), 0.0)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)
