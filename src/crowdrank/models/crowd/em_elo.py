"""Bashir et al. 2013 (EMeloRating): EM over annotators says which item of each pair is better; then Elo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, require_kind, with_annotators
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.crowd import Ties, check_ties
from crowdrank.models.crowd.encoding import answers_of, turned
from crowdrank.models.crowd.likelihood import sigmoid
from crowdrank.results import Convergence, Ranking

# In a resample, qualities that move less than this have settled.
_SETTLED = 1e-4


@dataclass(frozen=True, kw_only=True)
class EMElo(Model):
    """Elo over pairs, each played once: won as likely as the annotators, weighed by how often they are right, say.

    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"], annotator=["x", "y", "x"])
    >>> EMElo().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True

    quality_prior: tuple[float, float] = (5.0, 2.0)
    """Beta prior on quality: right and wrong answers each annotator is credited with beforehand."""
    ties: Ties = "half"
    """Half an answer each way; or left out."""
    passes: int = 100
    """How often all pairs are played."""
    step: float = 32.0
    """How far one pass can move a rating (Elo's K)."""
    scale: float = 400.0
    """The lead in rating that means odds of ten to one."""
    initial: float = 1500.0
    """Where every item starts, and the mean of each query's."""
    tolerance: float = 1e-6
    """Stop EM when no quality moves by more."""
    max_steps: int = 1000
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        check_solver(self)
        check_ties(self.ties)
        if not min(self.quality_prior) > 0 or len(self.quality_prior) != 2:
            raise SettingError(f"quality_prior must be two positive numbers, got {self.quality_prior!r}.")
        if not (0 < self.step < self.scale < np.inf):
            raise SettingError(f"step must be positive and less than scale, got {self.step} and {self.scale}.")
        if self.passes < 1:
            raise SettingError(f"passes must be at least 1, got {self.passes}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        votes = votes_of(comparisons, self.ties)
        believed, ratings = self._rate(votes, comparisons.items, self.tolerance)
        ranking = build_ranking(
            self,
            comparisons,
            ratings,
            centred=False,
            log_likelihood=log_likelihood(votes, believed.quality),
            convergence=believed.convergence,
            measure=lambda: bootstrap(comparisons, self._again, seed=self.seed),
        )
        return with_annotators(ranking, comparisons, lambda: {"quality": self._quality(votes, believed)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Chances of left, tie and right for each comparison, as columns; there is no room for ties."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        better, quality = sigmoid(margin * np.log(10) / self.scale), ranking.annotators.estimate("quality")
        truth = quality[comparisons.annotator]
        left = truth * better + (1.0 - truth) * (1.0 - better)
        return np.stack((left, np.zeros(len(left)), 1.0 - left), axis=1)

    def _again(self, resampled: Comparisons) -> FloatArray:
        return self._rate(votes_of(resampled, self.ties), resampled.items, _SETTLED)[1]

    def _rate(self, votes: Votes, items: Items, tolerance: float) -> tuple[Believed, FloatArray]:
        """EM from the majorities, then Elo; if most heads are against the ratings, again from the other way up."""
        right, wrong = self.quality_prior
        found = self._settle(votes, np.full(votes.annotators, right / (right + wrong)), tolerance)
        ratings = self._play(votes, found.chance, items)
        ahead = np.sign(np.round(ratings[votes.first] - ratings[votes.second], 6))
        if not turned(votes.agreed((1.0 + ahead) / 2), votes.judged):
            return found, ratings
        again = self._settle(votes, self._maximise(votes, 1.0 - found.chance), tolerance)
        steps = found.convergence.steps + again.convergence.steps
        again = replace(again, convergence=replace(again.convergence, steps=steps))
        return again, self._play(votes, again.chance, items)

    def _settle(self, votes: Votes, quality: FloatArray, tolerance: float) -> Believed:
        """Expectation and maximisation in turn."""
        moved, steps = np.inf, 0
        while moved > tolerance and steps < self.max_steps:
            before, quality = quality, self._maximise(votes, expect(votes, quality))
            moved, steps = float(np.max(np.abs(quality - before))), steps + 1
        settled = Convergence(moved <= tolerance, steps, moved, "of some annotator's quality still moving")
        return Believed(expect(votes, quality), quality, settled)

    def _maximise(self, votes: Votes, chance: FloatArray) -> FloatArray:
        right, wrong = self.quality_prior
        return np.asarray((right + votes.agreed(chance)) / (right + wrong + votes.judged))

    def _play(self, votes: Votes, chance: FloatArray, items: Items) -> FloatArray:
        """Pass after pass, each item's rating moved by its mean surprise, so that the order of pairs is no matter."""
        first, second, size = votes.first, votes.second, len(items)
        # a resample may leave an item without a game
        games = np.maximum(np.bincount(first, minlength=size) + np.bincount(second, minlength=size), 1)
        slope, ratings = np.log(10) / self.scale, np.zeros(size)
        for _ in range(self.passes):
            surprise = chance - sigmoid(slope * (ratings[first] - ratings[second]))
            total = np.bincount(first, surprise, size) - np.bincount(second, surprise, size)
            ratings += self.step * total / games
        return np.asarray(self.initial + items.centre(ratings))

    def _quality(self, votes: Votes, believed: Believed) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The mean and a 95 % interval of Beta, given what is believed of the pairs."""
        from scipy.special import betaincinv

        right, wrong = self.quality_prior
        agreed = votes.agreed(believed.chance)
        shape = right + agreed, wrong + votes.judged - agreed
        return believed.quality, betaincinv(*shape, 0.025), betaincinv(*shape, 0.975)


@dataclass(frozen=True)
class Votes:
    """Answers by pair: 1 for the item of the smaller code, −1 for the other."""

    pairs: IntArray
    items: int
    annotators: int
    pair: IntArray
    who: Int32Array
    side: FloatArray
    weight: FloatArray

    @property
    def first(self) -> IntArray:
        return self.pairs // self.items

    @property
    def second(self) -> IntArray:
        return self.pairs % self.items

    @property
    def judged(self) -> FloatArray:
        """By annotator."""
        return np.asarray(np.bincount(self.who, self.weight, self.annotators), np.float64)

    def agreed(self, chance: FloatArray) -> FloatArray:
        """How much of what each annotator said is right, by the chances that the first items are better."""
        right = np.where(self.side > 0, chance[self.pair], 1.0 - chance[self.pair])
        return np.asarray(np.bincount(self.who, self.weight * right, self.annotators), np.float64)


@dataclass(frozen=True)
class Believed:
    """Where EM ended: of each pair the chance that its first item is better, of each annotator the quality."""

    chance: FloatArray
    quality: FloatArray
    convergence: Convergence


def votes_of(comparisons: Comparisons, ties: Ties) -> Votes:
    answers = answers_of(comparisons, ties=ties)
    size = len(comparisons.items)
    pairs, pair = np.unique(pair_cells(size, answers.winner, answers.loser), return_inverse=True)
    side = np.where(answers.winner < answers.loser, 1.0, -1.0)
    people = max(1, len(comparisons.annotators))
    return Votes(pairs, size, people, pair, answers.annotator, side, answers.weight)


def expect(votes: Votes, quality: FloatArray) -> FloatArray:
    """The chance of each pair that its first item is better, given the qualities; either was as likely beforehand."""
    logit = np.log(quality) - np.log1p(-quality)
    lead = np.bincount(votes.pair, votes.weight * votes.side * logit[votes.who], len(votes.pairs))
    return np.asarray(sigmoid(lead))


def log_likelihood(votes: Votes, quality: FloatArray) -> float:
    """Of all answers, whichever item of each pair is better."""
    right, wrong = np.log(quality)[votes.who], np.log1p(-quality)[votes.who]
    if_first, if_second = (
        np.bincount(votes.pair, votes.weight * np.where(votes.side == side, right, wrong), len(votes.pairs))
        for side in (1.0, -1.0)
    )
    return float(np.sum(np.logaddexp(if_first, if_second) - np.log(2.0)))
