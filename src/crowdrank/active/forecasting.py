"""Forecast how many votes a decision will take, by simulating how the posterior may develop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.active.stopping import Decision
from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Posterior, Vocabulary

VARIANCE_EXPONENT = 3.5
"""c: after n votes instead of n₀, variances are (n₀ / n)ᶜ of what they were. Above 1, because earlier answers become
more informative as annotators become known, and because questions are asked where they matter. Fitted to
simulations."""
_EXPONENT_SPREAD = 0.25
"""Standard deviation of log c between simulated paths."""
HORIZON = 100
"""Multiple of the present votes beyond which nothing is forecast."""
_GRID_STEP = 1.1
_STANDARDISE_FROM = 10
"""Number of items from which on draws are scaled to unit standard deviation."""
_CHECKED_DRAWS = 200
"""Draws by which a simulated posterior is checked."""
_PRIOR_FACTOR = 2.0
_PATH_WEIGHT = 0.7
"""Weight of the simulated median, in logarithms, against twice the present votes. Fitted to simulations."""


@dataclass(frozen=True)
class Forecast:
    """Total number of votes until a decision is made; infinite if it is beyond the horizon.

    Parameters
    ----------
    votes : float
        Median.
    low, high : float
        10 % and 90 % quantiles.

    Examples
    --------
    >>> print(Forecast(620, 450, 1100))
    about 620 votes in total (450 to 1,100)
    """

    votes: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high < np.inf:
            return f"decided after {self.votes:,.0f} votes"
        if np.isinf(self.votes):
            return (
                f"out of reach (at least {self.low:,.0f} votes in total)" if np.isfinite(self.low) else "out of reach"
            )
        high = "no upper limit" if np.isinf(self.high) else f"{self.high:,.0f}"
        return f"about {self.votes:,.0f} votes in total ({self.low:,.0f} to {high})"


def forecast(
    posterior: Posterior,
    decision: Decision,
    probability: float = 0.95,
    votes: int | None = None,
    *,
    exponent: float = VARIANCE_EXPONENT,
    paths: int = 100,
    seed: int = 0,
) -> Forecast:
    """Forecast how many votes a decision will take, from the draws of a posterior.

    The more draws, the less the forecast depends on chance: pass ``model.resample(posterior)``, which has four times as
    many.

    Parameters
    ----------
    posterior : Posterior
        Current beliefs.
    votes : int, optional
        Number of votes so far; by default those that the posterior includes.
    decision, probability, exponent, paths, seed
        See `forecast_from_draws`.

    See Also
    --------
    forecast_from_draws : The same from draws alone.
    """
    votes = posterior.n_judgments if votes is None else votes
    rng = np.random.default_rng([seed, len(posterior.winner)])
    return _forecast(posterior.draws.scores, posterior.items, decision, probability, votes, exponent, paths, rng)


def forecast_from_draws(
    scores: FloatArray,
    items: Vocabulary,
    decision: Decision,
    votes: int,
    probability: float = 0.95,
    *,
    exponent: float = VARIANCE_EXPONENT,
    paths: int = 100,
    seed: int = 0,
) -> Forecast:
    """Forecast how many votes a decision will take if the collection continues in the same way.

    Parameters
    ----------
    scores : array of shape (draws, items)
        Joint posterior draws of the scores.
    items : Vocabulary
        The items, in the order of the columns.
    decision : Decision
        The decision to forecast.
    votes : int
        Number of votes so far.
    probability : float, default 0.95
        How certain the decision must be.
    exponent : float, default 3.5
        c: after n votes instead of n₀, variances are (n₀ / n)ᶜ of what they were.
    paths : int, default 100
        Number of simulated paths, at least 10.
    seed : int, default 0
        Seed of the simulation.

    Returns
    -------
    Forecast
        Median and 80 % interval of the total number of votes.

    Notes
    -----
    Preposterior analysis: the posterior is taken as normal. As votes come in, variances shrink, and the means move
    accordingly towards a truth drawn from the posterior. This model is crude, so its median is moved towards twice the
    present votes, which is the median if all that is known is that the present votes were not enough (Gott 1993).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.array([1.0, 0.0]) + rng.normal(size=(200, 2))
    >>> from crowdrank.active.stopping import Top
    >>> found = forecast_from_draws(scores, Vocabulary.of(["a", "b"]), Top(1), votes=100)
    >>> 100 < found.low <= found.votes <= found.high
    True
    """
    rng = np.random.default_rng([seed, votes])
    return _forecast(scores, items, decision, probability, votes, exponent, paths, rng)


def _forecast(
    scores: FloatArray,
    items: Vocabulary,
    decision: Decision,
    probability: float,
    votes: int,
    exponent: float,
    paths: int,
    rng: np.random.Generator,
) -> Forecast:
    if votes < 1:
        raise DataError("There are no votes yet, and a forecast needs some: ask some questions first.")
    if paths < 10:
        raise SettingError(f"paths must be at least 10, got {paths!r}.")
    if decision.decided(scores, items, probability):
        return Forecast(votes, votes, votes)
    scores, items = _relevant(scores, items, decision)
    mean = scores.mean(axis=0)
    simulation = _Simulation(decision, decision.threshold(probability), items, mean, scores - mean, exponent)
    factors = [simulation.run(rng) for _ in range(paths)]
    low, median, high = np.quantile(factors, (0.1, 0.5, 0.9), method="inverted_cdf")
    median = np.clip(median**_PATH_WEIGHT * _PRIOR_FACTOR ** (1 - _PATH_WEIGHT), low, high)
    return Forecast(*(float(np.ceil(votes * factor)) for factor in (median, low, high)))


def _relevant(scores: FloatArray, items: Vocabulary, decision: Decision) -> tuple[FloatArray, Vocabulary]:
    if len(items) >= _STANDARDISE_FROM:
        # The scale of the scores stays uncertain for long but decides nothing: give every draw the same scale.
        scores = scores / scores.std(axis=1, keepdims=True)
    codes = decision.relevant_items(scores, items)
    return scores[:, codes], items.take(codes)


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Paths of the posterior; `centred` are the draws minus their mean."""

    decision: Decision
    threshold: float
    items: Vocabulary
    mean: FloatArray
    centred: FloatArray
    exponent: float

    @cached_property
    def checked_draws(self) -> FloatArray:
        some = self.centred[:: -(-len(self.centred) // _CHECKED_DRAWS)]
        return np.asarray(some - some.mean(axis=0))

    def run(self, rng: np.random.Generator) -> float:
        """Simulate one path. Returns the multiple of the present votes at which the decision is made."""
        mean, before = self.mean, 1.0
        exponent = self.exponent * np.exp(_EXPONENT_SPREAD * rng.standard_normal())
        for factor in _FACTORS:
            remaining = factor**-exponent
            step = np.sqrt((before - remaining) / (len(self.centred) - 1))
            # a random combination of centred draws is a normal draw with their covariance
            mean, before = mean + step * rng.standard_normal(len(self.centred)) @ self.centred, remaining
            scores = mean + np.sqrt(remaining) * self.checked_draws
            if self.decision.probability(scores, self.items) >= self.threshold:
                return float(factor)
        return np.inf


_FACTORS = _GRID_STEP ** np.arange(1, int(np.log(HORIZON) / np.log(_GRID_STEP)) + 1)
