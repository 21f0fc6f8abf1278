"""Decisions that judgments are collected for (the best few, which of two, the order), and whether they are reached."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Posterior, SequentialMCMC, Vocabulary

_SAMPLE_SIZE = 40
"""Number of items from which the accuracy of a whole order is forecast."""


class Decision(ABC):
    """Something to be decided. The means of the posterior draws give the present answer.

    In all methods `scores` are joint posterior draws, one row per draw and one column per item, and `items` is the
    vocabulary of the columns (`Vocabulary.of(ranking.items)` for the draws behind a ranking).
    """

    @abstractmethod
    def probability(self, scores: FloatArray, items: Vocabulary) -> float:
        """Return the posterior probability that the present answer is right."""

    def threshold(self, probability: float) -> float:
        """Return the value of `probability` from which on it is decided."""
        return probability

    def relevant_items(self, scores: FloatArray, items: Vocabulary) -> IntArray:
        """Return the codes of the items that determine the answer; a forecast can ignore the others."""
        return np.arange(len(items))

    def decided(self, scores: FloatArray, items: Vocabulary, probability: float = 0.95) -> bool:
        """Return whether the answer is certain enough by these draws. Use `is_confirmed` before you announce it."""
        return self.probability(scores, items) >= self.threshold(_check(probability))

    def decided_by(self, posterior: Posterior, probability: float = 0.95) -> bool:
        """Return whether the answer is certain enough by the draws of a posterior."""
        return self.decided(posterior.draws.scores, posterior.items, probability)


@dataclass(frozen=True)
class Top(Decision):
    """Which are the best k items of every query, in any order.

    Parameters
    ----------
    k : int
        Number of items.

    Examples
    --------
    >>> scores = np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    >>> [round(Top(k).probability(scores, Vocabulary.of("abc")), 2) for k in (1, 2, 3)]
    [1.0, 0.67, 1.0]
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError(f"The k of the best k must be one or more, got {self.k!r}.")

    def probability(self, scores: FloatArray, items: Vocabulary) -> float:
        right = np.ones(len(scores), bool)
        for members in _best_first(scores, items):
            if len(members) > self.k:
                best, rest = members[: self.k], members[self.k :]
                right &= scores[:, best].min(axis=1) > scores[:, rest].max(axis=1)
        return float(right.mean())

    def relevant_items(self, scores: FloatArray, items: Vocabulary) -> IntArray:
        """Items that are among the best k in some draw, and the best of the others."""
        found = [np.zeros(0, np.int64)]
        for members in _best_first(scores, items):
            k = min(self.k, len(members))
            found.append(members[: k + 1])
            found.append(members[np.argpartition(-scores[:, members], k - 1, axis=1)[:, :k].ravel()])
        return np.unique(np.concatenate(found))


@dataclass(frozen=True)
class Pair(Decision):
    """Which of two items is better.

    Parameters
    ----------
    a, b : str
        Labels of the items.
    query : str, default ""
        Their query.
    """

    a: str
    b: str
    query: str = ""

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise SettingError(f"Name two different items, got {self.a!r} twice.")

    def probability(self, scores: FloatArray, items: Vocabulary) -> float:
        one, other = self.relevant_items(scores, items)
        difference = scores[:, one] - scores[:, other]
        return float(np.mean(difference > 0 if difference.mean() > 0 else difference < 0))

    def relevant_items(self, scores: FloatArray, items: Vocabulary) -> IntArray:
        return np.array([items.index(name, self.query) for name in (self.a, self.b)])


@dataclass(frozen=True)
class Order(Decision):
    """The complete order of every query."""

    def probability(self, scores: FloatArray, items: Vocabulary) -> float:
        right = np.ones(len(scores), bool)
        for members in _best_first(scores, items):
            right &= np.all(np.diff(scores[:, members], axis=1) < 0, axis=1)
        return float(right.mean())


@dataclass(frozen=True)
class Accuracy(Decision):
    """An order with an expected accuracy of at least `share`.

    Parameters
    ----------
    share : float
        Share of pairs (of the same query) in the right order, between 0.5 and 1.
    """

    share: float

    def __post_init__(self) -> None:
        if not 0.5 < self.share < 1:
            raise SettingError(f"The share of pairs in the right order must lie between 0.5 and 1, got {self.share!r}.")

    def probability(self, scores: FloatArray, items: Vocabulary) -> float:
        """Return the expected accuracy: the probability that a random pair is in the right order."""
        right = pairs = 0
        for members in _best_first(scores, items):
            ordered = scores[:, members]
            for place in range(len(members) - 1):
                right += int(np.count_nonzero(ordered[:, place, None] > ordered[:, place + 1 :]))
            pairs += len(members) * (len(members) - 1) // 2
        return right / (pairs * len(scores)) if pairs else 1.0

    def threshold(self, probability: float) -> float:
        return self.share

    def relevant_items(self, scores: FloatArray, items: Vocabulary) -> IntArray:
        """A random sample of items, query by query."""
        rng = np.random.default_rng(0)
        query_rank = rng.permutation(int(items.query.max(initial=-1)) + 1)[items.query]
        return np.sort(np.lexsort((rng.random(len(items)), query_rank))[:_SAMPLE_SIZE])


@dataclass(frozen=True)
class Kendall(Accuracy):
    """An order whose expected Kendall τ with the truth is at least `share`: an accuracy of (1 + τ) / 2.

    Parameters
    ----------
    share : float
        Kendall's τ, between 0 and 1.
    """

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise SettingError(f"Kendall's tau must lie between 0 and 1, got {self.share!r}.")

    def threshold(self, probability: float) -> float:
        return (1 + self.share) / 2


def is_confirmed(decision: Decision, posterior: Posterior, model: SequentialMCMC, probability: float = 0.95) -> bool:
    """Return whether a decision is reached by the current draws, and again by four times as many new draws.

    A probability that is estimated from few draws, again and again, exceeds any threshold sooner or later.

    Parameters
    ----------
    decision : Decision
        The decision to check.
    posterior : Posterior
        Current beliefs.
    model : SequentialMCMC
        The model that produced them; it draws again.
    probability : float, default 0.95
        How certain the decision must be.
    """
    return decision.decided_by(posterior, probability) and decision.decided_by(model.resample(posterior), probability)


def decision(text: str) -> Decision:
    """Parse a decision: "top 3", "order", "tau 0.9", "accuracy 0.95" or "a over b".

    Examples
    --------
    >>> decision("top 3"), decision("Rome over Oslo")
    (Top(k=3), Pair(a='Rome', b='Oslo', query=''))
    """
    words = text.strip()
    if len(pair := re.split(r"\s+over\s+", words)) == 2 and all(pair):
        return Pair(*pair)
    if words == "order":
        return Order()
    kind, _, number = words.partition(" ")
    try:
        if kind == "top":
            return Top(int(number))
        if kind in ("tau", "accuracy"):
            return (Kendall if kind == "tau" else Accuracy)(float(number))
    except ValueError as error:
        if isinstance(error, SettingError):
            raise
    raise SettingError(
        f'Unknown decision {text!r}. Use "top 3" (the best three), "order" (the complete order), "a over b" (which of '
        f'two is better), "tau 0.9" or "accuracy 0.95" (expected accuracy of the order).'
    )


def _best_first(scores: FloatArray, items: Vocabulary) -> Iterator[IntArray]:
    """Yield the codes of the items of each query, sorted by mean score."""
    order = np.lexsort((-scores.mean(axis=0), items.query))
    yield from np.split(order, np.flatnonzero(np.diff(items.query[order])) + 1)


def _check(probability: float) -> float:
    if not 0.5 <= probability < 1:
        raise SettingError(f"probability must be at least 0.5 and below 1, got {probability!r}.")
    return probability


# Forecast how many votes a decision will take, by simulating how the posterior may develop.

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
