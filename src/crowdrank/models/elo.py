"""Elo 1978: ratings moved after every game by the surprise of its outcome; the order of the judgments matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons, Judgments
from crowdrank.likelihoods import elo
from crowdrank.likelihoods.pairwise import LOGISTIC, chances
from crowdrank.models.conclude import conclude, need
from crowdrank.results import Ranking, Uncertainty

Vector = npt.NDArray[np.float64]

_PLAIN_UP_TO = 2_000
_REPLICATES = 100


@dataclass(frozen=True, kw_only=True)
class Elo:
    """Ratings moved by each judgment in turn, as far as it surprised.

    Quick, and dependent on the order of the judgments: by time where times are known, else as they stand.
    """

    reads: ClassVar[type] = Comparisons
    depends_on_order: ClassVar[bool] = True

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
        comparisons = need(Comparisons, judgments, self).in_order_of_time()
        return conclude(
            self, comparisons, self._fold(comparisons), centred=False, measure=lambda: self._bootstrap(comparisons)
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> npt.NDArray[np.float64]:
        """Chances of left, tie and right for each comparison, as columns; Elo leaves no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return chances(margin * np.log(10) / self.scale, 0.0, LOGISTIC)

    def _fold(self, comparisons: Comparisons) -> Vector:
        scores = np.full(len(comparisons.items), float(self.initial))
        run = elo.fold.function if len(comparisons) <= _PLAIN_UP_TO else elo.fold
        run(
            comparisons.left, comparisons.right, comparisons.outcome, comparisons.weights,
            scores, self.step, np.log(10) / self.scale,
        )  # fmt: skip
        return scores

    def _bootstrap(self, comparisons: Comparisons) -> Uncertainty:
        rng = np.random.default_rng(self.seed)
        rows = len(comparisons)
        draws = np.array([self._fold(comparisons.take(rng.integers(rows, size=rows))) for _ in range(_REPLICATES)])
        return Uncertainty(draws, draws.std(axis=0, ddof=1), f"bootstrap over {rows} judgments, shuffled")
