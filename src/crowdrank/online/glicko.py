"""Glicko-2 (Glickman 2012): ratings with a deviation, and a volatility that says how erratic they have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.likelihoods import glicko
from crowdrank.online.beliefs import Vector
from crowdrank.online.columns import Columnar, check_finite, check_positive
from crowdrank.online.sequential import Answers


@dataclass(frozen=True, kw_only=True)
class Glicko2(Columnar):
    """Ratings, their variances (deviation squared) and volatilities; all annotators are alike, a tie is half a win."""

    initial: float = 1500.0
    """The rating of a new item."""
    prior_scale: float = 350.0
    """Its deviation, as a standard deviation."""
    volatility: float = 0.06
    """The volatility of a new item."""
    restraint: float = 0.5
    """How far volatility may change in a period (τ): the smaller the less, between 0.3 and 1.2."""
    period: Literal["judgment", "call"] = "judgment"
    """What a rating period is. "judgment": each on its own, for the two that met. "call": all that one call of `fold`
    or `update` is given, taken at once; items that did not play become less certain."""

    def __post_init__(self) -> None:
        check_finite(self, "initial")
        check_positive(self, "prior_scale", "volatility", "restraint")
        if self.period not in ("judgment", "call"):
            raise SettingError(f"period must be judgment or call, got {self.period!r}.")

    @property
    def of_new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial, "variance": self.prior_scale**2, "volatility": self.volatility}

    def take_in(self, answers: Answers, of_items: Mapping[str, Vector], of_annotators: Mapping[str, Vector]) -> int:
        rows = answers.left, answers.right, answers.outcome, answers.weight
        beliefs = of_items["mean"], of_items["variance"], of_items["volatility"]
        if self.period == "judgment":
            answers.loop(glicko.fold_by_judgment)(*rows, *beliefs, float(self.restraint))
        elif len(answers.left):
            nothing = np.zeros((2, len(of_items["mean"])))
            answers.loop(glicko.fold_as_period)(*rows, *beliefs, float(self.restraint), *nothing)
        return 0
