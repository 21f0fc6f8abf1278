"""Means over the same answers by several models, and how far apart they surely are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    value: float
    std_error: float

    @property
    def surely_positive(self) -> bool:
        return self.value > 2 * self.std_error


@dataclass(frozen=True)
class Mark:
    """What one model reached, and how that stands to others on the same answers."""

    mean: Estimate
    gain: Estimate
    """Above the plain model."""
    behind: Estimate
    """Below the best."""


def estimate(values: Vector, weight: Vector, who: npt.NDArray[np.int64]) -> Estimate:
    """The mean, and its error with answers or people taken as independent, whichever is larger."""
    mean = float(np.average(values, weights=weight))
    pull = weight * (values - mean)
    people = np.bincount(who, pull)
    independent = max(float(np.sum(pull**2)), float(np.sum(people**2)))
    return Estimate(mean, float(np.sqrt(independent)) / float(np.sum(weight)))


def marks(values: Mapping[str, Vector], weight: Vector, who: npt.NDArray[np.int64], plain: str) -> dict[str, Mark]:
    """Of every model; without the plain one among them there is no gain to tell (nan)."""
    if not values:
        return {}
    best = max(values, key=lambda name: float(np.average(values[name], weights=weight)))
    nothing = Estimate(np.nan, np.nan)
    return {
        name: Mark(
            estimate(found, weight, who),
            estimate(found - values[plain], weight, who) if plain in values else nothing,
            estimate(values[best] - found, weight, who),
        )
        for name, found in values.items()
    }
