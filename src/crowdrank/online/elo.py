"""Elo 1978, one judgment at a time: the same ratings as the model `elo` fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.pairwise import elo
from crowdrank.online.columns import Columnar, check_finite, check_positive
from crowdrank.online.sequential import Answers


@dataclass(frozen=True, kw_only=True)
class Elo(Columnar):
    """Ratings moved by each judgment as far as it surprised; how sure they are is not kept."""

    step: float = 32.0
    """How far one judgment can move a rating (Elo's K)."""
    scale: float = 400.0
    """The lead in rating that means odds of ten to one."""
    initial: float = 1500.0
    """Where every item starts."""

    def __post_init__(self) -> None:
        check_positive(self, "step", "scale")
        check_finite(self, "initial")

    @property
    def of_new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial}

    def take_in(
        self, answers: Answers, of_items: Mapping[str, FloatArray], of_annotators: Mapping[str, FloatArray]
    ) -> int:
        answers.loop(elo.update_ratings)(
            answers.left,
            answers.right,
            answers.outcome,
            answers.weight,
            of_items["mean"],
            self.step,
            np.log(10) / self.scale,
        )
        return 0
