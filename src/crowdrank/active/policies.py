"""Policies: which question to ask next, and the probability with which it was chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np

from crowdrank.active.candidates import Candidate, CandidateSet, Pairs, all_pairs
from crowdrank.active.gain_formulas import expected_gain
from crowdrank.active.information_gain import EXHAUSTIVE_UP_TO, best_triplet
from crowdrank.active.questions import AnswerPool, Question, QuestionHistory
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import NothingToAskError, SettingError, UnknownNameError
from crowdrank.online import Beliefs, Posterior, Vocabulary
from crowdrank.online.moments import Triplet
from crowdrank.online.sequential_mcmc import Draws

# The two halves of a policy: how to choose an annotator, and how to choose a pair for them.

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


class BestAnnotatorStrategy:
    """The annotator whose answers are expected to be the most informative per unit of price.

    Annotators who have not answered yet are equally good, and one of them is asked when all others are expected to be
    worse. Where there are many annotators, this explores enough (Bayati et al. 2020): Thompson sampling would try
    nearly all of them. Of equally good annotators, those who were asked most are asked, because quality shows in many
    answers of one annotator sooner than in one answer each of many.
    """

    def probabilities(self, candidates: CandidateSet) -> FloatArray:
        annotators = candidates.annotators
        value = _expected_capacities(candidates.beliefs)[annotators] / candidates.history.prices[annotators]
        best = value >= value.max() * (1 - 1e-9)
        counts = candidates.history.annotator_counts[annotators]
        best &= counts == counts[best].max()
        return np.asarray(best / best.sum())


class ThompsonAnnotator:
    """Thompson sampling: an annotator's probability is that of being the most informative per unit of price."""

    def probabilities(self, candidates: CandidateSet) -> FloatArray:
        annotators = candidates.annotators
        if len(annotators) == 1:
            return np.ones(1)
        value = _sampled_capacities(candidates.beliefs)[:, annotators] / candidates.history.prices[annotators]
        return np.bincount(np.argmax(value, axis=1), minlength=len(annotators)) / len(value)


def _expected_capacities(beliefs: Beliefs) -> FloatArray:
    """Expected capacity of each annotator."""
    if not isinstance(beliefs, Posterior):
        return _capacity_of_beta(beliefs.alpha, beliefs.beta)
    expected = _sampled_capacities(beliefs).mean(axis=0)
    processed = beliefs.annotator[: len(beliefs.annotator) - beliefs.n_pending]
    unknown = np.bincount(processed, minlength=len(expected)) == 0
    if unknown.any():  # their distributions are the same, but not their draws
        expected[unknown] = expected[unknown].mean()
    return np.asarray(expected)


def _capacity_of_beta(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Expected capacity with a Beta distribution of the quality."""
    from scipy.special import digamma

    total = alpha + beta
    terms = sum(count / total * (digamma(count + 1) - digamma(total + 1)) for count in (alpha, beta))
    return np.asarray(np.log(2) + terms)


def _sampled_capacities(beliefs: Beliefs) -> FloatArray:
    """Capacity of each annotator in many draws of the qualities, one row per draw.

    An annotator of quality η is as informative as a binary symmetric channel with error probability 1 − η: its capacity
    is zero at η = ½, and the same for η and 1 − η. The table depends on the beliefs alone, so that the probability of
    each choice is known exactly.
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


class Policy(Protocol):
    """Anything that chooses questions."""

    def next(
        self,
        beliefs: Beliefs,
        history: QuestionHistory | None = None,
        annotator: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Question:
        """Choose the next question."""
        ...


class BasePolicy(ABC):
    """Base class of the policies. A policy is its settings; choosing a question changes nothing."""

    name: ClassVar[str]

    def next(
        self,
        beliefs: Beliefs,
        history: QuestionHistory | None = None,
        annotator: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Question:
        """Choose the next question.

        Parameters
        ----------
        beliefs : Beliefs
            Current beliefs.
        history : QuestionHistory, optional
            Questions asked so far, with the rules; nothing asked and no rules by default.
        annotator : str, optional
            The annotator to ask. By default the policy chooses the annotator too.
        rng : numpy.random.Generator, optional
            Source of randomness.

        Returns
        -------
        Question
            With the probability of this choice. The history is not changed: call ``history.add(question)``.

        Raises
        ------
        NothingToAskError
            If no question is left.
        """
        rng = np.random.default_rng() if rng is None else rng
        candidates = CandidateSet(beliefs, history, annotator)
        return candidates.to_question(self.pick(candidates, rng), rng)

    @abstractmethod
    def pick(self, candidates: CandidateSet, rng: np.random.Generator) -> Candidate:
        """Choose one of the candidates."""

    @abstractmethod
    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        """Return the probability that `pick` chooses this pair and annotator."""


class TwoStagePolicy(BasePolicy):
    """A policy that chooses an annotator first, and then a pair for them."""

    annotator_strategy: ClassVar[AnnotatorStrategy]
    pair_strategy: ClassVar[PairStrategy]

    def pick(self, candidates: CandidateSet, rng: np.random.Generator) -> Candidate:
        probabilities = self.annotator_strategy.probabilities(candidates)
        row = int(rng.choice(len(probabilities), p=probabilities))
        annotator = int(candidates.annotators[row])
        first, second, probability = self.pair_strategy.pick(candidates, annotator, rng)
        return Candidate(first, second, annotator, float(probabilities[row]) * probability, self.name)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        probabilities = self.annotator_strategy.probabilities(candidates)
        of_annotator = float(probabilities[candidates.annotators == annotator].sum())
        if not of_annotator:
            return 0.0
        return of_annotator * self.pair_strategy.probability(candidates, first, second, annotator)


@dataclass(frozen=True, kw_only=True)
class Random(TwoStagePolicy):
    """Any pair for any annotator, uniformly at random. The only policy that does not depend on earlier answers.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> beliefs = CrowdBT().start(["a", "b", "c"], ["ann"])
    >>> round(Random().next(beliefs, rng=np.random.default_rng(0)).probability, 3)
    0.333
    """

    name = "random"
    annotator_strategy = UniformAnnotator()
    pair_strategy = UniformPair()


@dataclass(frozen=True, kw_only=True)
class Coverage(TwoStagePolicy):
    """Any annotator, with the items that were asked about least."""

    name = "coverage"
    annotator_strategy = UniformAnnotator()
    pair_strategy = LeastShownPair()


@dataclass(frozen=True, kw_only=True)
class Uncertainty(TwoStagePolicy):
    """Any annotator, with the pair whose order is least certain."""

    name = "uncertainty"
    annotator_strategy = UniformAnnotator()
    pair_strategy = MaxEntropyPair()


@dataclass(frozen=True, kw_only=True)
class BestAnnotatorCoverage(TwoStagePolicy):
    """The annotator who is expected to be most informative, with the items that were asked about least."""

    name = "coverage"
    annotator_strategy = BestAnnotatorStrategy()
    pair_strategy = LeastShownPair()


@dataclass(frozen=True, kw_only=True)
class BestAnnotator(TwoStagePolicy):
    """The annotator who is expected to be most informative, with the pair whose order is least certain.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> beliefs = CrowdBT().start(["a", "b", "c"], ["ann", "bob"])
    >>> beliefs = beliefs.replace(annotator_columns={"alpha": np.array([6.0, 9.0]), "beta": np.array([5.0, 2.0])})
    >>> BestAnnotator().next(beliefs, rng=np.random.default_rng(0)).annotator
    'bob'
    """

    name = "best-annotator"
    annotator_strategy = BestAnnotatorStrategy()
    pair_strategy = MaxEntropyPair()


@dataclass(frozen=True, kw_only=True)
class Thompson(TwoStagePolicy):
    """An annotator chosen by Thompson sampling of their qualities, with the pair whose order is least certain."""

    name = "thompson"
    annotator_strategy = ThompsonAnnotator()
    pair_strategy = MaxEntropyPair()


@dataclass(frozen=True, kw_only=True)
class InformationGain(BasePolicy):
    """The pair and annotator with the largest expected information gain per unit of price (Chen et al. 2013, eq. 10).

    Parameters
    ----------
    exploration : float, default 1.0
        γ: weight of the information about the annotator, relative to that about the items.
    halve_every : float, optional
        Share of the budget after which the exploration is halved, repeatedly; never by default.
    budget : int, optional
        Total number of questions; required by `halve_every`.
    """

    name = "gain"

    exhaustive_up_to: ClassVar[int] = EXHAUSTIVE_UP_TO
    exploration: float = 1.0
    halve_every: float | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.exploration < np.inf:
            raise SettingError(f"exploration must be zero or more, got {self.exploration!r}.")
        if self.halve_every is not None and (not 0 < self.halve_every <= 1 or not self.budget):
            raise SettingError(
                f"halve_every must be a share of the budget between 0 and 1, with the budget set; "
                f"got halve_every={self.halve_every!r}, budget={self.budget!r}."
            )

    def pick(self, candidates: CandidateSet, rng: np.random.Generator) -> Candidate:
        best = self._best(candidates)
        return Candidate(*best[int(rng.integers(len(best)))], 1 / len(best), self.name)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        best = self._best(candidates)
        return float((min(first, second), max(first, second), annotator) in best) / len(best)

    def _best(self, candidates: CandidateSet) -> list[Triplet]:
        exploration = self._current_exploration(candidates)
        key = (self.name, exploration)
        if key not in candidates.cache:
            pool = candidates.history.pool
            if pool is None:
                candidates.cache[key] = _search(candidates, exploration, self.exhaustive_up_to)
            else:
                candidates.cache[key] = _best_of_pool(candidates, pool, exploration)
        best: list[Triplet] = candidates.cache[key]
        return best

    def _current_exploration(self, candidates: CandidateSet) -> float:
        if self.halve_every is None or self.budget is None:
            return self.exploration
        n_asked = int(candidates.history.annotator_counts.sum())
        return float(self.exploration * 0.5 ** (n_asked // max(1, round(self.halve_every * self.budget))))


def _search(candidates: CandidateSet, exploration: float, exhaustive_up_to: int) -> list[Triplet]:
    history = candidates.history
    beliefs = history.fantasized(candidates.beliefs)
    found = best_triplet(
        beliefs, exploration, candidates.annotators, history.prices, candidates.exclusions(), exhaustive_up_to
    )
    if found is None:  # cannot be: every annotator of the candidates has a pair
        raise AssertionError("no pair is left")
    return [(min(found.left, found.right), max(found.left, found.right), found.annotator)]


def _best_of_pool(candidates: CandidateSet, pool: AnswerPool, exploration: float) -> list[Triplet]:
    """Score every remaining answer, and return all that tie for the best."""
    beliefs = candidates.history.fantasized(candidates.beliefs)
    rows = pool.rows(candidates.only_annotator)
    rows = rows[np.isin(pool.annotator[rows], candidates.annotators)]
    first, second, who = pool.first[rows], pool.second[rows], pool.annotator[rows]
    gain = (
        expected_gain(
            beliefs.mean[first] - beliefs.mean[second],
            beliefs.variance[first],
            beliefs.variance[second],
            beliefs.alpha[who],
            beliefs.beta[who],
            exploration,
        )
        / candidates.history.prices[who]
    )
    best: IntArray = np.flatnonzero(gain >= gain.max() * (1 - 1e-12))
    return list(zip(first[best].tolist(), second[best].tolist(), who[best].tolist(), strict=True))


class MixedPolicy(BasePolicy):
    """A random question with probability ε, and the choice of another policy otherwise."""

    epsilon: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"epsilon must lie between 0 and 1, got {self.epsilon}.")

    @abstractmethod
    def greedy(self, candidates: CandidateSet) -> BasePolicy:
        """Return the policy that chooses with probability 1 − ε."""

    def pick(self, candidates: CandidateSet, rng: np.random.Generator) -> Candidate:
        policy = Random() if rng.random() < self.epsilon else self.greedy(candidates)
        first, second, annotator, _, name = policy.pick(candidates, rng)
        return Candidate(first, second, annotator, self.probability(candidates, first, second, annotator), name)

    def probability(self, candidates: CandidateSet, first: int, second: int, annotator: int) -> float:
        at_random = Random().probability(candidates, first, second, annotator)
        greedy = self.greedy(candidates).probability(candidates, first, second, annotator)
        return self.epsilon * at_random + (1 - self.epsilon) * greedy


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(MixedPolicy):
    """The most informative question, except for a share ε drawn at random (Chen et al. 2013, §4).

    Parameters
    ----------
    epsilon : float, default 0.1
        Share of questions drawn at random.
    floor : int, default 0
        How often every item is asked about before questions are chosen by information gain.
    best : BasePolicy, default InformationGain()
        The policy that chooses the other questions.
    """

    name = "epsilon-greedy"

    epsilon: float = 0.1
    floor: int = 0
    best: BasePolicy = field(default_factory=InformationGain)

    def greedy(self, candidates: CandidateSet) -> BasePolicy:
        return self.best if _covered(candidates, self.floor) else Coverage()


@dataclass(frozen=True, kw_only=True)
class Adaptive(MixedPolicy):
    """The default: a random share; every item a few times; then uncertain pairs; for the most informative annotator.

    Parameters
    ----------
    epsilon : float, default 0.1
        Share of questions drawn at random, from which the reliability of the result is measured.
    floor : int, default 6
        How often every item is asked about before pairs are chosen by their uncertainty.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> beliefs = CrowdBT().start(["a", "b", "c"], ["ann", "bob"])
    >>> Adaptive(epsilon=0.2).next(beliefs, annotator="bob", rng=np.random.default_rng(0)).annotator
    'bob'
    """

    name = "adaptive"

    epsilon: float = 0.1
    floor: int = 6

    def greedy(self, candidates: CandidateSet) -> BasePolicy:
        return BestAnnotator() if _covered(candidates, self.floor) else BestAnnotatorCoverage()


def _covered(candidates: CandidateSet, floor: int) -> bool:
    """Whether every askable item was asked about at least `floor` times."""
    return bool((candidates.history.item_counts[candidates.askable_items] >= floor).all())


POLICIES: dict[str, type[BasePolicy]] = {
    policy.name: policy
    for policy in (Adaptive, BestAnnotator, Thompson, InformationGain, EpsilonGreedy, Uncertainty, Coverage, Random)
}
"""All policies, by the name that their questions carry."""


def by_name(name: str) -> type[BasePolicy]:
    """Return the policy of this name.

    Examples
    --------
    >>> by_name("gain")(exploration=5.0)
    InformationGain(exploration=5.0, halve_every=None, budget=None)
    """
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES)
    return POLICIES[name]


def batch(
    policy: Policy,
    beliefs: Beliefs,
    history: QuestionHistory,
    count: int,
    rng: np.random.Generator,
    annotator: str | None = None,
) -> Iterator[Question]:
    """Choose several questions at once and add them to the history.

    Each question is chosen as if those before it were pending: two annotators do not get the same pair at the same
    time while other pairs are left, and policies that predict the information in an answer count the pending ones.

    Parameters
    ----------
    policy : Policy
        The policy that chooses.
    beliefs : Beliefs
        Current beliefs.
    history : QuestionHistory
        Questions asked so far; the new ones are added.
    count : int
        Number of questions. Fewer are returned if no more are left.
    rng : numpy.random.Generator
        Source of randomness.
    annotator : str, optional
        Ask this annotator only.

    Yields
    ------
    Question
    """
    for _ in range(count):
        try:
            question = policy.next(beliefs, history, annotator, rng)
        except NothingToAskError:
            return
        history.add(question)
        yield question
