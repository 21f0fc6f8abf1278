"""Pairwise HITS (Sunahase, Baba & Kashima 2017): abilities and scores that reinforce each other."""

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
from crowdrank.models.crowd.least_squares import SignedPairs, pair_codes
from crowdrank.results import Convergence, Ranking

# In a bootstrap resample, rounds stop when no ability changes by more.
_RESAMPLE_TOLERANCE = 1e-3
_UNIT = "of some annotator's ability still moving"


@dataclass(frozen=True, kw_only=True)
class PairwiseHITS(Model):
    """Scores from the answers of able annotators, who are those whose answers agree with the scores.

    Parameters
    ----------
    tolerance : float, default 1e-9
        Two scores that differ by less than this share of the largest score of their query are tied.
    max_steps : int, default 1000
        Maximum number of rounds. A warning says if that was not enough.
    seed : int, default 0
        Seed of the bootstrap behind standard errors and rank intervals.

    Notes
    -----
    Scores and abilities are computed in turn:

        sᵢ − sⱼ = Σ ability of those who prefer i − Σ ability of those who prefer j   (least squares over pairs, eq. 4)
        abilityₖ = share of k's answers that agree with the scores                    (eq. 5)

    There are finitely many ways to agree, so the rounds repeat a state after some time. If they end in a cycle of
    several states, the result is its mean, and a note says so.

    T. Sunahase, Y. Baba, H. Kashima (2017). Pairwise HITS: quality estimation from pairwise comparisons in
    creator-evaluator crowdsourcing process. AAAI.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"], annotator=["x", "y", "x"])
    >>> PairwiseHITS().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    tolerance: float = 1e-9
    max_steps: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        diagnostics = diagnose(comparisons)
        check_connected(diagnostics, has_prior=True)
        answered, known = add_gold_pairs(comparisons, options.side_information)
        answers = SignedPairs(answered)
        found = self._alternate(answers, known)
        ranking = build_ranking(
            self,
            comparisons,
            found.scores,
            convergence=found.convergence,
            measure=lambda: bootstrap(answered, self._refit(answered, known), seed=self.seed),
        )
        ranking = ranking.with_parts(notes=lambda: diagnostics.notes() + found.notes())
        return with_annotators(
            ranking,
            comparisons,
            lambda: {"ability": _ability_interval(comparisons, found, answers.weight_by_annotator)},
        )

    def _refit(self, comparisons: Comparisons, known: EncodedSideInformation) -> Callable[[Comparisons], FloatArray]:
        def refit(resampled: Comparisons) -> FloatArray:
            pairs = np.searchsorted(pair_codes(comparisons), pair_codes(resampled))
            # A pair that is drawn more often has a larger sum of answers, not a larger score difference.
            pair_weight = resampled.counts.total / comparisons.counts.total[pairs]
            return resampled.items.centre(
                self._alternate(SignedPairs(resampled, pair_weight), known, _RESAMPLE_TOLERANCE).scores
            )

        return refit

    def _alternate(self, answers: SignedPairs, known: EncodedSideInformation, tolerance: float = 0.0) -> HitsResult:
        """Run rounds until the signs of all score differences repeat: from then on everything repeats."""
        seen: dict[bytes, int] = {}
        weight = answers.weight_by_annotator
        abilities = [project_to_constraints(known, np.ones(len(weight)), weight)]
        for step in range(self.max_steps):
            scores = answers.scores(abilities[step])
            signs = answers.signs(scores, self.tolerance)
            abilities.append(project_to_constraints(known, answers.abilities(signs), weight))
            moved = float(np.max(np.abs(abilities[-1] - abilities[-2])))
            first = seen.setdefault(signs.tobytes(), step)
            if moved <= tolerance:
                return HitsResult(scores, abilities[-1], Convergence(True, step + 1, moved, _UNIT))
            if first < step:
                cycle = np.array(abilities[first + 1 : step + 1])
                # scores are linear in abilities, so the mean of the cycle satisfies eq. 4
                mean, swing = cycle.mean(axis=0), float(np.max(np.ptp(cycle, axis=0)))
                return HitsResult(
                    answers.scores(mean), mean, Convergence(True, step + 1, swing, _UNIT), cycle=len(cycle)
                )
        return HitsResult(scores, abilities[-2], Convergence(False, self.max_steps, moved, _UNIT))


@dataclass(frozen=True)
class HitsResult:
    """Result of the rounds: a fixed point, or the mean of a cycle.

    Parameters
    ----------
    scores, abilities : arrays of float
        Final scores and abilities.
    convergence : Convergence
        Number of rounds, and by how much abilities still change.
    cycle : int
        Length of the cycle; 1 for a fixed point.
    """

    scores: FloatArray
    abilities: FloatArray
    convergence: Convergence
    cycle: int = 1

    def notes(self) -> list[str]:
        if self.cycle == 1:
            return []
        swing = self.convergence.distance
        return [
            f"The rounds end in a cycle of {self.cycle} states, in which abilities change by up to {swing:.2g}. "
            "The result is their mean."
        ]


def add_gold_pairs(
    comparisons: Comparisons, known: EncodedSideInformation
) -> tuple[Comparisons, EncodedSideInformation]:
    """The judgments, followed by the gold pairs as answers of an additional annotator of ability 1."""
    pairs = len(known.gold_better)
    if comparisons.annotator is None or not pairs or not known.gold_weight:
        return comparisons, known
    gold_annotator = len(comparisons.annotators)
    rows = replace(comparisons, features={}, time=None, duration=None, both_bad=None)
    answered = replace(
        rows,
        left=np.concatenate((rows.left, known.gold_better)),
        right=np.concatenate((rows.right, known.gold_worse)),
        outcome=np.concatenate((rows.outcome, np.ones(pairs, np.int8))),
        annotators=np.append(rows.annotators, "the gold"),
        annotator=np.concatenate((comparisons.annotator, np.full(pairs, gold_annotator, np.int32))),
        weight=np.concatenate((rows.weights, np.full(pairs, known.gold_weight))),
    )
    return answered, replace(known, quality={**known.quality, gold_annotator: 1.0})


def project_to_constraints(known: EncodedSideInformation, abilities: FloatArray, weight: FloatArray) -> FloatArray:
    """Abilities projected to their known values and intervals, and to the known order where these allow it."""
    low, high = np.full(len(abilities), -np.inf), np.full(len(abilities), np.inf)
    for code, ends in (*known.between.items(), *((code, (value, value)) for code, value in known.quality.items())):
        low[code], high[code] = ends
    better, worse = np.array(known.better, np.int64).reshape(-1, 2).T
    # propagate the bounds along the order: bounds that are in order keep the order
    lowest, highest = low.copy(), high.copy()
    while np.any(lowest[better] < lowest[worse]) or np.any(highest[better] < highest[worse]):
        np.maximum.at(lowest, better, lowest[worse])
        np.minimum.at(highest, worse, highest[better])
    free = low < high
    both = free[better] & free[worse]
    pooled = _pool_adjacent(abilities, weight + 1e-12, (lowest, highest), better[both], worse[both])
    return np.asarray(np.clip(np.clip(pooled, lowest, highest), low, high))


def _pool_adjacent(
    abilities: FloatArray, weight: FloatArray, bounds: tuple[FloatArray, FloatArray], better: IntArray, worse: IntArray
) -> FloatArray:
    """Pool annotators in the wrong order into blocks, which get their mean within bounds, until the order holds."""
    lowest, highest = bounds
    block, pooled = np.arange(len(abilities)), np.clip(abilities, lowest, highest)
    while len(better) and np.max(wrong := pooled[worse] - pooled[better]) > 0:
        pair = int(np.argmax(wrong))
        block[block == block[worse[pair]]] = block[better[pair]]
        one = block == block[better[pair]]
        mean = np.average(abilities[one], weights=weight[one])
        pooled[one] = np.clip(mean, np.max(lowest[one]), np.min(highest[one]))
    return np.asarray(pooled)


def _ability_interval(
    comparisons: Comparisons, found: HitsResult, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    named = slice(len(comparisons.annotators))
    return _wilson(found.abilities[named], weight[named])


def _wilson(share: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A share of answers and its 95 % score interval (Wilson 1927), which stays within 0 and 1."""
    z = 1.96
    centre = (weight * share + z**2 / 2) / (weight + z**2)
    reach = z * np.sqrt(weight * share * (1 - share) + z**2 / 4) / (weight + z**2)
    return share, np.minimum(centre - reach, share), np.maximum(centre + reach, share)
