"""What to ask someone: one of the pairs that can be put to them, and how likely it was.

Whom to ask: a probability for each annotator who can be asked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from crowdrank.active.candidates import Choices, Pairs, all_pairs
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.online import Beliefs, Posterior, Roll
from crowdrank.online.sequential_mcmc import Draws

_LARGEST_COVARIANCE = 2_000


class What(Protocol):
    """How a pair is chosen for an annotator."""

    def pick(self, choices: Choices, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]: ...

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float: ...


class Anything:
    """Every pair alike."""

    def pick(self, choices: Choices, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        return *choices.random_pair(annotator, rng), 1 / choices.count(annotator)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        return 1 / choices.count(annotator)


class LeastSeen:
    """An item that was asked about least, with one of those asked about least that it can be shown beside."""

    def pick(self, choices: Choices, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        first = int(rng.choice(self._first(choices, annotator)))
        second = int(rng.choice(self._second(choices, first, annotator)))
        return min(first, second), max(first, second), self.chance(choices, first, second, annotator)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        """Either of them may have come first."""
        first, total = self._first(choices, annotator), 0.0
        for a, b in ((one, other), (other, one)):
            if a in first:
                second = self._second(choices, a, annotator)
                total += (b in second) / len(first) / len(second)
        return total

    def _first(self, choices: Choices, annotator: int) -> IntArray:
        return _least_seen(choices, np.flatnonzero(choices.partners_left(annotator)))

    def _second(self, choices: Choices, first: int, annotator: int) -> IntArray:
        return _least_seen(choices, choices.partners(annotator, first))


def _least_seen(choices: Choices, items: IntArray) -> IntArray:
    seen = choices.asked.seen[items]
    return np.asarray(items[seen == seen.min()])


class MostDoubtful:
    """The pair of which it is least clear which is the better."""

    def pick(self, choices: Choices, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        best = self._best(choices, annotator)
        row = int(rng.integers(len(best.one)))
        return int(best.one[row]), int(best.other[row]), 1 / len(best.one)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        best = self._best(choices, annotator)
        here = (best.one == min(one, other)) & (best.other == max(one, other))
        return float(here.any()) / len(best.one)

    def _best(self, choices: Choices, annotator: int) -> Pairs:
        beliefs = choices.beliefs
        if isinstance(beliefs, Posterior) and choices.asked.pool is None and choices.listed:
            found = choices.first_allowed(_by_doubt(beliefs.draws, beliefs.items), annotator)
            if found is not None:
                return Pairs(np.array([found[0]]), np.array([found[1]]))
        pairs = choices.pairs(annotator)
        clarity = clarity_of(beliefs, pairs)
        return pairs.take(clarity == clarity.min())


def clarity_of(beliefs: Beliefs, pairs: Pairs) -> FloatArray:
    """How many standard deviations the items of each pair are apart."""
    one, other = pairs
    if isinstance(beliefs, Posterior):
        return _clarity_of_draws(beliefs.draws, pairs)
    lead = np.abs(beliefs.mean[one] - beliefs.mean[other])
    return np.asarray(lead / np.sqrt(beliefs.variance[one] + beliefs.variance[other]))


def _clarity_of_draws(draws: Draws, pairs: Pairs) -> FloatArray:
    one, other = pairs
    mean = draws.scores.mean(axis=0)
    return np.asarray(np.abs(mean[one] - mean[other]) / np.sqrt(np.maximum(_variance(draws, pairs), 1e-300)))


@lru_cache(maxsize=8)
def _by_doubt(draws: Draws, items: Roll) -> Pairs:
    """All pairs, the least clear first: looked at once for all questions that the same draws steer."""
    pairs = all_pairs(items)
    return pairs.take(np.argsort(_clarity_of_draws(draws, pairs), kind="stable"))


def _variance(draws: Draws, pairs: Pairs) -> FloatArray:
    """Of the difference of two scores."""
    one, other = pairs
    if draws.scores.shape[1] > _LARGEST_COVARIANCE:
        scores = draws.scores.T
        return np.concatenate([np.var(scores[a] - scores[b], axis=1) for a, b in _in_parts(one, other)])
    covariance = _covariance(draws)
    return np.asarray(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])


def _in_parts(one: IntArray, other: IntArray) -> list[Pairs]:
    parts = max(1, len(one) // 10_000)
    return [Pairs(a, b) for a, b in zip(np.array_split(one, parts), np.array_split(other, parts), strict=True)]


@lru_cache(maxsize=8)
def _covariance(draws: Draws) -> FloatArray:
    return np.atleast_2d(np.cov(draws.scores, rowvar=False))


_DRAWS = 200


class Who(Protocol):
    """How an annotator is chosen."""

    def shares(self, choices: Choices) -> FloatArray:
        """A probability for each of `choices.annotators`."""
        ...


class Anyone:
    """All alike; from a pool, as many answers of theirs are left."""

    def shares(self, choices: Choices) -> FloatArray:
        pool, people = choices.asked.pool, choices.annotators
        if pool is None:
            return np.full(len(people), 1 / len(people))
        left = np.bincount(pool.annotator[pool.left], minlength=len(choices.beliefs.annotators))[people]
        return np.asarray(left / left.sum())


class MostTelling:
    """Each as likely as to be the one whose answers tell most for their price (Thompson sampling).

    Answers tell as much as the capacity of a channel that errs with probability 1 − η: nothing at ½, and the same for
    η as for 1 − η. Where prices are equal, the largest |η − ½| wins.
    """

    def shares(self, choices: Choices) -> FloatArray:
        people = choices.annotators
        if len(people) == 1:
            return np.ones(1)
        best = np.argmax(_telling(choices.beliefs)[:, people] / choices.asked.prices[people], axis=1)
        return np.bincount(best, minlength=len(people)) / len(best)


def _telling(beliefs: Beliefs) -> FloatArray:
    """How much each annotator tells in each of many draws.

    A table that depends on the beliefs alone: picking one of its rows then has a known probability.
    """
    if isinstance(beliefs, Posterior):
        return _of_draws(beliefs.draws)
    rng = np.random.default_rng(beliefs.judged)
    return _capacity(rng.beta(beliefs.truths, beliefs.lies, (_DRAWS, len(beliefs.annotators))))


@lru_cache(maxsize=8)
def _of_draws(draws: Draws) -> FloatArray:
    return _capacity(draws.qualities)


def _capacity(quality: FloatArray) -> FloatArray:
    truth, lie = (np.clip(share, 1e-300, 1) for share in (quality, 1 - quality))
    return np.asarray(np.log(2) + truth * np.log(truth) + lie * np.log(lie))
