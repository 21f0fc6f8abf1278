"""Means of items, drawn towards the mean of their query as far as items are alike (one-way random effects)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array
from crowdrank.data import Items
from crowdrank.errors import SettingError
from crowdrank.results import Uncertainty

# Of a learnt count: believed to be near one, give or take this much in its logarithm, and within these limits.
_SPREAD, _LIMIT = 2.0, 12.0
_FEWEST_DRAWS, _MOST_DRAWS, _MOST_CELLS = 200, 1000, 4_000_000


def check_count(count: float | None, name: str) -> None:
    if count is not None and not 0 <= count < np.inf:
        raise SettingError(f"{name} must be zero or more, or None to have it learnt, got {count}.")


@dataclass(frozen=True)
class Shrunk:
    """value = item's mean + noise; items' means lie around their query's, spread by noise²/count."""

    items: Items
    item: Int32Array
    value: FloatArray
    weight: FloatArray
    count: float | None
    """How many values of its query's mean each item is credited with; None to learn it."""

    @cached_property
    def number(self) -> FloatArray:
        """Values of each item, by weight."""
        return self._per_item(np.ones(len(self.item)))

    @cached_property
    def rows(self) -> FloatArray:
        """Values of each query, by weight."""
        return self._per_query(self.number)

    @cached_property
    def level(self) -> FloatArray:
        """Plain mean of each query."""
        return _divided(self._per_query(self._per_item(self.value)), self.rows)

    @cached_property
    def away(self) -> FloatArray:
        """Values measured from there: a scale that lies far from zero costs no digits."""
        return np.asarray(self.value - self.level[self.items.query[self.item]])

    @cached_property
    def mean(self) -> FloatArray:
        """Plain mean of each item's values, measured from there; 0 where it has none."""
        return _divided(self._per_item(self.away), self.number)

    @cached_property
    def within(self) -> FloatArray:
        """Squares within items, added up over each query."""
        return self._per_query(self._per_item((self.away - self.mean[self.item]) ** 2))

    @cached_property
    def learnt(self) -> float:
        """The count as given, or the likeliest."""
        if self.count is not None:
            return self.count
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(self._cost, bounds=(-_LIMIT, _LIMIT), method="bounded", options={"xatol": 1e-9})
        return float(np.exp(found.x))

    def _cost(self, log_count: float) -> float:
        """Less the restricted log likelihood, each query with its own noise; and what is believed of the count.

        With λ = count·n / (count + n) for an item of n values, twice that is
        (N − 1)·log Σ squares + Σ log (1 + n / count) + log Σ λ for a query of N.
        """
        count = float(np.exp(log_count))
        share, _, squares = self._at(count)
        told = self._varied & (self.rows > 1)
        fit = (self.rows - 1) * np.log(np.where(told, squares, 1.0))
        bend = np.log(np.where(told, count * self._per_query(share), 1.0)) - self._per_query(np.log1p(-share))
        return float(0.5 * np.sum(np.where(told, fit + bend, 0.0)) + 0.5 * (log_count / _SPREAD) ** 2)

    @cached_property
    def _varied(self) -> BoolArray:
        """Queries whose values differ by more than rounding."""
        spread = self.within + self._per_query(self.number * self.mean**2)
        return np.asarray(spread > 1e-20 * self.rows * self.level**2)

    def _at(self, count: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How far each item's own mean counts; each query's level above its plain mean, and its sum of squares."""
        share = _divided(self.number, self.number + count)
        level = _divided(self._per_query(share * self.mean), self._per_query(share))
        away = self.mean - level[self.items.query]
        return share, level, self.within + self._per_query(count * share * away**2)

    @cached_property
    def scores(self) -> FloatArray:
        share, level, _ = self._at(self.learnt)
        query = self.items.query
        return np.asarray(self.level[query] + level[query] + share * (self.mean - level[query]))

    @cached_property
    def noise(self) -> FloatArray:
        """Standard deviation of a value, query by query; a value of the typical noise is added to each.

        So that a few values that happen to agree are not certainty.
        """
        squares = self._at(self.learnt)[2]
        freedom = np.maximum(self.rows - 1, 0.0)
        typical = squares.sum() / max(float(freedom.sum()), 1.0)
        return np.asarray(np.sqrt((squares + typical) / (freedom + 1)))

    def measure(self, seed: int) -> Uncertainty:
        """Of items' means, the values being independent."""
        error = self.noise[self.items.query] / np.sqrt(np.maximum(self.number + self.learnt, 1e-9))
        return normal_draws(self.scores, error, "posterior of the means", seed)

    def _per_item(self, of_value: FloatArray) -> FloatArray:
        """Added up by weight."""
        return np.bincount(self.item, self.weight * of_value, len(self.items)).astype(np.float64)

    def _per_query(self, of_item: FloatArray) -> FloatArray:
        return np.bincount(self.items.query, of_item, len(self.items.queries)).astype(np.float64)


def draws_of(items: int) -> int:
    """As many draws of so many scores as memory allows."""
    return int(np.clip(_MOST_CELLS // items, _FEWEST_DRAWS, _MOST_DRAWS))


def normal_draws(scores: FloatArray, error: FloatArray, method: str, seed: int) -> Uncertainty:
    """Draws of scores that are independent and normal."""
    around = error * np.random.default_rng(seed).standard_normal((draws_of(len(scores)), len(scores)))
    return Uncertainty(scores + around, error, method)


def _divided(total: FloatArray, by: FloatArray) -> FloatArray:
    """Zero where there is nothing to divide by."""
    return np.divide(total, by, out=np.zeros(len(by)), where=by > 0)
