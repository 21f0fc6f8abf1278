"""Policies made of two parts: whom to ask, and what to ask them.

Policies that mix others: a share of questions drawn at random keeps them honest.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crowdrank.active.candidates import Choice, Choices
from crowdrank.active.policies.base import Chooser
from crowdrank.active.policies.information_gain import InformationGain
from crowdrank.active.policies.strategies import Anyone, Anything, LeastSeen, MostDoubtful, MostTelling, What, Who
from crowdrank.errors import SettingError


class Parts(Chooser):
    """First an annotator, then a pair for them."""

    who: ClassVar[Who]
    what: ClassVar[What]

    def pick(self, choices: Choices, rng: np.random.Generator) -> Choice:
        shares = self.who.shares(choices)
        row = int(rng.choice(len(shares), p=shares))
        annotator = int(choices.annotators[row])
        one, other, chance = self.what.pick(choices, annotator, rng)
        return Choice(one, other, annotator, float(shares[row]) * chance, self.name)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        shares = self.who.shares(choices)
        share = float(shares[choices.annotators == annotator].sum())
        return share * self.what.chance(choices, one, other, annotator) if share else 0.0


@dataclass(frozen=True, kw_only=True)
class Random(Parts):
    """Anyone about anything: the only one that favours no answer."""

    name = "random"
    who = Anyone()
    what = Anything()


@dataclass(frozen=True, kw_only=True)
class Coverage(Parts):
    """Anyone about the items that were asked about least."""

    name = "coverage"
    who = Anyone()
    what = LeastSeen()


@dataclass(frozen=True, kw_only=True)
class Uncertainty(Parts):
    """Anyone about the pair of which it is least clear which is the better."""

    name = "uncertainty"
    who = Anyone()
    what = MostDoubtful()


@dataclass(frozen=True, kw_only=True)
class ThoroughCoverage(Parts):
    """Whoever may tell most about the items that were asked about least."""

    name = "coverage"
    who = MostTelling()
    what = LeastSeen()


@dataclass(frozen=True, kw_only=True)
class Thompson(Parts):
    """Whoever may tell most, by a draw of everyone's quality, about the pair that is least clear."""

    name = "thompson"
    who = MostTelling()
    what = MostDoubtful()


class Mixed(Chooser):
    """One policy with probability ε, another otherwise."""

    epsilon: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"epsilon must lie between 0 and 1, got {self.epsilon}.")

    @abstractmethod
    def greedy(self, choices: Choices) -> Chooser:
        """What chooses when chance does not."""

    def pick(self, choices: Choices, rng: np.random.Generator) -> Choice:
        chosen = Random() if rng.random() < self.epsilon else self.greedy(choices)
        one, other, annotator, _, by = chosen.pick(choices, rng)
        return Choice(one, other, annotator, self.chance(choices, one, other, annotator), by)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        free = Random().chance(choices, one, other, annotator)
        return self.epsilon * free + (1 - self.epsilon) * self.greedy(choices).chance(choices, one, other, annotator)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(Mixed):
    """The most informative question but for a share ε drawn at random (Chen et al. 2013, §4)."""

    name = "epsilon-greedy"

    epsilon: float = 0.1
    """The share of questions that are drawn at random."""
    floor: int = 0
    """How often every item is asked about before pairs are chosen by what they teach."""
    best: Chooser = field(default_factory=InformationGain)
    """What chooses the rest."""

    def greedy(self, choices: Choices) -> Chooser:
        return self.best if _covered(choices, self.floor) else Coverage()


@dataclass(frozen=True, kw_only=True)
class Adaptive(Mixed):
    """Ours: a random share; every item a few times; then the unclear pairs, put to those who may tell most."""

    name = "adaptive"

    epsilon: float = 0.1
    """The share of questions that are drawn at random, with which reliability can be measured."""
    floor: int = 6
    """How often every item is asked about before pairs are chosen by doubt."""

    def greedy(self, choices: Choices) -> Chooser:
        return Thompson() if _covered(choices, self.floor) else ThoroughCoverage()


def _covered(choices: Choices, floor: int) -> bool:
    """Whether every item that can be asked about was, so often."""
    return bool((choices.asked.seen[choices.askable] >= floor).all())
