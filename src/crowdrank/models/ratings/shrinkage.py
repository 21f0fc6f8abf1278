"""Shrinkage of item means towards the mean of their query: a one-way random-effects model with empirical Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, Int32Array
from crowdrank.data import Items
from crowdrank.errors import SettingError
from crowdrank.inference.laplace import allocate
from crowdrank.results import Uncertainty

# Range of the logarithm of an estimated prior count, and the grid on which it is integrated.
_LOG_LIMIT, _LOG_STEP = 12.0, 0.4
_SPREAD_MEDIAN = 0.5
_MIN_DRAWS, _MAX_DRAWS, _MAX_CELLS = 200, 1000, 4_000_000


def check_prior_count(count: float | None, name: str) -> None:
    """Refuse a negative or infinite prior count."""
    if count is not None and not 0 <= count < np.inf:
        raise SettingError(f"{name} must be zero or more, or None to estimate it, got {count}.")


@dataclass(frozen=True)
class ShrunkenMeans:
    """Random-effects means: value = item mean + noise, item means ~ N(query mean, noise²/prior_count).

    Parameters
    ----------
    items : Items
        The items and their queries.
    item : array
        Item of each value.
    value, weight : array
        The values and their weights.
    prior_count : float or None
        Pseudo-observations at the query mean that are added to each item; None to estimate their number.
    """

    items: Items
    item: Int32Array
    value: FloatArray
    weight: FloatArray
    prior_count: float | None

    @cached_property
    def item_weight(self) -> FloatArray:
        """Total weight of the values of each item."""
        return self._per_item(np.ones(len(self.item)))

    @cached_property
    def query_weight(self) -> FloatArray:
        """Total weight of the values of each query."""
        return self._per_query(self.item_weight)

    @cached_property
    def query_mean(self) -> FloatArray:
        """Plain mean of each query."""
        return _ratio(self._per_query(self._per_item(self.value)), self.query_weight)

    @cached_property
    def deviation(self) -> FloatArray:
        """Values minus their query's mean: a scale far from zero loses no digits in the sums of squares."""
        return np.asarray(self.value - self.query_mean[self.items.query[self.item]])

    @cached_property
    def item_mean(self) -> FloatArray:
        """Plain mean deviation of each item; 0 without values."""
        return _ratio(self._per_item(self.deviation), self.item_weight)

    @cached_property
    def within_squares(self) -> FloatArray:
        """Sum of squares within items, per query."""
        return self._per_query(self._per_item((self.deviation - self.item_mean[self.item]) ** 2))

    @cached_property
    def fitted_count(self) -> float:
        """The prior count as given, or its maximum a posteriori estimate."""
        if self.prior_count is not None:
            return self.prior_count
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            self._negative_log_posterior, bounds=(-_LOG_LIMIT, _LOG_LIMIT), method="bounded", options={"xatol": 1e-9}
        )
        return float(np.exp(found.x))

    def _negative_log_posterior(self, log_count: float) -> float:
        """Minus the restricted log-likelihood (REML), with a noise variance per query, minus the log prior.

        With λ = count·n / (count + n) for an item with n values, twice the first is
        (N − 1)·log Σ squares + Σ log (1 + n / count) + log Σ λ for a query with N values.
        """
        count = float(np.exp(log_count))
        own_weight, _, squares = self._at(count)
        informative = self._varies & (self.query_weight > 1)
        fit = (self.query_weight - 1) * np.log(np.where(informative, squares, 1.0))
        log_determinant = np.log(np.where(informative, count * self._per_query(own_weight), 1.0))
        log_determinant = log_determinant - self._per_query(np.log1p(-own_weight))
        deviance = np.sum(np.where(informative, fit + log_determinant, 0.0))
        # Half-Cauchy prior, with this median, on the ratio of the spread of items to the noise, count^(−½).
        return float(0.5 * deviance + np.log(np.cosh(log_count / 2 + np.log(_SPREAD_MEDIAN))))

    @cached_property
    def _varies(self) -> BoolArray:
        """Queries whose values differ by more than rounding."""
        squares = self.within_squares + self._per_query(self.item_weight * self.item_mean**2)
        return np.asarray(squares > 1e-20 * self.query_weight * self.query_mean**2)

    def _at(self, count: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weight of each item's own mean, each query's centre relative to its plain mean, and its sum of squares."""
        own_weight = _ratio(self.item_weight, self.item_weight + count)
        centre = _ratio(self._per_query(own_weight * self.item_mean), self._per_query(own_weight))
        deviation = self.item_mean - centre[self.items.query]
        return own_weight, centre, self.within_squares + self._per_query(count * own_weight * deviation**2)

    @cached_property
    def _counts(self) -> FloatArray:
        """Values of the prior count that the scores and the draws are averaged over."""
        if self.prior_count is not None:
            return np.array([self.prior_count])
        return np.asarray(np.exp(np.arange(-_LOG_LIMIT, _LOG_LIMIT + _LOG_STEP / 2, _LOG_STEP)))

    @cached_property
    def _count_weights(self) -> FloatArray:
        """Posterior probabilities of these values."""
        if self.prior_count is not None:
            return np.ones(1)
        losses = np.array([self._negative_log_posterior(log_count) for log_count in np.log(self._counts)])
        weights = np.exp(losses.min() - losses)
        return np.asarray(weights / weights.sum())

    @cached_property
    def scores(self) -> FloatArray:
        """Posterior mean of each item, with the prior count integrated out."""
        query, total = self.items.query, np.zeros(len(self.items))
        for count, share in zip(self._counts, self._count_weights, strict=True):
            own_weight, centre, _ = self._at(float(count))
            total += share * (centre[query] + own_weight * (self.item_mean - centre[query]))
        return np.asarray(self.query_mean[query] + total)

    def uncertainty(self, seed: int) -> Uncertainty:
        """Posterior of the item means, treating the values as independent; prior count and noise are integrated out."""
        rng, size = np.random.default_rng(seed), len(self.items)
        query, degrees = self.items.query, np.maximum(self.query_weight - 1, 0.0)
        drawn = []
        for count, share in zip(self._counts, allocate(self._count_weights, draw_count(size)), strict=True):
            own_weight, centre, squares = self._at(count)
            average = squares.sum() / max(float(degrees.sum()), 1.0)
            # The noise variance of a query is scaled inverse χ², and its level normal given the noise.
            noise = np.sqrt((squares + average) / rng.chisquare(degrees + 1, (int(share), len(degrees))))
            level_precision = np.maximum(count * self._per_query(own_weight), 1e-9)
            level = centre + noise * rng.standard_normal(noise.shape) / np.sqrt(level_precision) * (count > 0)
            error = noise[:, query] / np.sqrt(np.maximum(self.item_weight + count, 1e-9))
            mean = level[:, query] + own_weight * (self.item_mean - level[:, query])
            drawn.append(self.query_mean[query] + mean + error * rng.standard_normal(error.shape))
        draws = np.concatenate(drawn)
        return Uncertainty(draws, draws.std(axis=0), "posterior of the means", sampled=True)

    def _per_item(self, values: FloatArray) -> FloatArray:
        """Weighted sums of values per item."""
        return np.bincount(self.item, self.weight * values, len(self.items)).astype(np.float64)

    def _per_query(self, item_values: FloatArray) -> FloatArray:
        return np.bincount(self.items.query, item_values, len(self.items.queries)).astype(np.float64)


def draw_count(items: int) -> int:
    """The number of draws of this many scores that fits the memory limit."""
    return int(np.clip(_MAX_CELLS // items, _MIN_DRAWS, _MAX_DRAWS))


def normal_uncertainty(scores: FloatArray, error: FloatArray, method: str, seed: int) -> Uncertainty:
    """Independent normal draws around the scores."""
    noise = error * np.random.default_rng(seed).standard_normal((draw_count(len(scores)), len(scores)))
    return Uncertainty(scores + noise, error, method)


def _ratio(total: FloatArray, by: FloatArray) -> FloatArray:
    """Elementwise ratio; zero where the denominator is zero."""
    return np.divide(total, by, out=np.zeros(len(by)), where=by > 0)
