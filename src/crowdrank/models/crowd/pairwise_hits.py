"""Sunahase, Baba & Kashima 2017: able annotators are those who agree with the scores, and make the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, EncodedSideInformation, Judgments
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    check_solver,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.crowd.least_squares import Leanings, cells_of
from crowdrank.results import Convergence, Ranking

# In a resample, abilities that move less than this have settled.
_SETTLED = 1e-3
_UNIT = "of some annotator's ability still moving"


@dataclass(frozen=True, kw_only=True)
class PairwiseHITS(Model):
    """Scores by the answers of able annotators, who are those that agree with the scores.

    In turn: score differences of compared pairs are fitted to abilities for less abilities against, and an
    annotator's ability is the share of answers that agree with the scores.
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    tolerance: float = 1e-9
    """Two scores closer than this share of the largest of their query are tied."""
    max_steps: int = 1000
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        health = diagnose(comparisons)
        check_connected(health, has_prior=True)
        told, known = with_gold(comparisons, options.side_information)
        answers = Leanings(told)
        settled = self._alternate(answers, known)
        ranking = build_ranking(
            self,
            comparisons,
            settled.scores,
            convergence=settled.convergence,
            measure=lambda: bootstrap(told, self._again(told, known), seed=self.seed),
        )
        ranking = ranking.with_parts(notes=lambda: health.notes() + settled.notes())
        return with_annotators(
            ranking, comparisons, lambda: {"ability": _of_named(comparisons, settled, answers.weight_of_annotator)}
        )

    def _again(self, comparisons: Comparisons, known: EncodedSideInformation) -> Callable[[Comparisons], FloatArray]:
        def refit(resampled: Comparisons) -> FloatArray:
            pairs = np.searchsorted(cells_of(comparisons), cells_of(resampled))
            # A pair drawn oftener than it was judged has a larger sum to fit, not a larger difference.
            drawn = resampled.counts.total / comparisons.counts.total[pairs]
            return resampled.items.centre(self._alternate(Leanings(resampled, drawn), known, _SETTLED).scores)

        return refit

    def _alternate(self, answers: Leanings, known: EncodedSideInformation, settled: float = 0.0) -> Settled:
        """Round after round, until a round repeats: with the same pairs agreed on, all that follows is the same."""
        seen: dict[bytes, int] = {}
        weight = answers.weight_of_annotator
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

    scores: FloatArray
    abilities: FloatArray
    convergence: Convergence
    cycle: int = 1

    def notes(self) -> list[str]:
        if self.cycle == 1:
            return []
        swing = self.convergence.distance
        return [
            f"The rounds end in a cycle of {self.cycle}, abilities swinging by up to {swing:.2g}: this is their mean."
        ]


def with_gold(comparisons: Comparisons, known: EncodedSideInformation) -> tuple[Comparisons, EncodedSideInformation]:
    """The judgments, and after them the gold pairs as answers of one more annotator, who is always right."""
    pairs = len(known.gold_better)
    if comparisons.annotator is None or not pairs or not known.gold_weight:
        return comparisons, known
    judge = len(comparisons.annotators)
    rows = replace(comparisons, features={}, time=None, duration=None)
    answered = replace(
        rows,
        left=np.concatenate((rows.left, known.gold_better)),
        right=np.concatenate((rows.right, known.gold_worse)),
        outcome=np.concatenate((rows.outcome, np.ones(pairs, np.int8))),
        annotators=np.append(rows.annotators, "the gold"),
        annotator=np.concatenate((comparisons.annotator, np.full(pairs, judge, np.int32))),
        weight=np.concatenate((rows.weights, np.full(pairs, known.gold_weight))),
    )
    return answered, replace(known, quality={**known.quality, judge: 1.0})


def held_to(known: EncodedSideInformation, abilities: FloatArray, weight: FloatArray) -> FloatArray:
    """Abilities as known, within their ranges, and in the known order wherever these allow it."""
    low, high = np.full(len(abilities), -np.inf), np.full(len(abilities), np.inf)
    for code, ends in (*known.between.items(), *((code, (value, value)) for code, value in known.quality.items())):
        low[code], high[code] = ends
    better, worse = np.array(known.better, np.int64).reshape(-1, 2).T
    # as good as all they are better than, no better than all who are better: limits in order keep the order
    least, most = low.copy(), high.copy()
    while np.any(least[better] < least[worse]) or np.any(most[better] < most[worse]):
        np.maximum.at(least, better, least[worse])
        np.minimum.at(most, worse, most[better])
    free = low < high
    both = free[better] & free[worse]
    pooled = _pooled(abilities, weight + 1e-12, (least, most), better[both], worse[both])
    return np.asarray(np.clip(np.clip(pooled, least, most), low, high))


def _pooled(
    abilities: FloatArray, weight: FloatArray, limits: tuple[FloatArray, FloatArray], better: IntArray, worse: IntArray
) -> FloatArray:
    """Two in the wrong order become a block of one value, their mean within limits; and so on until all are right."""
    least, most = limits
    block, held = np.arange(len(abilities)), np.clip(abilities, least, most)
    while len(better) and np.max(wrong := held[worse] - held[better]) > 0:
        pair = int(np.argmax(wrong))
        block[block == block[worse[pair]]] = block[better[pair]]
        one = block == block[better[pair]]
        held[one] = np.clip(np.average(abilities[one], weights=weight[one]), np.max(least[one]), np.min(most[one]))
    return np.asarray(held)


def _of_named(
    comparisons: Comparisons, settled: Settled, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    named = slice(len(comparisons.annotators))
    return _wilson(settled.abilities[named], weight[named])


def _wilson(share: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A share of so many answers and its 95 % interval (Wilson 1927), which never leaves 0 to 1."""
    z = 1.96
    middle = (weight * share + z**2 / 2) / (weight + z**2)
    reach = z * np.sqrt(weight * share * (1 - share) + z**2 / 4) / (weight + z**2)
    return share, np.minimum(middle - reach, share), np.maximum(middle + reach, share)
