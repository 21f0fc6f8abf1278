"""What to ask someone: one of the pairs that can be put to them, and how likely it was."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crowdrank.online import Beliefs, Posterior
from crowdrank.online.beliefs import Vector
from crowdrank.online.posterior import Draws
from crowdrank.questions.choices import Choices, Pairs

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
        pairs = choices.pairs(annotator)
        return _least_seen(choices, np.unique(np.concatenate(pairs)))

    def _second(self, choices: Choices, first: int, annotator: int) -> npt.NDArray[np.int64]:
        one, other = choices.pairs(annotator)
        return _least_seen(choices, np.concatenate((other[one == first], one[other == first])))


def _least_seen(choices: Choices, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    seen = choices.asked.seen[items]
    return np.asarray(items[seen == seen.min()])


class MostDoubtful:
    """The pair of which it is least clear which is the better."""

    def pick(self, choices: Choices, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        pairs, best = self._best(choices, annotator)
        row = int(rng.choice(best))
        return int(pairs.one[row]), int(pairs.other[row]), 1 / len(best)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        pairs, best = self._best(choices, annotator)
        here = (pairs.one[best] == min(one, other)) & (pairs.other[best] == max(one, other))
        return float(here.any()) / len(best)

    def _best(self, choices: Choices, annotator: int) -> tuple[Pairs, npt.NDArray[np.int64]]:
        pairs = choices.pairs(annotator)
        clarity = clarity_of(choices.beliefs, pairs)
        return pairs, np.flatnonzero(clarity == clarity.min())


def clarity_of(beliefs: Beliefs, pairs: Pairs) -> Vector:
    """How many standard deviations the items of each pair are apart."""
    one, other = pairs
    lead = np.abs(beliefs.mean[one] - beliefs.mean[other])
    return np.asarray(lead / np.sqrt(np.maximum(_variance(beliefs, pairs), 1e-300)))


def _variance(beliefs: Beliefs, pairs: Pairs) -> Vector:
    """Of the difference of two scores."""
    one, other = pairs
    if not isinstance(beliefs, Posterior):
        return np.asarray(beliefs.variance[one] + beliefs.variance[other])
    if len(beliefs.items) > _LARGEST_COVARIANCE:
        scores = beliefs.draws.scores.T
        return np.concatenate([np.var(scores[a] - scores[b], axis=1) for a, b in _in_parts(one, other)])
    covariance = _covariance(beliefs.draws)
    return np.asarray(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])


def _in_parts(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> list[Pairs]:
    parts = max(1, len(one) // 10_000)
    return [Pairs(a, b) for a, b in zip(np.array_split(one, parts), np.array_split(other, parts), strict=True)]


@lru_cache(maxsize=8)
def _covariance(draws: Draws) -> Vector:
    return np.atleast_2d(np.cov(draws.scores, rowvar=False))
