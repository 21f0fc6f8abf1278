"""Decisions that judgments settle: the best few, which of two, the order, or an order that is close enough."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import SettingError
from crowdrank.online import Posterior, Refits, Roll

_SAMPLED = 40
"""Items by which the closeness of an order is foretold."""


class Decision(ABC):
    """What is to be decided. As things stand, the means of the draws decide it."""

    @abstractmethod
    def chance(self, scores: FloatArray, items: Roll) -> float:
        """The probability that the means are right; `scores` are joint draws, one row each."""

    def enough(self, probability: float) -> float:
        """The chance from which it is settled."""
        return probability

    def contended(self, scores: FloatArray, items: Roll) -> IntArray:
        """Items that say what will become of it: a forecast can leave out the others."""
        return np.arange(len(items))

    def settled(self, beliefs: Posterior, probability: float = 0.95) -> bool:
        """Whether it looks settled, by the draws at hand; before you announce it, see that it is `confirmed`."""
        return self.chance(beliefs.draws.scores, beliefs.items) >= self.enough(_checked(probability))


@dataclass(frozen=True)
class Top(Decision):
    """Which are the best k of every query, in whatever order.

    >>> scores = np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    >>> [round(Top(k).chance(scores, Roll.of("abc")), 2) for k in (1, 2, 3)]
    [1.0, 0.67, 1.0]
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError(f"The best k must be one or more, got {self.k!r}.")

    def chance(self, scores: FloatArray, items: Roll) -> float:
        right = np.ones(len(scores), bool)
        for members in _best_first(scores, items):
            if len(members) > self.k:
                best, rest = members[: self.k], members[self.k :]
                right &= scores[:, best].min(axis=1) > scores[:, rest].max(axis=1)
        return float(right.mean())

    def contended(self, scores: FloatArray, items: Roll) -> IntArray:
        """Those that are among the best in some draw, and the best of the others."""
        found = [np.zeros(0, np.int64)]
        for members in _best_first(scores, items):
            k = min(self.k, len(members))
            found.append(members[: k + 1])
            found.append(members[np.argpartition(-scores[:, members], k - 1, axis=1)[:, :k].ravel()])
        return np.unique(np.concatenate(found))


@dataclass(frozen=True)
class Pair(Decision):
    """Which of two items is better, whichever it is."""

    a: str
    b: str
    query: str = ""

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise SettingError(f"Name two items, got {self.a!r} twice.")

    def chance(self, scores: FloatArray, items: Roll) -> float:
        one, other = self.contended(scores, items)
        lead = scores[:, one] - scores[:, other]
        return float(np.mean(lead > 0 if lead.mean() > 0 else lead < 0))

    def contended(self, scores: FloatArray, items: Roll) -> IntArray:
        return np.array([items.index(name, self.query) for name in (self.a, self.b)])


@dataclass(frozen=True)
class Order(Decision):
    """Which comes before which, all through every query."""

    def chance(self, scores: FloatArray, items: Roll) -> float:
        right = np.ones(len(scores), bool)
        for members in _best_first(scores, items):
            right &= np.all(np.diff(scores[:, members], axis=1) < 0, axis=1)
        return float(right.mean())


@dataclass(frozen=True)
class Accuracy(Decision):
    """An order with at least this share of pairs (of the same query) expected to be right."""

    share: float

    def __post_init__(self) -> None:
        if not 0.5 < self.share < 1:
            raise SettingError(f"The share of pairs in the right order must lie between 0.5 and 1, got {self.share!r}.")

    def chance(self, scores: FloatArray, items: Roll) -> float:
        """The probability that a pair, taken at random, is in the right order."""
        right = pairs = 0
        for members in _best_first(scores, items):
            ordered = scores[:, members]
            for place in range(len(members) - 1):
                right += int(np.count_nonzero(ordered[:, place, None] > ordered[:, place + 1 :]))
            pairs += len(members) * (len(members) - 1) // 2
        return right / (pairs * len(scores)) if pairs else 1.0

    def enough(self, probability: float) -> float:
        return self.share

    def contended(self, scores: FloatArray, items: Roll) -> IntArray:
        """A sample: query by query in an order drawn by lot, as the items of each."""
        lot = np.random.default_rng(0)
        turn = lot.permutation(int(items.query.max(initial=-1)) + 1)[items.query]
        return np.sort(np.lexsort((lot.random(len(items)), turn))[:_SAMPLED])


@dataclass(frozen=True)
class Kendall(Accuracy):
    """An order whose expected Kendall τ with the truth is at least so much: an accuracy of (1 + τ) / 2."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise SettingError(f"Kendall's tau must lie between 0 and 1, got {self.share!r}.")

    def enough(self, probability: float) -> float:
        return (1 + self.share) / 2


def confirmed(decision: Decision, beliefs: Posterior, model: Refits, probability: float = 0.95) -> bool:
    """Whether it is settled by the draws at hand, and by four times as many drawn anew.

    Few draws, looked at again and again, show sooner or later what one waits for.
    """
    return decision.settled(beliefs, probability) and decision.settled(model.longer(beliefs), probability)


def decision(text: str) -> Decision:
    """What a text asks to be decided: "top 3", "order", "tau 0.9", "accuracy 0.95", or "a over b".

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
        f'No decision reads {text!r}. Say "top 3" (the best three), "order" (all of it), "a over b" (which of the two '
        f'is better), "tau 0.9" or "accuracy 0.95" (how close the order is expected to come).'
    )


def _best_first(scores: FloatArray, items: Roll) -> Iterator[IntArray]:
    """The items of each query, in codes, by their means."""
    order = np.lexsort((-scores.mean(axis=0), items.query))
    yield from np.split(order, np.flatnonzero(np.diff(items.query[order])) + 1)


def _checked(probability: float) -> float:
    if not 0.5 <= probability < 1:
        raise SettingError(f"probability must be at least 0.5 and below 1, got {probability!r}.")
    return probability
