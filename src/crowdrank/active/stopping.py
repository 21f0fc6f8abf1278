"""Decisions that judgments are collected for (the best few, which of two, the order), and whether they are reached."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import SettingError
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
