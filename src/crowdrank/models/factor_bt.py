"""Bugakova et al. 2019: annotators who sometimes answer by what should not matter, such as the side of the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.judgments import Comparisons, Judgments
from crowdrank.likelihoods import annotated
from crowdrank.likelihoods.annotated import PULLED, sigmoid
from crowdrank.models.annotated import Priors, climb_from, conclude_annotated, interval
from crowdrank.models.conclude import check_connected, check_solver, health_of, need
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FactorBT:
    """Bradley-Terry where annotators are pulled by features that should not matter.

    P(k says left beats right) = f(γₖ)·f(left − right) + (1 − f(γₖ))·f(⟨x, rₖ⟩): with chance f(γₖ) annotator k looks
    at the items, else answers by the features x of the task, each pulling with its own rₖ.
    """

    reads: ClassVar[type] = Comparisons
    weighs_annotators: ClassVar[bool] = True

    features: tuple[str, ...] = ("position",)
    """Features of the task: "position" (the left side of the screen), or columns read with the judgments."""
    prior_scale: float = 3.0
    """Standard deviation of the normal prior on scores."""
    care_prior: tuple[float, float] = (2.0, 1.5)
    """Mean and standard deviation of the normal prior on γ, the logit of how often an annotator looks at the items."""
    pull_scale: float = 1.0
    """Standard deviation of the normal prior on each pull."""
    tolerance: float = 1e-4
    """Stop when no combination of parameters is further than this from the optimum, in standard errors."""
    max_steps: int = 200
    seed: int = 0
    """Of the draws behind rank intervals."""

    def __post_init__(self) -> None:
        check_solver(self)
        if not (0 < self.prior_scale < np.inf and 0 < self.pull_scale < np.inf and 0 < self.care_prior[1] < np.inf):
            raise SettingError("prior_scale, pull_scale and the spread of care_prior must be positive.")
        if not self.features:
            raise SettingError("features must name at least one feature: without any, use crowd-bt.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        check_connected(health_of(comparisons), has_prior=True)
        priors = Priors(scale=self.prior_scale, gate=self.care_prior, pull=self.pull_scale)
        summit = climb_from(self, comparisons, PULLED, priors, engine, self._columns(comparisons))

        def estimates() -> dict[str, tuple[Vector, Vector, Vector]]:
            pulls, errors = summit.parts[2], summit.errors_of_annotators[:, 1:]
            found = {"care": summit.of_gates(sigmoid)}
            for n, name in enumerate(self.features):
                found[f"pull_of_{name}"] = interval(pulls[:, n], errors[:, n], np.array)
            return found

        return conclude_annotated(self, summit, estimates)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> npt.NDArray[np.float64]:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        who, people = comparisons.annotator, ranking.annotators
        care = people["care"][who]
        pulls = np.stack([people[f"pull_of_{name}"][who] for name in self.features], axis=1)
        pull = np.sum(pulls * self._columns(comparisons), axis=1)
        left, right, *_ = annotated.FORMULAS[PULLED](margin, np.log(care / (1 - care)), pull)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)

    def _columns(self, comparisons: Comparisons) -> Vector:
        """One column a feature, positive where it speaks for the left item."""
        return np.stack([self._column(comparisons, name) for name in self.features], axis=1)

    def _column(self, comparisons: Comparisons, name: str) -> Vector:
        if name == "position":
            if not comparisons.sided:
                raise DataError("The judgments do not say what stood left and right: leave the feature position out.")
            return np.ones(len(comparisons))
        if name not in comparisons.features:
            raise UnknownNameError("feature", name, ["position", *comparisons.features])
        try:
            column = np.asarray(comparisons.features[name], dtype=np.float64)
        except ValueError as error:
            raise DataError(f"Feature {name!r} must be numbers.") from error
        if not np.isfinite(column).all():
            raise DataError(f"Feature {name!r} has missing values.")
        return column
