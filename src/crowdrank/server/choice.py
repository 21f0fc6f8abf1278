"""Choose the next pair for an annotator. Read-only: storage writes the assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.active.candidates import Candidate, CandidateSet
from crowdrank.active.history import QuestionHistory, pack_pair
from crowdrank.active.policies import BasePolicy, InformationGain, by_name
from crowdrank.active.questions import EVERYONE
from crowdrank.arrays import IntArray
from crowdrank.errors import NothingToAskError
from crowdrank.online import Beliefs, Vocabulary
from crowdrank.online.moments import Triplet, fantasize
from crowdrank.server.projection import Annotator, OpenAssignment, Projection
from crowdrank.server.settings import QuestionSettings
from crowdrank.storage import PendingPair

GOLD, REPEAT = "gold", "repeat"
Pending = OpenAssignment | PendingPair
_REPEAT_DISTANCE = 5
"""Votes between a question and its repetition, at least."""


@dataclass(frozen=True, kw_only=True)
class ChosenPair:
    """A pair of items, as it is to be shown.

    Parameters
    ----------
    left, right : int
        The ids of the items.
    policy : str
        The policy that chose the pair.
    probability : float
        The probability of this pair, whichever item is on the left.
    gold : int or None
        The item known to be better; None if unknown.
    """

    left: int
    right: int
    policy: str
    probability: float
    gold: int | None = None


class PendingState:
    """The open assignments, and the beliefs expected once they are answered.

    All annotators who are served together share it. A question that is chosen for one of them is added, so that the
    next one is asked something else.
    """

    def __init__(self, projection: Projection, pending: Iterable[Pending]) -> None:
        with projection.lock:
            self._projection, self.questions = projection, list(pending)
            self.triplets: list[Triplet] = []
            self.beliefs = beliefs = projection.beliefs
            self._variance, self._alpha, self._beta = (
                column.copy() for column in (beliefs.variance, beliefs.alpha, beliefs.beta)
            )
            self._anticipate(self.questions)

    @property
    def expected_beliefs(self) -> Beliefs:
        """The beliefs with the variances that they are expected to have after the open assignments."""
        beliefs = self.beliefs
        return beliefs.replace(
            item_columns={**beliefs.item_columns, "variance": self._variance.copy()},
            annotator_columns={**beliefs.annotator_columns, "alpha": self._alpha.copy(), "beta": self._beta.copy()},
        )

    def add(self, question: Pending) -> None:
        self.questions.append(question)
        self._anticipate([question])

    def without(self, annotator: int) -> PendingState:
        """Return the state for an annotator whose own open assignment will be replaced."""
        others = [question for question in self.questions if question.annotator != annotator]
        return self if len(others) == len(self.questions) else PendingState(self._projection, others)

    def item_counts(self) -> IntArray:
        """Return in how many open assignments each item is, by code."""
        codes = [self._projection.items[item].code for question in self.questions for item in question.items]
        return np.bincount(np.array(codes, np.int64), minlength=len(self._projection.items))

    def _anticipate(self, questions: list[Pending]) -> None:
        new = [triplet for question in questions for triplet in self._triplets(question)]
        self.triplets += new
        if new:
            fantasize(np.array(new, np.int64), self.beliefs.mean, self._variance, self._alpha, self._beta)

    def _triplets(self, question: Pending) -> list[Triplet]:
        """Return the comparisons that the answer will contain: of a larger set, those of neighbours."""
        codes = [self._projection.items[item].code for item in question.items]
        who = self._projection.annotators[question.annotator].code
        return [(min(pair), max(pair), who) for pair in pairwise(codes)]


def choose_pair(
    projection: Projection,
    annotator: Annotator,
    pending: Iterable[Pending] | PendingState,
    rng: np.random.Generator,
) -> ChosenPair:
    """Choose a pair: gold, a repetition, or whatever the policy of the settings picks.

    Raises NothingToAskError if no pair is left for this annotator.
    """
    with projection.lock:
        settings, codes = projection.settings.questions, available_items(projection, annotator)
        gold, repeats = _unasked_gold(projection, annotator, codes), _repeatable(projection, annotator, codes)
        gold_share = settings.gold_share if len(gold) else 0.0
        repeat_share = settings.repeat_share if len(repeats) >= _REPEAT_DISTANCE else 0.0
        draw = rng.random()
        if draw < gold_share:
            better, worse = gold[int(rng.integers(len(gold)))]
            return _place(projection, annotator, better, worse, GOLD, gold_share / len(gold), rng, gold=better)
        if draw < gold_share + repeat_share:
            one, other = repeats[int(rng.integers(len(repeats)))]
            return _place(projection, annotator, one, other, REPEAT, repeat_share / len(repeats), rng)
        policy = policy_of(settings)
        state = pending if isinstance(pending, PendingState) else PendingState(projection, pending)
        view = AnnotatorView(projection, annotator, codes, state.without(annotator.id))
    # The view is a copy, so the search runs without the lock and others can choose at the same time.
    choice = view.pick(policy, rng)
    with projection.lock:
        probability = choice.probability * (1 - gold_share - repeat_share)
        one, other = int(codes[choice.first]), int(codes[choice.second])
        return _place(projection, annotator, one, other, choice.policy, probability, rng)


class AnnotatorView:
    """The items that one annotator may be asked about, with their own codes: hidden and own items are left out."""

    def __init__(self, projection: Projection, annotator: Annotator, codes: IntArray, state: PendingState) -> None:
        self.beliefs, self.expected_beliefs = (
            _restrict(beliefs, codes, annotator) for beliefs in (state.beliefs, state.expected_beliefs)
        )
        self.name, self.appearances = annotator.name, projection.appearances[codes]
        self.answered = np.fromiter(annotator.answered_pairs, np.int64, len(annotator.answered_pairs))
        pending = np.array(state.triplets, np.int64).reshape(-1, 3)[:, :2].T
        if len(codes) < len(state.beliefs.items):
            new_code = np.full(len(state.beliefs.items), -1)
            new_code[codes] = np.arange(len(codes))
            pending = new_code[pending]
            one, other = new_code[np.stack((self.answered // 2**32, self.answered % 2**32))]
            pending = pending[:, (pending >= 0).all(axis=0)]
            self.answered = pack_pair(one, other)[(one >= 0) & (other >= 0)]
        self.answered.sort()
        self.pending = np.sort(pending, axis=0)  # pairs held by others, the smaller code first

    def pick(self, policy: BasePolicy, rng: np.random.Generator) -> Candidate:
        return policy.pick(CandidateSet(self.beliefs, _AnnotatorHistory(self), self.name), rng)


class _AnnotatorHistory(QuestionHistory):
    """The question history of one view. Other annotators appear in it only by the pairs they hold."""

    def __init__(self, view: AnnotatorView) -> None:
        super().__init__(view.beliefs)
        self.item_counts = view.appearances + np.bincount(view.pending.ravel(), minlength=len(view.appearances))
        self.pending = Counter((i, j, EVERYONE) for i, j in view.pending.T.tolist())  # annotators do not matter here
        self._me, self._mine = view.beliefs.annotators.index(view.name, kind="annotator"), view.answered
        self._expected = view.expected_beliefs
        self.annotator_counts[self._me] = len(view.answered)

    def asked_pairs(self, annotator: int) -> IntArray:
        return self._mine if annotator == self._me else np.zeros(0, np.int64)

    def fantasized(self, beliefs: Beliefs) -> Beliefs:
        return self._expected


def _restrict(beliefs: Beliefs, codes: IntArray, annotator: Annotator) -> Beliefs:
    """Return the beliefs about some items and one annotator."""
    is_complete = len(codes) == len(beliefs.items)
    return Beliefs(
        items=beliefs.items if is_complete else _restrict_items(beliefs.items, codes.tobytes()),
        annotators=_single_annotator(annotator.name),
        item_columns={name: column if is_complete else column[codes] for name, column in beliefs.item_columns.items()},
        annotator_columns={name: column[[annotator.code]] for name, column in beliefs.annotator_columns.items()},
    )


@lru_cache(maxsize=4096)
def _single_annotator(name: str) -> Vocabulary:
    return Vocabulary.of([name])


@lru_cache(maxsize=256)
def _restrict_items(items: Vocabulary, codes: bytes) -> Vocabulary:
    rows = np.frombuffer(codes, np.int64)
    return Vocabulary(tuple(items.labels[n] for n in rows), tuple(items.queries[n] for n in rows))


def available_items(projection: Projection, annotator: Annotator, minimum: int = 2) -> IntArray:
    """Return the codes of items that are not hidden and not the annotator's own."""
    available = np.ones(len(projection.items), bool)
    available[list(projection.hidden | projection.owned.get(annotator.name, set()))] = False
    codes = np.flatnonzero(available)
    if len(codes) < minimum:
        raise NothingToAskError(f"There are fewer than {minimum} items to ask about.")
    return codes


class _CompiledInformationGain(InformationGain):
    """Uses the compiled search from the first pair on, because a server compiles it at start-up anyway."""

    exhaustive_up_to = 0


@lru_cache(maxsize=16)
def policy_of(settings: QuestionSettings) -> BasePolicy:
    kind: Any = by_name(settings.policy)
    if kind is InformationGain:
        return _CompiledInformationGain()
    values = {
        "epsilon": settings.random_share,
        "floor": settings.min_appearances,
        "best": _CompiledInformationGain(),
    }
    policy: BasePolicy = kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})
    return policy


def _unasked_gold(projection: Projection, annotator: Annotator, codes: IntArray) -> list[tuple[int, int]]:
    """Return the gold pairs that the annotator has not answered, as codes, the better item first."""
    if not projection.settings.gold:
        return []
    by_label: dict[str, list[int]] = {}
    for item in projection.items.values():
        by_label.setdefault(item.label, []).append(item.code)
    available, queries = set(codes.tolist()), projection.votes.items.queries
    return [
        (better, worse)
        for good, bad in projection.settings.gold
        for better in by_label.get(good, ())
        for worse in by_label.get(bad, ())
        if queries[better] == queries[worse]
        and {better, worse} <= available
        and pack_pair(better, worse) not in annotator.answered_pairs
    ]


def _repeatable(projection: Projection, annotator: Annotator, codes: IntArray) -> list[tuple[int, int]]:
    """Return the pairs that the annotator decided exactly once, some questions ago."""
    if not projection.settings.questions.repeat_share or len(annotator.votes) <= _REPEAT_DISTANCE:
        return []
    votes, available = projection.votes, set(codes.tolist())
    rows = annotator.votes[:-_REPEAT_DISTANCE]
    pairs = [(int(votes.left[row]), int(votes.right[row])) for row in rows if votes.counts[row]]
    times = Counter(tuple(sorted(pair)) for pair in pairs)
    return [pair for pair in pairs if times[tuple(sorted(pair))] == 1 and set(pair) <= available]


def _place(
    projection: Projection,
    annotator: Annotator,
    one: int,
    other: int,
    policy: str,
    probability: float,
    rng: np.random.Generator,
    gold: int | None = None,
) -> ChosenPair:
    """Choose the sides, so that this annotator sees each item equally often on both; at random if they are even."""
    surplus = annotator.left_surplus[one] - annotator.left_surplus[other]
    swap = rng.random() < 0.5 if surplus == 0 else surplus > 0
    left, right = (other, one) if swap else (one, other)
    ids = projection.item_ids
    return ChosenPair(
        left=ids[left],
        right=ids[right],
        policy=policy,
        probability=probability,
        gold=None if gold is None else ids[gold],
    )
