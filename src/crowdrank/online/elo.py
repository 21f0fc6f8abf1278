"""Online Elo (Elo 1978): the same ratings as the model `elo` fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.pairwise import elo
from crowdrank.online.sequential_model import Answers, ColumnarModel, check_finite, check_positive


@dataclass(frozen=True, kw_only=True)
class Elo(ColumnarModel):
    """Elo ratings, one judgment at a time. All annotators count alike, and a tie is half a win.

    Parameters
    ----------
    step : float, default 32.0
        Largest change of a rating by one judgment (Elo's K).
    scale : float, default 400.0
        Difference in rating that means odds of ten to one.
    initial : float, default 1500.0
        Rating of a new item.

    Notes
    -----
    The beliefs have the column ``mean`` only: Elo keeps no variance. An update is a ← a + step·(result − E) with
    E = 1/(1 + 10^((b − a)/scale)).

    Examples
    --------
    >>> from crowdrank.data import Comparison
    >>> model = Elo()
    >>> model.update(model.start(["a", "b"]), Comparison("a", "b", "a")).mean.tolist()
    [1516.0, 1484.0]
    """

    step: float = 32.0
    scale: float = 400.0
    initial: float = 1500.0

    def __post_init__(self) -> None:
        check_positive(self, "step", "scale")
        check_finite(self, "initial")

    @property
    def new_item(self) -> Mapping[str, float]:
        return {"mean": self.initial}

    def update_columns(
        self, answers: Answers, item_columns: Mapping[str, FloatArray], annotator_columns: Mapping[str, FloatArray]
    ) -> int:
        answers.loop(elo.update_ratings)(
            answers.left,
            answers.right,
            answers.outcome,
            answers.weight,
            item_columns["mean"],
            self.step,
            np.log(10) / self.scale,
        )
        return 0
