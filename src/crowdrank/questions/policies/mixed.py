"""Policies that mix others: a share of questions drawn at random keeps them honest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from crowdrank.errors import SettingError
from crowdrank.questions.choices import Choice, Choices
from crowdrank.questions.policies.gain import InformationGain
from crowdrank.questions.policies.parts import Coverage, Random, Thompson, ThoroughCoverage
from crowdrank.questions.policies.policy import Chooser


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
