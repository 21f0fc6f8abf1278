"""EMeloRating (Bashir et al. 2013): EM estimates which item of each pair is better, then Elo rates the items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Comparisons, Items, Judgments
from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, require_kind, with_annotators
from crowdrank.models.bootstrap import affordable_replicates, bootstrap
from crowdrank.models.crowd import Ties, check_ties
from crowdrank.models.crowd.encoding import encode_answers, is_reversed
from crowdrank.models.crowd.likelihood import sigmoid
from crowdrank.results import Convergence, Ranking

# In a bootstrap resample, EM stops when no quality changes by more.
_RESAMPLE_TOLERANCE = 1e-4
# Of one refit, roughly: some fifty steps of EM and a hundred passes of Elo, bound by memory.
_OPERATIONS_PER_ANSWER = 16_000.0


@dataclass(frozen=True, kw_only=True)
class EMElo(Model):
    """Elo ratings of the items, from the probability that each item of a pair is better; EM gives that probability.

    Parameters
    ----------
    quality_prior : (float, float), default (5.0, 2.0)
        Beta prior on quality: right and wrong answers that each annotator is credited with beforehand.
    ties : "half" or "drop", default "half"
        Whether ties count as half an answer each way or are ignored.
    passes : int, default 100
        Number of passes of Elo over all pairs.
    step : float, default 32.0
        Elo's K: how far one pass can move a rating.
    scale : float, default 400.0
        Difference of ratings that means odds of ten to one.
    initial : float, default 1500.0
        Starting rating of every item, and mean rating of each query.
    tolerance : float, default 1e-6
        EM stops when no quality changes by more.
    max_steps : int, default 1000
        Maximum number of EM steps. A warning says if that was not enough.
    seed : int, default 0
        Seed of the bootstrap behind standard errors and rank intervals.

    Notes
    -----
    Annotator k answers right with probability qₖ, whatever the pair, and either item of a pair is equally likely to be
    better beforehand. The E step gives the probability p that the first item of a pair is better, the M step the
    qualities. Elo then treats each pair as one game with result p:

        rating += K · mean over the item's pairs of (p − 1/(1 + 10^(−difference/scale)))

    M. Bashir, J. Anderton, J. Wu, P. B. Golbus, V. Pavlu, J. A. Aslam (2013). A document rating system for preference
    judgements. SIGIR.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "c", "c"], ["a", "a", "b"], annotator=["x", "y", "x"])
    >>> EMElo().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True

    quality_prior: tuple[float, float] = (5.0, 2.0)
    ties: Ties = "half"
    passes: int = 100
    step: float = 32.0
    scale: float = 400.0
    initial: float = 1500.0
    tolerance: float = 1e-6
    max_steps: int = 1000
    seed: int = 0

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
        votes = pair_votes(comparisons, self.ties)
        result, ratings = self._rate(votes, comparisons.items, self.tolerance)
        ranking = build_ranking(
            self,
            comparisons,
            ratings,
            centred=False,
            log_likelihood=log_likelihood(votes, result.quality),
            convergence=result.convergence,
            measure=lambda: bootstrap(
                comparisons,
                self._refit,
                seed=self.seed,
                replicates=affordable_replicates(_OPERATIONS_PER_ANSWER * len(comparisons)),
            ),
        )
        return with_annotators(ranking, comparisons, lambda: {"quality": self._quality_interval(votes, result)})

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, as columns. Ties have probability 0."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        better, quality = sigmoid(margin * np.log(10) / self.scale), ranking.annotators.estimate("quality")
        right = quality[comparisons.annotator]
        left = right * better + (1.0 - right) * (1.0 - better)
        return np.stack((left, np.zeros(len(left)), 1.0 - left), axis=1)

    def _refit(self, resampled: Comparisons) -> FloatArray:
        return self._rate(pair_votes(resampled, self.ties), resampled.items, _RESAMPLE_TOLERANCE)[1]

    def _rate(self, votes: PairVotes, items: Items, tolerance: float) -> tuple[EMResult, FloatArray]:
        """EM from equal qualities, then Elo; if the majority of annotators contradicts the ratings, flip and repeat."""
        right, wrong = self.quality_prior
        found = self._run_em(votes, np.full(votes.annotators, right / (right + wrong)), tolerance)
        ratings = self._run_elo(votes, found.p_first, items)
        ahead = np.sign(np.round(ratings[votes.first] - ratings[votes.second], 6))
        if not is_reversed(votes.agreed((1.0 + ahead) / 2), votes.judged):
            return found, ratings
        again = self._run_em(votes, self._m_step(votes, 1.0 - found.p_first), tolerance)
        steps = found.convergence.steps + again.convergence.steps
        again = replace(again, convergence=replace(again.convergence, steps=steps))
        return again, self._run_elo(votes, again.p_first, items)

    def _run_em(self, votes: PairVotes, quality: FloatArray, tolerance: float) -> EMResult:
        moved, steps = np.inf, 0
        while moved > tolerance and steps < self.max_steps:
            before, quality = quality, self._m_step(votes, e_step(votes, quality))
            moved, steps = float(np.max(np.abs(quality - before))), steps + 1
        convergence = Convergence(moved <= tolerance, steps, moved, "of some annotator's quality still moving")
        return EMResult(e_step(votes, quality), quality, convergence)

    def _m_step(self, votes: PairVotes, p_first: FloatArray) -> FloatArray:
        right, wrong = self.quality_prior
        return np.asarray((right + votes.agreed(p_first)) / (right + wrong + votes.judged))

    def _run_elo(self, votes: PairVotes, p_first: FloatArray, items: Items) -> FloatArray:
        """Elo in passes: each rating moves by the mean over its pairs, so that their order does not matter."""
        first, second, size = votes.first, votes.second, len(items)
        # an item may have no pair in a resample
        games = np.maximum(np.bincount(first, minlength=size) + np.bincount(second, minlength=size), 1)
        slope, ratings = np.log(10) / self.scale, np.zeros(size)
        for _ in range(self.passes):
            surprise = p_first - sigmoid(slope * (ratings[first] - ratings[second]))
            total = np.bincount(first, surprise, size) - np.bincount(second, surprise, size)
            ratings += self.step * total / games
        return np.asarray(self.initial + items.centre(ratings))

    def _quality_interval(self, votes: PairVotes, result: EMResult) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Qualities with 95 % intervals of their Beta posterior, given the probabilities of the pairs."""
        from scipy.special import betaincinv

        right, wrong = self.quality_prior
        agreed = votes.agreed(result.p_first)
        shape = right + agreed, wrong + votes.judged - agreed
        return result.quality, betaincinv(*shape, 0.025), betaincinv(*shape, 0.975)


@dataclass(frozen=True)
class PairVotes:
    """Answers by pair.

    Parameters
    ----------
    pairs : array of int
        Codes of the compared pairs: first item × number of items + second item, the first with the smaller code.
    items, annotators : int
        How many there are.
    pair, who : arrays of int
        Pair and annotator of each answer.
    side : array of float
        1 if the answer prefers the first item of its pair, −1 if the second.
    weight : array of float
        Weight of each answer.
    """

    pairs: IntArray
    items: int
    annotators: int
    pair: IntArray
    who: Int32Array
    side: FloatArray
    weight: FloatArray

    @cached_property
    def first(self) -> IntArray:
        return self.pairs // self.items

    @cached_property
    def second(self) -> IntArray:
        return self.pairs % self.items

    @cached_property
    def judged(self) -> FloatArray:
        """Weight of each annotator's answers."""
        return np.asarray(np.bincount(self.who, self.weight, self.annotators), np.float64)

    def agreed(self, p_first: FloatArray) -> FloatArray:
        """Expected weight of each annotator's right answers, if the first items are better with these probabilities."""
        first = p_first[self.pair]
        right = np.where(self.side > 0, first, 1.0 - first)
        return np.asarray(np.bincount(self.who, self.weight * right, self.annotators), np.float64)


@dataclass(frozen=True)
class EMResult:
    """Result of EM.

    Parameters
    ----------
    p_first : array of float
        Probability that the first item of each pair is better.
    quality : array of float
        Quality of each annotator.
    convergence : Convergence
        Number of steps, and by how much qualities still change.
    """

    p_first: FloatArray
    quality: FloatArray
    convergence: Convergence


def pair_votes(comparisons: Comparisons, ties: Ties) -> PairVotes:
    answers = encode_answers(comparisons, ties=ties)
    size = len(comparisons.items)
    pairs, pair = np.unique(pair_cells(size, answers.winner, answers.loser), return_inverse=True)
    side = np.where(answers.winner < answers.loser, 1.0, -1.0)
    people = max(1, len(comparisons.annotators))
    return PairVotes(pairs, size, people, pair, answers.annotator, side, answers.weight)


def e_step(votes: PairVotes, quality: FloatArray) -> FloatArray:
    """Probability that the first item of each pair is better, given the qualities; ½ beforehand."""
    logit = np.log(quality) - np.log1p(-quality)
    lead = np.bincount(votes.pair, votes.weight * votes.side * logit[votes.who], len(votes.pairs))
    return np.asarray(sigmoid(lead))


def log_likelihood(votes: PairVotes, quality: FloatArray) -> float:
    """Log-likelihood of all answers, summed over which item of each pair is better."""
    right, wrong = np.log(quality)[votes.who], np.log1p(-quality)[votes.who]
    if_first, if_second = (
        np.bincount(votes.pair, votes.weight * np.where(votes.side == side, right, wrong), len(votes.pairs))
        for side in (1.0, -1.0)
    )
    return float(np.sum(np.logaddexp(if_first, if_second) - np.log(2.0)))
