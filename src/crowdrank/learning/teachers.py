"""What was learnt of those who taught, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.results import Annotators
from crowdrank.results.ranking import _as_native

Vector = npt.NDArray[np.float64]

_REACH = 1.959964  # of an interval of 95 %, in standard errors
_LEAST_INFORMATION = 1e-9
RELIABLE = 0.75
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
        return _as_native(self.judged_frame(), self.native)

    def judged_frame(self) -> pl.DataFrame:
        """The table as a polars frame."""
        frame = self.frame()
        right = pairs_right(frame["expertise"].to_numpy(), self.length)
        words = [_verdict(row, share) for row, share in zip(frame.iter_rows(named=True), right, strict=True)]
        return frame.with_columns(pl.Series("pairs_right", right), pl.Series("verdict", words, dtype=pl.String))


def teachers_of(
    labels: npt.NDArray[np.object_],
    judged: npt.NDArray[np.int64],
    theta: Vector,
    information: Vector,
    *,
    held: npt.NDArray[np.bool_] | None = None,
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
        labels=labels, judged=judged, estimates={"quality": quality, "expertise": (theta, low, high)},
        length=max(length, 2), native=native,
    )  # fmt: skip


def pairs_right(theta: Vector, length: int) -> Vector:
    """The share of the pairs of a list of so many items that are the right way round, on average."""
    from crowdrank.likelihoods.mallows import expected_distance, pairs

    return np.asarray(1 - expected_distance(theta, length) / pairs(length))


def _verdict(row: dict[str, Any], right: float) -> str:
    if row["expertise_low"] <= 0 <= row["expertise_high"]:
        return "too few to say" if row["judgments"] < _FEWEST_LISTS else "random"
    if abs(right - 0.5) < HARDLY:
        return "random"
    if row["expertise_low"] > 0:
        return "reversed"
    return "reliable" if right >= RELIABLE else "noisy"


def _quality(theta: Vector) -> Vector:
    return np.asarray(0.5 * (1 - np.tanh(theta / 2)))  # 1/(1 + e^θ), without its overflow
