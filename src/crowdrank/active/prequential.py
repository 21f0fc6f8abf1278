"""Prequential evaluation: how well a leaderboard predicted later answers, and how well calibrated it was."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.results import Ranking

_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_OVERCONFIDENT_Z = 2.6
"""Standard deviations below the expected accuracy that occur by chance once in a hundred times."""


@runtime_checkable
class PredictiveModel(Protocol):
    """A model that predicts judgments."""

    def predict(self, ranking: Ranking, judgments: Comparisons) -> FloatArray:
        """Return the probabilities of left, tie and right, one row per judgment."""
        ...


class CalibrationBin(NamedTuple):
    """Answers whose more probable side had a predicted probability between `low` and `high`.

    `expected` is the mean predicted probability, and `accuracy` the share that was predicted right.
    """

    low: float
    high: float
    answers: int
    expected: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class PrequentialScore:
    """Predictions of answers before they were seen, compared with the answers.

    Parameters
    ----------
    answers : int
        Number of predicted answers.
    gain : float
        Mean log score above that of a coin toss, in nats per answer: 0 for no information, log 2 for certainty.
    std_error : float
        Standard error of `gain`.
    expected : float
        Accuracy that the leaderboard expected of its predictions.
    accuracy : float
        Share of answers that it predicted right.
    z : float
        Difference of `accuracy` and `expected` in standard deviations. Well below zero, the leaderboard is
        overconfident.
    bins : tuple of CalibrationBin
        The same by predicted probability.
    """

    answers: int
    gain: float
    std_error: float
    expected: float
    accuracy: float
    z: float
    bins: tuple[CalibrationBin, ...]

    @property
    def overconfident(self) -> bool:
        """Whether the leaderboard was right less often than it expected, beyond chance."""
        return self.z < -_OVERCONFIDENT_Z

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        if not self.answers:
            return []
        better = "better than a coin toss" if self.gain > 1.96 * self.std_error else "no better than a coin toss"
        verdict = "It is overconfident" if self.overconfident else "It is well calibrated"
        return [
            f"Predicting {self.answers:,} later answers, the leaderboard was right {self.accuracy:.0%} of the time; it "
            f"expected {self.expected:.0%} (z = {self.z:+.1f}). {verdict}.",
            f"Its predictions were {better}: {self.gain:+.3f} ± {self.std_error:.3f} nats per answer.",
        ]


def probability_left_wins(model: PredictiveModel, board: Ranking, held_out: Comparisons) -> FloatArray:
    """Probability that left wins, given that it is not a tie, by a ranking that `model` fitted."""
    probabilities = model.predict(board, held_out)
    return np.asarray(probabilities[:, 0] / (probabilities[:, 0] + probabilities[:, 2]))


def prequential_score(left: FloatArray, outcome: npt.NDArray[np.int8]) -> PrequentialScore:
    """Compare predicted probabilities that left wins with the outcomes (1, 0 for a tie, −1); ties are dropped.

    Examples
    --------
    >>> score = prequential_score(np.array([0.9, 0.8, 0.6]), np.array([1, 1, -1], np.int8))
    >>> score.answers, round(score.accuracy, 2), round(score.expected, 2)
    (3, 0.67, 0.77)
    """
    left, won = left[outcome != 0], outcome[outcome != 0] > 0
    favoured, count = np.maximum(left, 1 - left), len(left)
    # a prediction of exactly one half counts as half right, whatever the answer, and has no variance
    right = np.where(left == 0.5, 0.5, (left > 0.5) == won)
    deviation = float(np.sqrt(np.sum(np.where(left == 0.5, 0, favoured * (1 - favoured)))))
    gains = np.log(2 * np.clip(np.where(won, left, 1 - left), 1e-300, 1))
    expected, accuracy = (float(np.mean(column)) if count else 0.5 for column in (favoured, right))
    return PrequentialScore(
        answers=count,
        gain=float(np.mean(gains)) if count else 0.0,
        std_error=float(np.std(gains, ddof=1) / np.sqrt(count)) if count > 1 else float("nan"),
        expected=expected,
        accuracy=accuracy,
        z=count * (accuracy - expected) / deviation if deviation else 0.0,
        bins=_bins(favoured, right),
    )


def _bins(favoured: FloatArray, right: FloatArray) -> tuple[CalibrationBin, ...]:
    # the last bin includes both of its ends
    place = np.clip(np.digitize(favoured, _EDGES) - 1, 0, len(_EDGES) - 2)
    found = []
    for n, (low, high) in enumerate(pairwise(_EDGES)):
        rows = place == n
        if rows.any():
            means = float(favoured[rows].mean()), float(right[rows].mean())
            found.append(CalibrationBin(low, high, int(rows.sum()), *means))
    return tuple(found)
