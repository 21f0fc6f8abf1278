"""What to ask someone: one of the pairs that can be put to them, and how likely it was."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crowdrank.online import Beliefs, Posterior, Roll
from crowdrank.online.beliefs import Vector
from crowdrank.online.posterior import Draws
from crowdrank.questions.choices import Choices, Pairs, all_pairs

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

    def _first(self, choices: Choices, annotator: int) -> npt.NDArray[np.int64]:
        return _least_seen(choices, np.flatnonzero(choices.partners_left(annotator)))

    def _second(self, choices: Choices, first: int, annotator: int) -> npt.NDArray[np.int64]:
        return _least_seen(choices, choices.partners(annotator, first))


def _least_seen(choices: Choices, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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


def clarity_of(beliefs: Beliefs, pairs: Pairs) -> Vector:
    """How many standard deviations the items of each pair are apart."""
    one, other = pairs
    if isinstance(beliefs, Posterior):
        return _clarity_of_draws(beliefs.draws, pairs)
    lead = np.abs(beliefs.mean[one] - beliefs.mean[other])
    return np.asarray(lead / np.sqrt(beliefs.variance[one] + beliefs.variance[other]))


def _clarity_of_draws(draws: Draws, pairs: Pairs) -> Vector:
    one, other = pairs
    mean = draws.scores.mean(axis=0)
    return np.asarray(np.abs(mean[one] - mean[other]) / np.sqrt(np.maximum(_variance(draws, pairs), 1e-300)))


@lru_cache(maxsize=8)
def _by_doubt(draws: Draws, items: Roll) -> Pairs:
    """All pairs, the least clear first: looked at once for all questions that the same draws steer."""
    pairs = all_pairs(items)
    return pairs.take(np.argsort(_clarity_of_draws(draws, pairs), kind="stable"))


def _variance(draws: Draws, pairs: Pairs) -> Vector:
    """Of the difference of two scores."""
    one, other = pairs
    if draws.scores.shape[1] > _LARGEST_COVARIANCE:
        scores = draws.scores.T
        return np.concatenate([np.var(scores[a] - scores[b], axis=1) for a, b in _in_parts(one, other)])
    covariance = _covariance(draws)
    return np.asarray(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])


def _in_parts(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> list[Pairs]:
    parts = max(1, len(one) // 10_000)
    return [Pairs(a, b) for a, b in zip(np.array_split(one, parts), np.array_split(other, parts), strict=True)]


@lru_cache(maxsize=8)
def _covariance(draws: Draws) -> Vector:
    return np.atleast_2d(np.cov(draws.scores, rowvar=False))
