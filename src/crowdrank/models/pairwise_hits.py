"""Sunahase, Baba & Kashima 2017: able annotators are those who agree with the scores, and make the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, here
from crowdrank.judgments import Comparisons, Judgments, Knowledge
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.conclude import check_connected, check_solver, conclude, health_of, need, with_annotators
from crowdrank.models.differences import Leanings, cells_of
from crowdrank.results import Convergence, Ranking

Vector = npt.NDArray[np.float64]

# In a resample, abilities that move less than this have settled.
_SETTLED = 1e-3
_UNIT = "of some annotator's ability still moving"


@dataclass(frozen=True, kw_only=True)
class PairwiseHITS:
    """Scores by the answers of able annotators, who are those that agree with the scores.

    In turn: score differences of compared pairs are fitted to abilities for less abilities against, and an
    annotator's ability is the share of answers that agree with the scores.
    """

    reads: ClassVar[type] = Comparisons
    weighs_annotators: ClassVar[bool] = True

    tolerance: float = 1e-9
    """Two scores closer than this share of the largest of their query are tied."""
    max_steps: int = 1000
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        check_solver(self)

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking:
        comparisons = need(Comparisons, judgments, self)
        health = health_of(comparisons)
        check_connected(health, has_prior=True)
        told = with_gold(comparisons)
        answers = Leanings(told)
        settled = self._alternate(answers)
        ranking = conclude(
            self, comparisons, settled.scores, convergence=settled.convergence,
            measure=lambda: bootstrap(told, self._again(told), seed=self.seed),
        )  # fmt: skip
        ranking = replace(ranking, observe=lambda: health.notes() + settled.notes())
        return with_annotators(
            ranking, comparisons, lambda: {"ability": _of_named(comparisons, settled, answers.weight_of_annotator)}
        )

    def _again(self, comparisons: Comparisons) -> Callable[[Comparisons], Vector]:
        def refit(resampled: Comparisons) -> Vector:
            pairs = np.searchsorted(cells_of(comparisons), cells_of(resampled))
            # A pair drawn oftener than it was judged has a larger sum to fit, not a larger difference.
            drawn = resampled.counts.total / comparisons.counts.total[pairs]
            return resampled.items.centre(self._alternate(Leanings(resampled, drawn), _SETTLED).scores)

        return refit

    def _alternate(self, answers: Leanings, settled: float = 0.0) -> Settled:
        """Round after round, until a round repeats: with the same pairs agreed on, all that follows is the same."""
        seen: dict[bytes, int] = {}
        weight, known = answers.weight_of_annotator, answers.comparisons.knowledge
        abilities = [held_to(known, np.ones(len(weight)), weight)]
        for step in range(self.max_steps):
            scores = answers.scores(abilities[step])
            signs = answers.signs(scores, self.tolerance)
            abilities.append(held_to(known, answers.abilities(signs), weight))
            moved = float(np.max(np.abs(abilities[-1] - abilities[-2])))
            first = seen.setdefault(signs.tobytes(), step)
            if moved <= settled:
                return Settled(scores, abilities[-1], Convergence(True, step + 1, moved, _UNIT))
            if first < step:
                cycle = np.array(abilities[first + 1 : step + 1])
                # scores are linear in abilities: the mean of the cycle keeps eq. 4
                middle, swing = cycle.mean(axis=0), float(np.max(np.ptp(cycle, axis=0)))
                return Settled(
                    answers.scores(middle), middle, Convergence(True, step + 1, swing, _UNIT), cycle=len(cycle)
                )
        return Settled(scores, abilities[-2], Convergence(False, self.max_steps, moved, _UNIT))


@dataclass(frozen=True)
class Settled:
    """Where the rounds ended: at one state, or going round a cycle of several, of which this is the mean."""

    scores: Vector
    abilities: Vector
    convergence: Convergence
    cycle: int = 1

    def notes(self) -> list[str]:
        if self.cycle == 1:
            return []
        swing = self.convergence.distance
        return [
            f"The rounds end in a cycle of {self.cycle}, abilities swinging by up to {swing:.2g}: this is their mean."
        ]


def with_gold(comparisons: Comparisons) -> Comparisons:
    """The judgments, and after them the gold pairs as answers of one more annotator, who is always right."""
    known = comparisons.knowledge
    pairs = len(known.gold_better)
    if comparisons.annotator is None or not pairs or not known.gold_weight:
        return comparisons
    judge = len(comparisons.annotators)
    rows = replace(comparisons, features={}, time=None, duration=None)
    return replace(
        rows,
        left=np.concatenate((rows.left, known.gold_better)),
        right=np.concatenate((rows.right, known.gold_worse)),
        outcome=np.concatenate((rows.outcome, np.ones(pairs, np.int8))),
        annotators=np.append(rows.annotators, "the gold"),
        annotator=np.concatenate((comparisons.annotator, np.full(pairs, judge, np.int32))),
        weight=np.concatenate((rows.weights, np.full(pairs, known.gold_weight))),
        knowledge=replace(known, quality={**known.quality, judge: 1.0}),
    )


def held_to(known: Knowledge, abilities: Vector, weight: Vector) -> Vector:
    """Abilities as known, or within their range; of two in the wrong order, both what they are together."""
    held = abilities.copy()
    for code, value in known.quality.items():
        held[code] = value
    for code, (low, high) in known.between.items():
        held[code] = np.clip(held[code], low, high)
    for _ in known.better:  # as often as there are pairs: a chain of them is then in order
        for a, b in known.better:
            if held[a] < held[b]:
                shares = weight[[a, b]] + 1e-12
                held[a] = held[b] = np.average(held[[a, b]], weights=shares)
    return held


def _of_named(comparisons: Comparisons, settled: Settled, weight: Vector) -> tuple[Vector, Vector, Vector]:
    named = slice(len(comparisons.annotators))
    return _wilson(settled.abilities[named], weight[named])


def _wilson(share: Vector, weight: Vector) -> tuple[Vector, Vector, Vector]:
    """A share of so many answers and its 95 % interval (Wilson 1927), which never leaves 0 to 1."""
    z = 1.96
    middle = (weight * share + z**2 / 2) / (weight + z**2)
    reach = z * np.sqrt(weight * share * (1 - share) + z**2 / 4) / (weight + z**2)
    return share, np.minimum(middle - reach, share), np.maximum(middle + reach, share)
