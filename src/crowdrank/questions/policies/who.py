"""Whom to ask: a probability for each annotator who can be asked."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from crowdrank.online import Beliefs, Posterior
from crowdrank.online.beliefs import Vector
from crowdrank.online.posterior import Draws
from crowdrank.questions.choices import Choices

_DRAWS = 200


class Who(Protocol):
    """How an annotator is chosen."""

    def shares(self, choices: Choices) -> Vector:
        """A probability for each of `choices.annotators`."""
        ...


class Anyone:
    """All alike; from a pool, as many answers of theirs are left."""

    def shares(self, choices: Choices) -> Vector:
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

    def shares(self, choices: Choices) -> Vector:
        people = choices.annotators
        if len(people) == 1:
            return np.ones(1)
        best = np.argmax(_telling(choices.beliefs)[:, people] / choices.asked.prices[people], axis=1)
        return np.bincount(best, minlength=len(people)) / len(best)


def _telling(beliefs: Beliefs) -> Vector:
    """How much each annotator tells in each of many draws.

    A table that depends on the beliefs alone: picking one of its rows then has a known probability.
    """
    if isinstance(beliefs, Posterior):
        return _of_draws(beliefs.draws)
    rng = np.random.default_rng(beliefs.judged)
    return _capacity(rng.beta(beliefs.truths, beliefs.lies, (_DRAWS, len(beliefs.annotators))))


@lru_cache(maxsize=8)
def _of_draws(draws: Draws) -> Vector:
    return _capacity(draws.qualities)


def _capacity(quality: Vector) -> Vector:
    truth, lie = (np.clip(share, 1e-300, 1) for share in (quality, 1 - quality))
    return np.asarray(np.log(2) + truth * np.log(truth) + lie * np.log(lie))
