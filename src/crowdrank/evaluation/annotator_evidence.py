"""What was found about each annotator, before anything is concluded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.evaluation.annotator_tests import (
    Haste,
    Sum,
    adjusted,
    below,
    either_way,
    haste,
    quality_of,
    upper_quality,
)
from crowdrank.evaluation.minority_preferences import Expected, Taste, decided, taste

LEANS = 0.15
"""One-sided: the share of answers to one side, beyond what the scores expect, from which a leaning matters."""
QUICK = 1 / 3
"""Hasty: the median time, as a share of the crowd's, below which answers are quick."""
NOISY_BELOW, NOISY_APART = 0.8, 0.1
"""Noisy: a quality below the one, and below the typical by the other."""
RANDOM_BELOW = 0.75
"""Random: a quality that must be excluded."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything by annotator; chances are adjusted p-values, nan where a test could not be made."""

    level: float
    answers: FloatArray
    """Decided answers, whoever else judged."""
    decided: FloatArray
    """Decided answers on which the others' scores have a say; only these are tested."""
    agreed: FloatArray
    agreement: Sum
    quality: FloatArray
    upper: FloatArray
    """The largest quality that is not excluded."""
    typical: float
    left: FloatArray
    left_expected: FloatArray
    haste: Haste | None
    taste: Taste
    chances: dict[str, FloatArray]

    def sure(self, test: str) -> BoolArray:
        return np.asarray(self.chances[test] < self.level)

    @cached_property
    def leans(self) -> BoolArray:
        excess = np.abs(self.left - self.left_expected)
        return self.sure("one_sided") & (excess >= LEANS * self.decided)

    @cached_property
    def hasty(self) -> BoolArray:
        if self.haste is None:
            return np.zeros(len(self.decided), bool)
        return self.sure("hasty") & (self.haste.median < QUICK * self.haste.usual) & ~self.reliable

    @cached_property
    def noisy(self) -> BoolArray:
        small = (self.quality < NOISY_BELOW) & (self.quality < self.typical - NOISY_APART)
        return self.sure("above_half") & self.sure("below_typical") & small

    @cached_property
    def reliable(self) -> BoolArray:
        return self.sure("above_half") & ~self.noisy

    @cached_property
    def random(self) -> BoolArray:
        either = self.sure("above_half") | self.sure("below_half")
        return ~either & self.sure("below_typical") & (self.upper < RANDOM_BELOW)


def gather(comparisons: Comparisons, expected: Expected, level: float) -> Evidence:
    """Run every test on every annotator."""
    answers, rows = decided(comparisons, expected.majority), np.flatnonzero(comparisons.outcome)
    agreement = answers.along(answers.expected)
    known, quality = agreement.square > 0, quality_of(agreement)
    typical = _typical(agreement, quality)
    said = (answers.expected != 0).astype(np.float64)
    leaning = answers.along(answers.beyond_scores(said))
    left, pace = answers.per(said * (answers.side > 0)), haste(comparisons)
    shared = taste(answers, expected.minority[rows])
    nothing = np.full(answers.people, np.nan)
    chances = {
        "above_half": agreement.chance(),
        "below_half": agreement.reversed().chance(),
        "below_typical": below(agreement, typical),
        "one_sided": either_way(leaning) if comparisons.positions_known else nothing,
        "hasty": nothing if pace is None else pace.chance,
        "taste": shared.chance,
    }
    return Evidence(
        level=level,
        answers=answers.per(np.ones(len(rows))),
        decided=answers.per(said),
        agreed=answers.per(answers.side * answers.expected > 0),
        agreement=agreement,
        quality=quality,
        upper=upper_quality(agreement, level),
        typical=typical,
        left=left,
        left_expected=left - leaning.total / 2,
        haste=pace,
        taste=shared,
        chances={name: adjusted(np.where(known, chance, np.nan)) for name, chance in chances.items()},
    )


def _typical(agreement: Sum, quality: FloatArray) -> float:
    """The median quality of the better known half."""
    known = agreement.square > 0
    if not known.any():
        return np.nan
    better = agreement.square >= np.median(agreement.square[known])
    return float(np.median(quality[better]))
