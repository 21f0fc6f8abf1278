"""Chen et al. 2013, §4: the question whose answer is expected to teach most, of the items and of the annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdrank.active.candidates import Choice, Choices
from crowdrank.active.gain_formulas import expected_gain
from crowdrank.active.information_gain import PLAIN_UP_TO, best_triplet
from crowdrank.active.policies.base import Chooser
from crowdrank.arrays import IntArray
from crowdrank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class InformationGain(Chooser):
    """The pair and the annotator of largest expected information gain, for its price (eq. 10)."""

    name = "gain"

    plain_up_to: ClassVar[int] = PLAIN_UP_TO
    exploration: float = 1.0
    """γ: how much learning of annotators counts against learning of items."""
    halve_every: float | None = None
    """The share of the budget after which exploration is halved, again and again; None for never."""
    budget: int | None = None
    """How many questions there will be; needed to halve."""

    def __post_init__(self) -> None:
        if not 0 <= self.exploration < np.inf:
            raise SettingError(f"exploration must be zero or more, got {self.exploration!r}.")
        if self.halve_every is not None and (not 0 < self.halve_every <= 1 or not self.budget):
            raise SettingError("halve_every is a share of the budget, between 0 and 1: give the budget as well.")

    def pick(self, choices: Choices, rng: np.random.Generator) -> Choice:
        best = self._best(choices)
        return Choice(*best[int(rng.integers(len(best)))], 1 / len(best), self.name)

    def chance(self, choices: Choices, one: int, other: int, annotator: int) -> float:
        best = self._best(choices)
        return float((min(one, other), max(one, other), annotator) in best) / len(best)

    def _best(self, choices: Choices) -> list[tuple[int, int, int]]:
        key = (self.name, self._exploration(choices))
        if key not in choices.memo:
            if choices.asked.pool is None:
                choices.memo[key] = _search(choices, key[1], self.plain_up_to)
            else:
                choices.memo[key] = _best_of_pool(choices, key[1])
        best: list[tuple[int, int, int]] = choices.memo[key]
        return best

    def _exploration(self, choices: Choices) -> float:
        if self.halve_every is None or self.budget is None:
            return self.exploration
        put = int(choices.asked.load.sum())
        return float(self.exploration * 0.5 ** (put // max(1, round(self.halve_every * self.budget))))


def _search(choices: Choices, exploration: float, plain_up_to: int) -> list[tuple[int, int, int]]:
    asked = choices.asked
    beliefs = asked.foreseen(choices.beliefs)
    found = best_triplet(beliefs, exploration, choices.annotators, asked.prices, choices.excluded(), plain_up_to)
    if found is None:  # the annotators are those who can be asked something
        raise AssertionError("no pair is left")
    return [(min(found.left, found.right), max(found.left, found.right), found.annotator)]


def _best_of_pool(choices: Choices, exploration: float) -> list[tuple[int, int, int]]:
    """All of the answers left are scored; those that tie are all best."""
    pool, asked = choices.asked.pool, choices.asked
    beliefs = asked.foreseen(choices.beliefs)
    assert pool is not None
    rows = pool.rows(choices.only)
    rows = rows[np.isin(pool.annotator[rows], choices.annotators)]
    one, other, who = pool.one[rows], pool.other[rows], pool.annotator[rows]
    gain = (
        expected_gain(
            beliefs.mean[one] - beliefs.mean[other],
            beliefs.variance[one],
            beliefs.variance[other],
            beliefs.truths[who],
            beliefs.lies[who],
            exploration,
        )
        / asked.prices[who]
    )
    top: IntArray = np.flatnonzero(gain >= gain.max() * (1 - 1e-12))
    return list(zip(one[top].tolist(), other[top].tolist(), who[top].tolist(), strict=True))
