"""How many votes a decision will take: futures drawn from what is believed now, each followed until it settles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.active.stopping import Decision
from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Posterior, Roll

PACE = 3.5
"""c: after n votes in place of n₀ variances are (n₀ / n)ᶜ of what they were. More than 1: as it becomes clear whom to
believe, old answers tell more too, and questions are asked where they matter. Set on simulated collections."""
_SPREAD_OF_PACE = 0.25
"""Of its logarithm, from one future to another."""
FARTHEST = 100
"""Times the votes so far, beyond which nothing is foretold."""
_STEP = 1.1
_SPREAD_FROM = 10
"""Items from which a draw says how far scores are spread."""
_LOOKED_AT = 200
"""Draws by which it is told whether a future is settled."""
_AS_MANY_AGAIN = 2.0
_OWN = 0.7
"""The weight of the futures, in logarithms, against as many votes again as there were. Set on simulated collections."""


@dataclass(frozen=True)
class Forecast:
    """How many votes in all until a decision is settled; infinite where it will not be in sight."""

    votes: float
    """As likely more as fewer."""
    low: float
    """One in ten is below, …"""
    high: float
    """… and one in ten above."""

    def __str__(self) -> str:
        if self.low == self.high < np.inf:
            return f"settled after {self.votes:,.0f} votes"
        if np.isinf(self.votes):
            return f"not in sight (at least {self.low:,.0f} votes in all)" if np.isfinite(self.low) else "not in sight"
        high = "any number" if np.isinf(self.high) else f"{self.high:,.0f}"
        return f"about {self.votes:,.0f} votes in all ({self.low:,.0f} to {high})"


def forecast(
    beliefs: Posterior,
    decision: Decision,
    probability: float = 0.95,
    votes: int | None = None,
    *,
    pace: float = PACE,
    paths: int = 100,
    seed: int = 0,
) -> Forecast:
    """What it will take to settle a decision, asking on in the same way; `votes` is how many there were so far.

    The beliefs are taken as normal. As votes come in, variances shrink, and the means wander by as much as is thereby
    learnt (preposterior analysis): from where they are to where the truth is. That knows little, so its median is drawn
    some way towards twice the votes so far: the median of who knows only that so many were not enough (Gott 1993).
    The more draws, the less it depends on luck: `model.longer(beliefs)` has four times as many.
    """
    votes = beliefs.judged if votes is None else votes
    if votes < 1:
        raise DataError(
            "Nothing was judged yet, so there is nothing to tell a forecast from: ask some questions first."
        )
    if paths < 10:
        raise SettingError(f"paths must be at least 10, got {paths!r}.")
    if decision.settled(beliefs, probability):
        return Forecast(votes, votes, votes)
    scores, items = _contended(beliefs, decision)
    mean = scores.mean(axis=0)
    futures = _Futures(decision, decision.enough(probability), items, mean, scores - mean, pace)
    rng = np.random.default_rng([seed, len(beliefs.winner)])
    factors = [futures.settles(rng) for _ in range(paths)]
    low, middle, high = np.quantile(factors, (0.1, 0.5, 0.9), method="inverted_cdf")
    middle = np.clip(middle**_OWN * _AS_MANY_AGAIN ** (1 - _OWN), low, high)
    return Forecast(*(float(np.ceil(votes * factor)) for factor in (middle, low, high)))


def _contended(beliefs: Posterior, decision: Decision) -> tuple[FloatArray, Roll]:
    scores, items = beliefs.draws.scores, beliefs.items
    if len(items) >= _SPREAD_FROM:
        # as wide as one another: how far scores are spread is uncertain for long, and decides nothing
        scores = scores / scores.std(axis=1, keepdims=True)
    codes = decision.contended(scores, items)
    return scores[:, codes], Roll(tuple(items.labels[n] for n in codes), tuple(items.queries[n] for n in codes))


@dataclass(frozen=True, eq=False)
class _Futures:
    decision: Decision
    enough: float
    items: Roll
    mean: FloatArray
    around: FloatArray
    """Draws about their mean: combined with random weights they are draws of the same covariance."""
    pace: float

    @cached_property
    def looked_at(self) -> FloatArray:
        some = self.around[:: -(-len(self.around) // _LOOKED_AT)]
        return np.asarray(some - some.mean(axis=0))

    def settles(self, rng: np.random.Generator) -> float:
        """One future: after how many times the votes so far."""
        mean, before = self.mean, 1.0
        pace = self.pace * np.exp(_SPREAD_OF_PACE * rng.standard_normal())
        for factor in _FACTORS:
            left = factor**-pace
            learnt = np.sqrt((before - left) / (len(self.around) - 1))
            mean, before = mean + learnt * rng.standard_normal(len(self.around)) @ self.around, left
            if self.decision.chance(mean + np.sqrt(left) * self.looked_at, self.items) >= self.enough:
                return float(factor)
        return np.inf


_FACTORS = _STEP ** np.arange(1, int(np.log(FARTHEST) / np.log(_STEP)) + 1)
