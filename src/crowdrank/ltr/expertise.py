"""Expertise θ of annotators: its estimate from distances to the true lists, and the table with verdicts."""

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
from crowdrank.results.parts import as_native

# Bounds of θ: at 20, one pair in 500 million is reversed.
MAX_THETA = 20.0
_GRID: FloatArray = np.linspace(-MAX_THETA, MAX_THETA, 2001)
# Regula falsi steps that refine a grid interval to the precision that matters.
_REFINEMENTS = 4
# Alternations between the mean of the crowd and each annotator's θ.
_ROUNDS = 3


@dataclass(frozen=True)
class SufficientStatistics:
    """The lists of each annotator, counted by kind (length, or length and k), and the expected distance per kind.

    Parameters
    ----------
    count : array of shape (annotators, kinds)
        Weight of the lists of each kind. Tied groups are entries of negative weight, which remove unordered pairs.
    lists : array
        Weight of all lists of each annotator.
    expected : callable
        Maps a vector of θ to E(d) of every kind: one row per θ.
    """

    count: FloatArray
    lists: FloatArray
    expected: Callable[[FloatArray], FloatArray]

    def expected_totals(self, theta: FloatArray) -> FloatArray:
        """Expected total distance of each annotator's lists to the true ones."""
        return np.asarray((self.count * self.expected(theta)).sum(axis=1))

    def information(self, theta: FloatArray) -> FloatArray:
        """Fisher information on θ: the variance of the total distance, which is the derivative of its mean."""
        step = 1e-4
        return np.asarray((self.expected_totals(theta + step) - self.expected_totals(theta - step)) / (2 * step))

    def solve_theta(self, distance: FloatArray, prior_fraction: FloatArray) -> FloatArray:
        """The θ of each annotator at which (1 + prior_fraction) times the expected total equals the distance."""
        goal = distance / (1 + prior_fraction)
        table = self._table
        # The expected distance increases with θ: find the grid interval, then refine it by regula falsi (Illinois).
        right = np.clip((table < goal[:, None]).sum(axis=1), 1, len(_GRID) - 1)
        low, high = _GRID[right - 1], _GRID[right]
        row = np.arange(len(goal))
        below, above = table[row, right - 1] - goal, table[row, right] - goal
        for _ in range(_REFINEMENTS):
            rise = above - below
            middle = np.clip(low - below * (high - low) / np.where(rise > 0, rise, 1.0), low, high)
            excess = self.expected_totals(middle) - goal
            low, below = np.where(excess <= 0, middle, low), np.where(excess <= 0, excess, below / 2)
            high, above = np.where(excess > 0, middle, high), np.where(excess > 0, excess, above / 2)
        return np.asarray(middle)

    @cached_property
    def _table(self) -> FloatArray:
        return np.asarray(self.count @ self.expected(_GRID).T)


def estimate_theta(
    statistics: SufficientStatistics, distance: FloatArray, prior_lists: float, known: EncodedSideInformation
) -> FloatArray:
    """Estimate θ of each annotator from the total distance of their lists to the true ones.

    Parameters
    ----------
    statistics : SufficientStatistics
        The lists of each annotator.
    distance : array
        Total distance of each annotator's lists.
    prior_lists : float
        Pseudo-lists per annotator at the expected distance of an average annotator: shrinkage for annotators with few
        lists.
    known : Knowledge
        Side information: known values are fixed, ranges are respected, and annotators in the wrong order are pooled.

    Returns
    -------
    array
        θ per annotator; lower is better, 0 is random.
    """
    has_lists = statistics.lists > 0
    prior_fraction = np.where(has_lists, prior_lists / np.where(has_lists, statistics.lists, 1.0), 0.0)
    theta = statistics.solve_theta(distance, np.zeros(len(distance)))
    centre = float(np.median(theta[has_lists])) if has_lists.any() else 0.0
    for _ in range(_ROUNDS if prior_lists else 0):
        prior_distance = prior_fraction * statistics.expected_totals(np.full(len(distance), centre))
        theta = statistics.solve_theta(distance + prior_distance, prior_fraction)
        centre = float(np.mean(theta[has_lists]))
    theta = np.where(has_lists, theta, centre)
    return -project_to_constraints(_as_quality(known), -theta, statistics.lists) if known.has_annotators else theta


def _as_quality(known: EncodedSideInformation) -> EncodedSideInformation:
    """Side information on −θ, since lower θ is better."""
    return replace(
        known,
        quality={code: -value for code, value in known.quality.items()},
        between={code: (-high, -low) for code, (low, high) in known.between.items()},
    )


_Z_95 = 1.959964  # half width of a 95 % interval, in standard errors
_MIN_INFORMATION = 1e-9
# From this fraction of correctly ordered pairs on, an annotator is reliable.
CROWD_BT = 0.75
# Within this distance of ½, the fraction of correctly ordered pairs counts as random, even if significantly different.
RANDOM_MARGIN = 0.025
_MIN_LISTS = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnnotatorExpertise(Annotators):
    """Annotators with quality, expertise θ, and a verdict on each.

    Parameters
    ----------
    labels : array
        Names of the annotators.
    n_judgments : array
        Number of lists of each annotator.
    estimates : mapping
        By name (`quality`, `expertise`): estimate, and lower and upper end of its interval.
    level : float, default 0.95
        Level of the intervals.
    length : int, default 2
        Length of a typical list, to which `pairs_right` refers.
    native : str, default "polars"
        Kind of data frame that `table` returns.
    """

    length: int = 2
    native: str = "polars"

    def table(self) -> Any:
        """Table of the annotators, best first, as the kind of data frame that the lists came in.

        Returns
        -------
        data frame
            Columns annotator, quality, expertise (each with _low and _high), judgments, pairs_right (the expected
            fraction of correctly ordered pairs in a typical list) and verdict.

        Notes
        -----
        Verdicts: "reversed" if the interval of θ lies above 0; "random" if it contains 0 ("too few to say" with fewer
        than three lists), or if `pairs_right` is within 2.5 % of ½; "reliable" from 75 % on; otherwise "noisy".
        """
        return as_native(self.verdict_frame(), self.native)

    def verdict_frame(self) -> pl.DataFrame:
        """The table as a polars frame."""
        frame = self.to_polars()
        right = pairs_right(frame["expertise"].to_numpy(), self.length)
        verdicts = [_verdict(row, value) for row, value in zip(frame.iter_rows(named=True), right, strict=True)]
        return frame.with_columns(pl.Series("pairs_right", right), pl.Series("verdict", verdicts, dtype=pl.String))


def annotator_expertise(
    labels: ObjectArray,
    judged: IntArray,
    theta: FloatArray,
    information: FloatArray,
    *,
    fixed: BoolArray | None = None,
    length: int = 2,
    native: str = "polars",
) -> AnnotatorExpertise:
    """Quality and intervals of the annotators from θ and its Fisher information.

    `fixed` marks the annotators whose θ was given, not estimated. Quality is 1/(1 + e^θ), the probability of ordering
    two neighbours of the true list correctly. Intervals treat the true lists as known.
    """
    error = 1 / np.sqrt(np.maximum(information, _MIN_INFORMATION))
    error = error if fixed is None else np.where(fixed, 0.0, error)
    low, high = theta - _Z_95 * error, theta + _Z_95 * error
    quality = (_quality(theta), _quality(high), _quality(low))
    return AnnotatorExpertise(
        labels=labels,
        n_judgments=judged,
        estimates={"quality": quality, "expertise": (theta, low, high)},
        length=max(length, 2),
        native=native,
    )


def pairs_right(theta: FloatArray, length: int) -> FloatArray:
    """Expected fraction of correctly ordered pairs in a list.

    Parameters
    ----------
    theta : array
        Expertise.
    length : int
        Number of items of the list.

    Returns
    -------
    array

    Examples
    --------
    >>> pairs_right(np.array([-1.0, 0.0]), length=2).round(2).tolist()
    [0.73, 0.5]
    """
    from crowdrank.models.lists.mallows_likelihood import expected_distance, pair_count

    return np.asarray(1 - expected_distance(theta, length) / pair_count(length))


def _verdict(row: dict[str, Any], right: float) -> str:
    if row["expertise_low"] <= 0 <= row["expertise_high"]:
        return "too few to say" if row["judgments"] < _MIN_LISTS else "random"
    if abs(right - 0.5) < RANDOM_MARGIN:
        return "random"
    if row["expertise_low"] > 0:
        return "reversed"
    return "reliable" if right >= CROWD_BT else "noisy"


def _quality(theta: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1 - np.tanh(theta / 2)))  # 1/(1 + e^θ) without overflow
