"""From how far annotators' lists lie from the true ones to their expertise θ, and what else is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crowdrank.judgments import Knowledge
from crowdrank.models.pairwise_hits import held_to

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# No θ is sought beyond: one pair in 500 million is turned round.
STEEPEST = 20.0
_GRID: Vector = np.linspace(-STEEPEST, STEEPEST, 2001)
# From a step of the grid to the last digits that count.
_SECANTS = 4
# The centre of the crowd and everyone's θ, in turn.
_ROUNDS = 3


@dataclass(frozen=True)
class Kinds:
    """The lists of each annotator, by kind: how many there are, and how far a list of a kind lies off on average."""

    count: Matrix
    """A row an annotator, a column a kind; below 0 where ties leave pairs open."""
    lists: Vector
    """Of each annotator, by weight."""
    expected: Callable[[Vector], Matrix]
    """E(d) of every kind, for each θ of a vector."""

    def totals(self, theta: Vector) -> Vector:
        """The distance to be expected of all lists of each annotator."""
        return np.asarray((self.count * self.expected(theta)).sum(axis=1))

    def information(self, theta: Vector) -> Vector:
        """Fisher's, on θ: the variance of that distance, as the slope of its mean."""
        step = 1e-4
        return np.asarray((self.totals(theta + step) - self.totals(theta - step)) / (2 * step))

    def theta(self, distance: Vector, lent: Vector) -> Vector:
        """The θ of each annotator at which all lists, (1 + lent) times as many, lie so far off."""
        goal = distance / (1 + lent)
        table = self._table
        # The distance grows with θ: between two points of the grid, and on from there by secants.
        right = np.clip((table < goal[:, None]).sum(axis=1), 1, len(_GRID) - 1)
        low, high = _GRID[right - 1], _GRID[right]
        row = np.arange(len(goal))
        below, above = table[row, right - 1] - goal, table[row, right] - goal
        for _ in range(_SECANTS):
            rise = above - below
            middle = np.clip(low - below * (high - low) / np.where(rise > 0, rise, 1.0), low, high)
            off = self.totals(middle) - goal
            low, below = np.where(off <= 0, middle, low), np.where(off <= 0, off, below / 2)
            high, above = np.where(off > 0, middle, high), np.where(off > 0, off, above / 2)
        return np.asarray(middle)

    @cached_property
    def _table(self) -> Matrix:
        return np.asarray(self.count @ self.expected(_GRID).T)


def expertise_of(kinds: Kinds, distance: Vector, prior_lists: float, known: Knowledge) -> Vector:
    """θ of each annotator, whose lists lie so far from the true ones in all.

    Everyone is lent `prior_lists` lists, as far off as those of one in the middle of the crowd: what a few lists say by
    accident counts for less. Known values are held, ranges kept to, and annotators in the wrong order pooled.
    """
    judged = kinds.lists > 0
    lent = np.where(judged, prior_lists / np.where(judged, kinds.lists, 1.0), 0.0)
    theta = kinds.theta(distance, np.zeros(len(distance)))
    middle = float(np.median(theta[judged])) if judged.any() else 0.0
    for _ in range(_ROUNDS if prior_lists else 0):
        borrowed = lent * kinds.totals(np.full(len(distance), middle))
        theta = kinds.theta(distance + borrowed, lent)
        middle = float(np.mean(theta[judged]))
    theta = np.where(judged, theta, middle)
    return -held_to(_as_quality(known), -theta, kinds.lists) if known.of_annotators else theta


def _as_quality(known: Knowledge) -> Knowledge:
    """The lower θ, the better."""
    return replace(
        known,
        quality={code: -value for code, value in known.quality.items()},
        between={code: (-high, -low) for code, (low, high) in known.between.items()},
    )
