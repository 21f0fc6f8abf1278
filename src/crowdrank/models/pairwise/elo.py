"""Elo 1978: a += K·w·(result − E), b −= the same, where E = 1/(1 + e^{slope·(b − a)}) was expected of a.

Elo 1978: ratings moved after every game by the surprise of its outcome; the order of the judgments matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import Engine, here
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.models.base import BaseModel, conclude, need
from crowdrank.models.pairwise.likelihood import LOGISTIC, chances
from crowdrank.results import Ranking, Uncertainty


@compiled()
def fold(left, right, outcome, weight, scores, step, slope):  # type: ignore[no-untyped-def]
    """Row by row, in place."""
    for row in range(len(left)):
        i, j = left[row], right[row]
        chance = 1.0 / (1.0 + np.exp(slope * (scores[j] - scores[i])))
        move = step * weight[row] * (0.5 + 0.5 * outcome[row] - chance)
        scores[i] += move
        scores[j] -= move


_PLAIN_UP_TO = 2_000
_REPLICATES = 100


@dataclass(frozen=True, kw_only=True)
class Elo(BaseModel):
    """Ratings moved by each judgment in turn, as far as it surprised.

    Quick, and dependent on the order of the judgments: by time where times are known, else as they stand.
    """

    reads: ClassVar[type] = Comparisons
    order_dependent: ClassVar[bool] = True

    step: float = 32.0
    """How far one judgment can move a rating (Elo's K)."""
    scale: float = 400.0
    """The lead in rating that means odds of ten to one."""
    initial: float = 1500.0
    """Where every item starts, and the mean of all."""
    seed: int = 0
    """Of the bootstrap, which resamples and shuffles the judgments."""

    def __post_init__(self) -> None:
        if not (self.step > 0 and self.scale > 0):
            raise SettingError(f"step and scale must be positive, got {self.step} and {self.scale}.")

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self).sorted_by_time()
        return conclude(
            self, comparisons, self._fold(comparisons), centred=False, measure=lambda: self._bootstrap(comparisons)
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns; Elo leaves no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return chances(margin * np.log(10) / self.scale, 0.0, LOGISTIC)

    def _fold(self, comparisons: Comparisons) -> FloatArray:
        scores = np.full(len(comparisons.items), float(self.initial))
        run = fold.function if len(comparisons) <= _PLAIN_UP_TO else fold
        run(
            comparisons.left,
            comparisons.right,
            comparisons.outcome,
            comparisons.weights,
            scores,
            self.step,
            np.log(10) / self.scale,
        )
        return scores

    def _bootstrap(self, comparisons: Comparisons) -> Uncertainty:
        rng = np.random.default_rng(self.seed)
        rows = len(comparisons)
        draws = np.array([self._fold(comparisons.take(rng.integers(rows, size=rows))) for _ in range(_REPLICATES)])
        return Uncertainty(draws, draws.std(axis=0, ddof=1), f"bootstrap over {rows} judgments, shuffled")
