"""Answers that a board foretold before it saw them: how well, and whether it was as right as it thought."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons
from crowdrank.results import Ranking

_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ALARM = 2.6
"""Standard deviations from which being less right than expected is no accident: once in a hundred."""


class Bin(NamedTuple):
    """Answers whose likelier side was given a chance between two numbers."""

    low: float
    high: float
    answers: int
    expected: float
    """The mean of the chances: the share that should be right …"""
    right: float
    """… and the share that was."""


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """Chances given to answers before they were seen, and what came."""

    answers: int
    gain: float
    """Mean log score above a coin toss, in nats: 0 for knowing nothing, log 2 for knowing everything."""
    std_error: float
    expected: float
    """The share of answers that the board expected to foretell right …"""
    right: float
    """… and the share that it did."""
    z: float
    """How many standard deviations more were right than expected; well below zero, the board claims too much."""
    bins: tuple[Bin, ...]

    @property
    def overconfident(self) -> bool:
        return self.z < -_ALARM

    def lines(self) -> list[str]:
        """In plain words."""
        if not self.answers:
            return []
        better = "better than a coin toss" if self.gain > 1.96 * self.std_error else "no better than a coin toss"
        verdict = "the board claims too much" if self.overconfident else "as sure as it may be"
        return [
            f"Of {self.answers:,} answers, the board of what was answered before foretold {self.right:.0%} right and "
            f"expected {self.expected:.0%} (z = {self.z:+.1f}): {verdict}.",
            f"Its chances were {better}: {self.gain:+.3f} ± {self.std_error:.3f} nats an answer.",
        ]


def chances_of_left(model: Any, board: Ranking, unseen: Comparisons) -> FloatArray:
    """That left wins, by a `board` that `model` fitted, where the answer is no tie."""
    chances = model.predict(board, unseen)
    return np.asarray(chances[:, 0] / (chances[:, 0] + chances[:, 2]))


def foretold(left: FloatArray, outcome: npt.NDArray[np.int8]) -> Foretold:
    """The chances that left would win, and what came; ties are left out."""
    left, won = left[outcome != 0], outcome[outcome != 0] > 0
    favoured, count = np.maximum(left, 1 - left), len(left)
    # a fair toss is half right, whatever comes, and has no variance then
    right = np.where(left == 0.5, 0.5, (left > 0.5) == won)
    spread = float(np.sqrt(np.sum(np.where(left == 0.5, 0, favoured * (1 - favoured)))))
    gains = np.log(2 * np.clip(np.where(won, left, 1 - left), 1e-300, 1))
    expected, came = (float(np.mean(column)) if count else 0.5 for column in (favoured, right))
    return Foretold(
        answers=count,
        gain=float(np.mean(gains)) if count else 0.0,
        std_error=float(np.std(gains, ddof=1) / np.sqrt(count)) if count > 1 else float("nan"),
        expected=expected,
        right=came,
        z=count * (came - expected) / spread if spread else 0.0,
        bins=_bins(favoured, right),
    )


def _bins(favoured: FloatArray, right: FloatArray) -> tuple[Bin, ...]:
    """The last one holds both of its ends."""
    place = np.clip(np.digitize(favoured, _EDGES) - 1, 0, len(_EDGES) - 2)
    found = []
    for n, (low, high) in enumerate(pairwise(_EDGES)):
        here = place == n
        if here.any():
            found.append(Bin(low, high, int(here.sum()), float(favoured[here].mean()), float(right[here].mean())))
    return tuple(found)
