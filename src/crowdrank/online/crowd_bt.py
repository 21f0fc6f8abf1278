"""Chen et al. 2013, §4.1: scores N(μ, σ²) and qualities Beta(α, β), their moments matched after every answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataWarning, SettingError
from crowdrank.online import moments
from crowdrank.online.columns import Columnar, check_positive
from crowdrank.online.sequential import Answers

_LARGEST_CLOSED = 2.0
"""Prior variance up to which the closed form can be trusted: soon beyond, variances burst or freeze at κ."""


@dataclass(frozen=True, kw_only=True)
class CrowdBT(Columnar):
    """Beliefs of items' scores and annotators' quality, updated together by each answer.

    >>> from crowdrank.data import Comparison
    >>> model = CrowdBT()
    >>> beliefs = model.update(model.start(["a", "b"]), Comparison("a", "b", "a", "ann"))
    >>> beliefs.mean.round(3).tolist(), beliefs.quality.round(3).tolist()
    ([0.297, -0.297], [0.909])
    """

    prior_scale: float = 1.0
    """Standard deviation of the normal prior on scores."""
    quality_prior: tuple[float, float] = (10.0, 1.0)
    """Beta prior on quality: truths and lies each annotator is credited with beforehand."""
    moments: Literal["exact", "closed"] = "exact"
    """By numerical integration, or by the paper's formulas (eq. 12-18), which are for variances up to 2."""
    lead: Literal["stable", "taylor"] = "stable"
    """How the closed form takes C₁: by MacKay's scaling, or the Taylor series as printed (eq. 19)."""
    ties: Literal["drop", "half"] = "drop"
    """A tie says nothing of who tells the truth: left out, or half an answer each way."""

    def __post_init__(self) -> None:
        check_positive(self, "prior_scale")
        if len(self.quality_prior) != 2 or not 0 < min(self.quality_prior) <= max(self.quality_prior) < np.inf:
            raise SettingError(f"quality_prior must be two positive numbers, got {self.quality_prior!r}.")
        if self.moments not in ("exact", "closed"):
            raise SettingError(f"moments must be exact or closed, got {self.moments!r}.")
        if self.lead not in ("stable", "taylor"):
            raise SettingError(f"lead must be stable or taylor, got {self.lead!r}.")
        if self.ties not in ("drop", "half"):
            raise SettingError(f"ties must be drop or half, got {self.ties!r}.")
        if self.moments == "closed" and self.prior_scale**2 > _LARGEST_CLOSED:
            warnings.warn(
                f"The closed form is for variances up to {_LARGEST_CLOSED:g}, and prior_scale={self.prior_scale:g} "
                f'begins with {self.prior_scale**2:g}. Set moments="exact".',
                DataWarning,
                stacklevel=3,
            )

    @property
    def of_new_item(self) -> Mapping[str, float]:
        return {"mean": 0.0, "variance": self.prior_scale**2}

    @property
    def of_new_annotator(self) -> Mapping[str, float]:
        return {"truths": self.quality_prior[0], "lies": self.quality_prior[1]}

    def take_in(
        self, answers: Answers, of_items: Mapping[str, FloatArray], of_annotators: Mapping[str, FloatArray]
    ) -> int:
        outside = answers.loop(moments.fold)(
            *answers,
            of_items["mean"],
            of_items["variance"],
            of_annotators["truths"],
            of_annotators["lies"],
            self.moments == "exact",
            self.lead == "taylor",
            self.ties == "half",
        )
        if outside:
            warnings.warn(
                f"Eq. 19 left [0, 1] in {outside} of {len(answers.left)} judgments, where the stable form was used: "
                f'variances are too large for a Taylor series. Set lead="stable".',
                DataWarning,
                stacklevel=4,
            )
        return int((answers.outcome == 0).sum()) if self.ties == "drop" else 0
