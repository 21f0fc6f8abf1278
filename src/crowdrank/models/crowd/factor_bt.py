"""Bugakova et al. 2019: annotators who sometimes answer by what should not matter, such as the side of the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.data.features import feature_columns
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, IterativeModel, check_connected, diagnose, require_kind
from crowdrank.models.crowd import (
    Priors,
    Ties,
    build_crowd_ranking,
    check_ties,
    climb_from,
    counted,
    interval,
    likelihood,
)
from crowdrank.models.crowd.likelihood import PULLED, sigmoid
from crowdrank.results import Ranking
from crowdrank.results.bias_effects import FEATURE_UNIT_PREFIX, FEATURE_WEIGHT_PREFIX


@dataclass(frozen=True, kw_only=True)
class FactorBT(IterativeModel):
    """Bradley-Terry where annotators are pulled by features that should not matter.

    P(k says left beats right) = f(γₖ)·f(left − right) + (1 − f(γₖ))·f(⟨x, rₖ⟩): with chance f(γₖ) annotator k looks
    at the items, else answers by the features x of the task, each pulling with its own rₖ.
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    features: tuple[str, ...] = ("position",)
    """Features of the task: "position" (the left side of the screen), or columns read with the judgments, numbers
    or text; of a text each category pulls for itself."""
    prior_scale: float = 3.0
    """Standard deviation of the normal prior on scores."""
    care_prior: tuple[float, float] = (2.0, 4.0)
    """Mean and standard deviation of the normal prior on γ, the logit of how often an annotator looks at the items;
    wide enough to believe of someone that they never look."""
    pull_scale: float = 1.0
    """Standard deviation of the normal prior on the pull of a feature of its usual size (root mean square)."""
    ties: Ties = "drop"
    """A tie says nothing of who tells the truth: left out, or half an answer each way."""
    solver: Literal["joint", "conjugate-gradients"] = "joint"
    """Newton's steps of all parameters together, or the paper's, which go by slopes alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties)
        if not (0 < self.prior_scale < np.inf and 0 < self.pull_scale < np.inf and 0 < self.care_prior[1] < np.inf):
            raise SettingError("prior_scale, pull_scale and the spread of care_prior must be positive.")
        if self.solver not in ("joint", "conjugate-gradients"):
            raise SettingError(f"solver must be joint or conjugate-gradients, got {self.solver!r}.")
        if not self.features:
            raise SettingError("features must name at least one feature: without any, use crowd-bt.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        check_connected(diagnose(counted(comparisons, self.ties)), has_prior=True)
        priors = Priors(scale=self.prior_scale, gate=self.care_prior, pull=self.pull_scale)
        columns = feature_columns(comparisons, self.features)
        units = {name: _unit(column, comparisons.weights) for name, column in columns.items()}
        scaled = Scaled(self.features, units)
        summit = climb_from(self, comparisons, PULLED, priors, options, scaled, ties=self.ties, solver=self.solver)

        def estimates() -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
            pulls, errors = summit.parts[2], summit.errors_of_annotators[:, 1:]
            found = {"care": summit.of_gates(sigmoid)}
            for n, (name, unit) in enumerate(units.items()):
                found[f"{FEATURE_WEIGHT_PREFIX}{name}"] = interval(pulls[:, n] / unit, errors[:, n] / unit, np.array)
            return found

        sizes = {f"{FEATURE_UNIT_PREFIX}{name}": unit for name, unit in units.items() if unit != 1}
        return replace(build_crowd_ranking(self, summit, estimates), parameters=sizes)

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties.

        Categories that were not there when the model was fitted do not pull.
        """
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        who, people = comparisons.annotator, ranking.annotators
        care, pull = people["care"][who], np.zeros(len(comparisons))
        for name, column in feature_columns(comparisons, self.features).items():
            if f"{FEATURE_WEIGHT_PREFIX}{name}" in people.estimates:
                pull += people.estimate(f"{FEATURE_WEIGHT_PREFIX}{name}")[who] * column
        with np.errstate(divide="ignore"):
            left, right, *_ = likelihood.FORMULAS[PULLED](margin, np.log(care) - np.log1p(-care), pull)
        return np.stack((left, np.zeros(len(margin)), right), axis=1)


@dataclass(frozen=True)
class Scaled:
    """Features in units of their usual size."""

    features: tuple[str, ...]
    units: Mapping[str, float]

    def __len__(self) -> int:
        return len(self.units)

    def __call__(self, comparisons: Comparisons) -> FloatArray:
        columns, none = feature_columns(comparisons, self.features), np.zeros(len(comparisons))
        return np.stack([columns.get(name, none) / unit for name, unit in self.units.items()], axis=1)


def _unit(column: FloatArray, weight: FloatArray) -> float:
    """The size of a feature, for which `pull_scale` is meant: its root mean square; 1 where it is ±1 or 0 already."""
    size = np.abs(column[:1] if column.strides == (0,) else column)  # one number may stand for all rows
    largest = float(size.max())
    if np.all((size == 0) | (size == 1)):
        return 1.0
    return largest * float(np.sqrt(np.average((size / largest) ** 2, weights=weight)))  # squares that cannot overflow
