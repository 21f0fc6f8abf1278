"""Policies made of two parts: whom to ask, and what to ask them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.questions.choices import Choice, Choices
from crowdrank.questions.policies.policy import Chooser
from crowdrank.questions.policies.what import Anything, LeastSeen, MostDoubtful, What
from crowdrank.questions.policies.who import Anyone, MostTelling, Who


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
