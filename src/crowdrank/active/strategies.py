"""The two halves of a policy: how to choose an annotator, and how to choose a pair for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from crowdrank.active.candidates import CandidateSet, Pairs, all_pairs
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.online import Beliefs, Posterior, Vocabulary
from crowdrank.online.sequential_mcmc import Draws

_MAX_COVARIANCE_ITEMS = 2_000
_THOMPSON_DRAWS = 200


class AnnotatorStrategy(Protocol):
    """How an annotator is chosen."""

    def probabilities(self, candidates: CandidateSet) -> FloatArray:
        """Return the probability of each of `candidates.annotators`."""
        ...


class PairStrategy(Protocol):
    """How a pair is chosen for an annotator."""

    def pick(self, candidates: CandidateSet, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        """Return two items, the smaller code first, and the probability of this choice."""
        ...

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        """Return the probability that `pick` chooses this pair."""
        ...


class UniformAnnotator:
    """All annotators are equally likely; with a pool, in proportion to their remaining answers."""

    def probabilities(self, candidates: CandidateSet) -> FloatArray:
        pool, annotators = candidates.history.pool, candidates.annotators
        if pool is None:
            return np.full(len(annotators), 1 / len(annotators))
        counts = np.bincount(pool.annotator[pool.remaining], minlength=len(candidates.beliefs.annotators))[annotators]
        return np.asarray(counts / counts.sum())


class ThompsonAnnotator:
    """Thompson sampling: an annotator's probability is that of being the most informative per unit of price.

    An annotator of quality η is as informative as a binary symmetric channel with error probability 1 − η: its capacity
    is zero at η = ½, and the same for η and 1 − η. With equal prices, the largest |η − ½| wins.
    """

    def probabilities(self, candidates: CandidateSet) -> FloatArray:
        annotators = candidates.annotators
        if len(annotators) == 1:
            return np.ones(1)
        value = _sampled_capacities(candidates.beliefs)[:, annotators] / candidates.history.prices[annotators]
        return np.bincount(np.argmax(value, axis=1), minlength=len(annotators)) / len(value)


def _sampled_capacities(beliefs: Beliefs) -> FloatArray:
    """Capacity of each annotator in many draws of the qualities, one row per draw.

    The table depends on the beliefs alone, so that the probability of each choice is known exactly.
    """
    if isinstance(beliefs, Posterior):
        return _capacities_of_draws(beliefs.draws)
    rng = np.random.default_rng(beliefs.n_judgments)
    return _capacity(rng.beta(beliefs.alpha, beliefs.beta, (_THOMPSON_DRAWS, len(beliefs.annotators))))


@lru_cache(maxsize=8)
def _capacities_of_draws(draws: Draws) -> FloatArray:
    return _capacity(draws.qualities)


def _capacity(quality: FloatArray) -> FloatArray:
    """ln 2 + η ln η + (1 − η) ln(1 − η), in nats."""
    right, wrong = (np.clip(p, 1e-300, 1) for p in (quality, 1 - quality))
    return np.asarray(np.log(2) + right * np.log(right) + wrong * np.log(wrong))


class UniformPair:
    """All pairs are equally likely."""

    def pick(self, candidates: CandidateSet, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        return *candidates.random_pair(annotator, rng), 1 / candidates.n_pairs(annotator)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        return 1 / candidates.n_pairs(annotator)


class LeastShownPair:
    """An item that was shown least, with the least shown of its possible partners; ties are drawn at random."""

    def pick(self, candidates: CandidateSet, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        one = int(rng.choice(self._first_choices(candidates, annotator)))
        other = int(rng.choice(self._second_choices(candidates, one, annotator)))
        return min(one, other), max(one, other), self.probability(candidates, one, other, annotator)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        # either of the two may have been drawn first
        choices, total = self._first_choices(candidates, annotator), 0.0
        for one, other in ((first, second), (second, first)):
            if one in choices:
                partners = self._second_choices(candidates, one, annotator)
                total += (other in partners) / len(choices) / len(partners)
        return total

    def _first_choices(self, candidates: CandidateSet, annotator: int) -> IntArray:
        return _least_shown(candidates, np.flatnonzero(candidates.partner_counts(annotator)))

    def _second_choices(self, candidates: CandidateSet, first: int, annotator: int) -> IntArray:
        return _least_shown(candidates, candidates.partners(annotator, first))


def _least_shown(candidates: CandidateSet, items: IntArray) -> IntArray:
    counts = candidates.history.item_counts[items]
    return np.asarray(items[counts == counts.min()])


class MaxEntropyPair:
    """The pair whose order is least certain: the smallest difference of scores, in standard deviations."""

    def pick(self, candidates: CandidateSet, annotator: int, rng: np.random.Generator) -> tuple[int, int, float]:
        best = self._best(candidates, annotator)
        row = int(rng.integers(len(best.first)))
        return int(best.first[row]), int(best.second[row]), 1 / len(best.first)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        best = self._best(candidates, annotator)
        is_best = (best.first == min(first, second)) & (best.second == max(first, second))
        return float(is_best.any()) / len(best.first)

    def _best(self, candidates: CandidateSet, annotator: int) -> Pairs:
        beliefs = candidates.beliefs
        if isinstance(beliefs, Posterior) and candidates.history.pool is None and candidates.enumerable:
            found = candidates.first_allowed(_sorted_by_z_score(beliefs.draws, beliefs.items), annotator)
            if found is not None:
                return Pairs(np.array([found[0]]), np.array([found[1]]))
        pairs = candidates.pairs(annotator)
        z_score = z_scores(beliefs, pairs)
        return pairs.take(z_score == z_score.min())


def z_scores(beliefs: Beliefs, pairs: Pairs) -> FloatArray:
    """Absolute difference of the mean scores of each pair, in standard deviations of the difference."""
    if isinstance(beliefs, Posterior):
        return _z_scores_of_draws(beliefs.draws, pairs)
    first, second = pairs
    lead = np.abs(beliefs.mean[first] - beliefs.mean[second])
    return np.asarray(lead / np.sqrt(beliefs.variance[first] + beliefs.variance[second]))


def _z_scores_of_draws(draws: Draws, pairs: Pairs) -> FloatArray:
    first, second = pairs
    mean = draws.scores.mean(axis=0)
    variance = np.maximum(_difference_variance(draws, pairs), 1e-300)
    return np.asarray(np.abs(mean[first] - mean[second]) / np.sqrt(variance))


@lru_cache(maxsize=8)
def _sorted_by_z_score(draws: Draws, items: Vocabulary) -> Pairs:
    """All pairs, the least certain first; cached because the same draws serve many questions."""
    pairs = all_pairs(items)
    return pairs.take(np.argsort(_z_scores_of_draws(draws, pairs), kind="stable"))


def _difference_variance(draws: Draws, pairs: Pairs) -> FloatArray:
    """Variance of the difference of the scores of each pair."""
    first, second = pairs
    if draws.scores.shape[1] > _MAX_COVARIANCE_ITEMS:
        scores = draws.scores.T
        return np.concatenate([np.var(scores[a] - scores[b], axis=1) for a, b in _in_blocks(pairs)])
    covariance = _covariance(draws)
    return np.asarray(covariance[first, first] + covariance[second, second] - 2 * covariance[first, second])


def _in_blocks(pairs: Pairs) -> list[Pairs]:
    n_blocks = max(1, len(pairs.first) // 10_000)
    blocks = (np.array_split(side, n_blocks) for side in pairs)
    return [Pairs(a, b) for a, b in zip(*blocks, strict=True)]


@lru_cache(maxsize=8)
def _covariance(draws: Draws) -> FloatArray:
    return np.atleast_2d(np.cov(draws.scores, rowvar=False))
