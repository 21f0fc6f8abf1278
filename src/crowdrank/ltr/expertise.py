"""From how far annotators' lists lie from the true ones to their expertise θ, and what else is known of it.

What was learnt of those who taught, in plain words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import EncodedSideInformation
from crowdrank.models.crowd.pairwise_hits import project_to_constraints
from crowdrank.results import Annotators
from crowdrank.results.frames import as_native

# No θ is sought beyond: one pair in 500 million is turned round.
STEEPEST = 20.0
_GRID: FloatArray = np.linspace(-STEEPEST, STEEPEST, 2001)
# From a step of the grid to the last digits that count.
_SECANTS = 4
# The centre of the crowd and everyone's θ, in turn.
_ROUNDS = 3


@dataclass(frozen=True)
class Kinds:
    """The lists of each annotator, by kind: how many there are, and how far a list of a kind lies off on average."""

    count: FloatArray
    """A row an annotator, a column a kind; below 0 where ties leave pairs open."""
    lists: FloatArray
    """Of each annotator, by weight."""
    expected: Callable[[FloatArray], FloatArray]
    """E(d) of every kind, for each θ of a vector."""

    def totals(self, theta: FloatArray) -> FloatArray:
        """The distance to be expected of all lists of each annotator."""
        return np.asarray((self.count * self.expected(theta)).sum(axis=1))

    def information(self, theta: FloatArray) -> FloatArray:
        """Fisher's, on θ: the variance of that distance, as the slope of its mean."""
        step = 1e-4
        return np.asarray((self.totals(theta + step) - self.totals(theta - step)) / (2 * step))

    def theta(self, distance: FloatArray, lent: FloatArray) -> FloatArray:
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
    def _table(self) -> FloatArray:
        return np.asarray(self.count @ self.expected(_GRID).T)


def expertise_of(kinds: Kinds, distance: FloatArray, prior_lists: float, known: EncodedSideInformation) -> FloatArray:
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
    return -project_to_constraints(_as_quality(known), -theta, kinds.lists) if known.has_annotators else theta


def _as_quality(known: EncodedSideInformation) -> EncodedSideInformation:
    """The lower θ, the better."""
    return replace(
        known,
        quality={code: -value for code, value in known.quality.items()},
        between={code: (-high, -low) for code, (low, high) in known.between.items()},
    )


_REACH = 1.959964  # of an interval of 95 %, in standard errors
_LEAST_INFORMATION = 1e-9
CROWD_BT = 0.75
"""The share of its pairs that one who can be relied upon puts the right way round."""
HARDLY = 0.025
"""Nearer than this to half the pairs, a list is as good as random, however sure that it is not quite."""
_FEWEST_LISTS = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Teachers(Annotators):
    """Annotators with their quality and expertise θ, and a verdict on each."""

    length: int = 2
    """Of a usual list."""
    native: str = "polars"

    def table(self) -> Any:
        """Best first, as the kind of data frame the lists came in; `pairs_right` is of a usual list.

        The verdicts: reversed, where θ lies above 0, interval and all; random, where 0 lies within the interval (too
        few to say, below three lists), or half the pairs of a usual list are right, give or take 2.5 %; reliable, where
        three in four of them are; noisy, all the rest.
        """
        return as_native(self.judged_frame(), self.native)

    def judged_frame(self) -> pl.DataFrame:
        """The table as a polars frame."""
        frame = self.to_polars()
        right = pairs_right(frame["expertise"].to_numpy(), self.length)
        words = [_verdict(row, share) for row, share in zip(frame.iter_rows(named=True), right, strict=True)]
        return frame.with_columns(pl.Series("pairs_right", right), pl.Series("verdict", words, dtype=pl.String))


def teachers_of(
    labels: ObjectArray,
    judged: IntArray,
    theta: FloatArray,
    information: FloatArray,
    *,
    held: BoolArray | None = None,
    length: int = 2,
    native: str = "polars",
) -> Teachers:
    """Annotators by their θ; `held` says whose was known and not estimated.

    Quality is 1/(1 + e^θ), the chance to put two neighbours of the true list the right way round. Intervals come from
    Fisher's information on θ, as if the true lists were known.
    """
    error = 1 / np.sqrt(np.maximum(information, _LEAST_INFORMATION))
    error = error if held is None else np.where(held, 0.0, error)
    low, high = theta - _REACH * error, theta + _REACH * error
    quality = (_quality(theta), _quality(high), _quality(low))
    return Teachers(
        labels=labels,
        n_judgments=judged,
        estimates={"quality": quality, "expertise": (theta, low, high)},
        length=max(length, 2),
        native=native,
    )


def pairs_right(theta: FloatArray, length: int) -> FloatArray:
    """The share of the pairs of a list of so many items that are the right way round, on average."""
    from crowdrank.models.lists.mallows_likelihood import expected_distance, pairs

    return np.asarray(1 - expected_distance(theta, length) / pairs(length))


def _verdict(row: dict[str, Any], right: float) -> str:
    if row["expertise_low"] <= 0 <= row["expertise_high"]:
        return "too few to say" if row["judgments"] < _FEWEST_LISTS else "random"
    if abs(right - 0.5) < HARDLY:
        return "random"
    if row["expertise_low"] > 0:
        return "reversed"
    return "reliable" if right >= CROWD_BT else "noisy"


def _quality(theta: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1 - np.tanh(theta / 2)))  # 1/(1 + e^θ), without its overflow
