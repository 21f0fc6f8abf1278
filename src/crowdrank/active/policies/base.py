"""What a policy promises: a question, and the probability with which it was chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import numpy as np

from crowdrank.active.candidates import Choice, Choices
from crowdrank.active.history import Asked
from crowdrank.active.question import Question
from crowdrank.online import Beliefs


class Policy(Protocol):
    """Frozen settings that choose questions."""

    def next(
        self,
        beliefs: Beliefs,
        asked: Asked | None = None,
        annotator: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Question:
        """The question to ask now: of `annotator`, or of whom it is best to ask."""
        ...


class Chooser(ABC):
    """A policy in codes: it picks a pair and an annotator, and can tell how likely it is to pick any."""

    name: ClassVar[str]

    def next(
        self,
        beliefs: Beliefs,
        asked: Asked | None = None,
        annotator: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Question:
        """The question to ask now: of `annotator`, or of whom it is best to ask."""
        rng = np.random.default_rng() if rng is None else rng
        choices = Choices(beliefs, asked, annotator)
        return choices.named(self.pick(choices, rng), rng)

    @abstractmethod
    def pick(self, choices: Choices, rng: np.random.Generator) -> Choice: ...

    @abstractmethod
    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        """With which probability `pick` would choose this."""
