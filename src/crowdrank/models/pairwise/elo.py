"""Elo ratings: updated after every comparison; the order of the judgments matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines.compilation import compiled
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, require_kind
from crowdrank.models.bootstrap import posterior
from crowdrank.models.pairwise.likelihood import LOGISTIC, outcome_probabilities
from crowdrank.results import Ranking, Uncertainty


@compiled()
def update_ratings(left, right, outcome, weight, scores, step, slope):  # type: ignore[no-untyped-def]
    """Elo updates row by row, in place."""
    for row in range(len(left)):
        i, j = left[row], right[row]
        expected = 1.0 / (1.0 + np.exp(slope * (scores[j] - scores[i])))
        move = step * weight[row] * (0.5 + 0.5 * outcome[row] - expected)
        scores[i] += move
        scores[j] -= move


# Up to this many rows plain Python is faster than loading the compiler.
_MAX_INTERPRETED = 2_000
_REPLICATES = 100


@dataclass(frozen=True, kw_only=True)
class Elo(Model):
    """Elo ratings: each comparison moves both ratings by how much its outcome differed from expectation.

    Fast, and dependent on the order of the judgments: by time if times are recorded, else as given.

    Parameters
    ----------
    step : float, default 32
        Largest change of a rating by one judgment (Elo's K).
    scale : float, default 400
        Difference in rating that means odds of ten to one.
    initial : float, default 1500
        Initial rating of every item, and the mean of all ratings.
    seed : int, default 0
        Seed of the bootstrap, which resamples and shuffles the judgments.

    Notes
    -----
    After a comparison of a and b with weight w: a += K·w·(result − E) and b −= the same, where
    E = 1 / (1 + 10^((b − a)/scale)) is the expected result.

    References
    ----------
    Elo 1978.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "c"])
    >>> Elo().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'c', 'b']
    """

    reads: ClassVar[type] = Comparisons
    order_dependent: ClassVar[bool] = True

    step: float = 32.0
    scale: float = 400.0
    initial: float = 1500.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.step > 0 and self.scale > 0):
            raise SettingError(f"step and scale must be positive, got {self.step} and {self.scale}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self).sorted_by_time()
        return build_ranking(
            self, comparisons, self._ratings(comparisons), centred=False, measure=lambda: self._bootstrap(comparisons)
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns; that of a tie is 0."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        return outcome_probabilities(margin * np.log(10) / self.scale, 0.0, LOGISTIC)

    def _ratings(self, comparisons: Comparisons) -> FloatArray:
        scores = np.full(len(comparisons.items), float(self.initial))
        run = update_ratings.function if len(comparisons) <= _MAX_INTERPRETED else update_ratings
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
        draws = np.array([self._ratings(comparisons.take(rng.integers(rows, size=rows))) for _ in range(_REPLICATES)])
        scores = self._ratings(comparisons)
        return posterior(comparisons, scores, draws, rows, f"bootstrap over {rows} judgments, shuffled", self.seed)
