"""Choose the next pair for an annotator. Read-only: storage writes the assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from crowdrank.active.candidates import Candidate, CandidateSet
from crowdrank.active.concurrent_choice import ConcurrentChoice
from crowdrank.active.gain_formulas import expected_gain
from crowdrank.active.information_gain import query_blocks
from crowdrank.active.policies import BasePolicy, InformationGain, by_name
from crowdrank.active.questions import EVERYONE, QuestionHistory, pack_pair
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import NothingToAskError
from crowdrank.online import Beliefs, Vocabulary
from crowdrank.online.moments import Triplet, fantasize
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator, OpenAssignment
from crowdrank.server.settings import QuestionSettings
from crowdrank.storage import SKIPPED, PendingPair, Question

GOLD, REPEAT, SWAPPED = "gold", "repeat", "swapped"
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
            self.holders = Counter(question.annotator for question in self.questions)
            self.triplets: list[Triplet] = []
            self.beliefs = beliefs = projection.beliefs
            self._variance, self._alpha, self._beta = (
                column.copy() for column in (beliefs.variance, beliefs.alpha, beliefs.beta)
            )
            self._choices: dict[bytes, tuple[IntArray | None, ConcurrentChoice]] = {}
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
        self.holders[question.annotator] += 1
        for first, second, _ in self._anticipate([question]):
            for new_code, choice in self._choices.values():
                one, other = (first, second) if new_code is None else new_code[[first, second]].tolist()
                if one >= 0 and other >= 0:
                    choice.add(one, other, (self._variance[first], self._variance[second]))

    def without(self, annotator: int) -> PendingState:
        """Return the state for an annotator whose own open assignment will be replaced."""
        if not self.holders[annotator]:
            return self
        return PendingState(self._projection, [one for one in self.questions if one.annotator != annotator])

    def item_counts(self) -> IntArray:
        """Return in how many open assignments each item is, by code."""
        codes = [self._projection.items[item].code for question in self.questions for item in question.items]
        return np.bincount(np.array(codes, np.int64), minlength=len(self._projection.items))

    def choose(
        self, annotator: Annotator, codes: IntArray, settings: QuestionSettings, rng: np.random.Generator
    ) -> Candidate | None:
        """Choose a pair with arrays that all annotators share; None if the policy must look at this one's pairs.

        The candidate has the positions of its items among `codes`.
        """
        shares = _EPSILON_GREEDY.get(settings.policy)
        if shares is None:
            return None
        epsilon, floor = shares(settings)
        new_code, choice = self._choice(codes)
        packed = annotator.answered_array()
        answered = np.stack((packed >> 32, packed & 0xFFFFFFFF))
        if new_code is not None:
            answered = new_code[answered]
            answered = answered[:, (answered >= 0).all(axis=0)]
        quality = (float(self._alpha[annotator.code]), float(self._beta[annotator.code]))
        return choice.choose(answered, quality, epsilon, floor, rng)

    def _choice(self, codes: IntArray) -> tuple[IntArray | None, ConcurrentChoice]:
        """Return the choice among these items, and their positions by code; None if they are all items."""
        beliefs = self.beliefs
        is_complete = len(codes) == len(beliefs.items)
        key = b"" if is_complete else codes.tobytes()
        if key not in self._choices:
            items = beliefs.items if is_complete else _restrict_items(beliefs.items, key)
            pending = np.array(self.triplets, np.int64).reshape(-1, 3)[:, :2].T
            counts = self._projection.appearances + np.bincount(pending.ravel(), minlength=len(beliefs.items))
            new_code = None
            if not is_complete:
                new_code = np.full(len(beliefs.items), -1)
                new_code[codes] = np.arange(len(codes))
                pending = new_code[pending]
                pending = pending[:, (pending >= 0).all(axis=0)]
            of_items = (beliefs.mean[codes], self._variance[codes], counts[codes])
            self._choices[key] = (new_code, ConcurrentChoice(query_blocks(items), *of_items, pending))
        return self._choices[key]

    def _anticipate(self, questions: list[Pending]) -> list[Triplet]:
        new = [triplet for question in questions for triplet in self._triplets(question)]
        self.triplets += new
        if new:
            fantasize(np.array(new, np.int64), self.beliefs.mean, self._variance, self._alpha, self._beta)
        return new

    def _triplets(self, question: Pending) -> list[Triplet]:
        """Return the comparisons that the answer will contain: of a larger set, those of neighbours."""
        codes = [self._projection.items[item].code for item in question.items]
        who = self._projection.annotators[question.annotator].code
        return [(min(pair), max(pair), who) for pair in pairwise(codes)]


_EPSILON_GREEDY: dict[str, Callable[[QuestionSettings], tuple[float, int]]] = {
    "epsilon-greedy": lambda settings: (settings.random_share, settings.min_appearances),
    "gain": lambda _: (0.0, 0),
    "coverage": lambda _: (0.0, 2**62),
    "random": lambda _: (1.0, 2**62),
}
"""Policies that are cases of one: their random share, and how often every item is shown first."""


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
        state = pending if isinstance(pending, PendingState) else PendingState(projection, pending)
        state = state.without(annotator.id)
        choice = state.choose(annotator, codes, settings, rng)
        view = None if choice is not None else AnnotatorView(projection, annotator, codes, state)
    if choice is None and view is not None:
        # The view is a copy, so the search runs without the lock and others can choose at the same time.
        choice = view.pick(policy_of(settings), rng)
    assert choice is not None
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
        self.answered = annotator.answered_array()
        pending = np.array(state.triplets, np.int64).reshape(-1, 3)[:, :2].T
        if len(codes) < len(state.beliefs.items):
            new_code = np.full(len(state.beliefs.items), -1)
            new_code[codes] = np.arange(len(codes))
            pending = new_code[pending]
            one, other = new_code[np.stack((self.answered // 2**32, self.answered % 2**32))]
            pending = pending[:, (pending >= 0).all(axis=0)]
            self.answered = pack_pair(one, other)[(one >= 0) & (other >= 0)]
        self.answered = np.sort(self.answered)
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
    left_out = projection.hidden | projection.owned.get(annotator.name, set())
    codes = np.arange(len(projection.items))
    if left_out:
        codes = np.delete(codes, list(left_out))
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


# Draw the next question of any task for an annotator. Read-only: storage writes the assignment.
#
# Pairs are chosen as `choice.py` says. Larger sets start with such a pair and grow by the items with the largest
# expected information gain beside it. Items to rate are those that were rated least. Some questions are random, as
# for pairs.

RANDOM, COVERAGE = "random", "coverage"


@dataclass(frozen=True, kw_only=True)
class DrawnQuestion:
    """A question as it is to be asked.

    Parameters
    ----------
    question : Question
    policy : str
        What chose the items.
    probability : float
        The probability of the item, or of the pair from which a larger set was built.
    gold : int or None
        The item known to be better; None if unknown.
    """

    question: Question
    policy: str
    probability: float
    gold: int | None = None


def draw(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw a question of the task of the settings. Raises NothingToAskError if none is left for this annotator.

    A language model sees every pair in both orders, one after the other: this shows whether it contradicts itself, and
    its preference for a side cancels out.
    """
    swapped = _swapped(projection, annotator) if annotator.is_model else None
    if swapped is not None:
        return swapped
    return _DRAW.get(projection.settings.task.type, _draw_set)(projection, annotator, pending, rng)


def _swapped(projection: Projection, annotator: Annotator) -> DrawnQuestion | None:
    """Return the pair that the annotator decided last with its sides swapped; None if it was swapped already."""
    with projection.lock:
        last = annotator.votes[-1] if annotator.votes else None
        if last is None or projection.vote_policies[last] == SWAPPED:
            return None
        if projection.votes.outcome[last] == SKIPPED or projection.is_withdrawn(last):
            return None
        task = projection.task_votes.get(last)
        codes = int(projection.votes.right[last]), int(projection.votes.left[last])
        if not (task is None or task.question.is_pair) or projection.hidden & set(codes):
            return None
        left, right = (projection.item_ids[code] for code in codes)
        gold = projection.vote_gold[last] or None
        question = Question(items=(left, right), criteria=projection.settings.task.criteria)
    return DrawnQuestion(question=question, policy=SWAPPED, probability=1.0, gold=gold)


def _draw_pair(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    pair = choose_pair(projection, annotator, pending, rng)
    question = Question(items=(pair.left, pair.right), criteria=projection.settings.task.criteria)
    return DrawnQuestion(question=question, policy=pair.policy, probability=pair.probability, gold=pair.gold)


def _draw_rating(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw an item that the annotator has not rated: one of those with the fewest ratings, or any."""
    with projection.lock:
        codes = available_items(projection, annotator, minimum=1)
        codes = codes[~np.isin(codes, list(annotator.answered_items))]
        if not len(codes):
            raise NothingToAskError("This annotator has rated all items.")
        counts = (projection.appearances + pending.without(annotator.id).item_counts())[codes]
        task, ids = projection.settings.task, projection.item_ids
    share = projection.settings.questions.random_share
    least = codes[counts == counts.min()]
    policy = RANDOM if rng.random() < share else COVERAGE
    code = int(rng.choice(codes if policy == RANDOM else least))
    probability = share / len(codes) + (1 - share) * float(code in least) / len(least)
    question = Question(task="rating", items=(ids[code],), grades=len(task.scale), criteria=task.criteria)
    return DrawnQuestion(question=question, policy=policy, probability=probability)


def _draw_set(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw a pair that the annotator has not seen together, and add items to it."""
    with projection.lock:
        settings, codes = projection.settings, available_items(projection, annotator)
        view = AnnotatorView(projection, annotator, codes, pending.without(annotator.id))
        ids = projection.item_ids
    pair = view.pick(policy_of(settings.questions), rng)
    chosen = _extend(view, [pair.first, pair.second], settings.task.size, pair.policy == RANDOM, rng)
    items = tuple(ids[int(codes[code])] for code in rng.permutation(chosen))
    question = Question(task=settings.task.type, items=items, criteria=settings.task.criteria)
    return DrawnQuestion(question=question, policy=pair.policy, probability=pair.probability)


def _extend(view: AnnotatorView, chosen: list[int], size: int, at_random: bool, rng: np.random.Generator) -> list[int]:
    """Add items of the same query until there are `size`: at random, or those with the largest expected gain.

    Items that were shown the least come first while some were not shown at all.
    """
    query = view.beliefs.items.query
    others = rng.permutation(np.flatnonzero((query == query[chosen[0]]) & ~np.isin(np.arange(len(query)), chosen)))
    gain = np.zeros(len(others))
    for code in chosen:
        gain += _gains(view, code, others)
    new = (view.appearances[others] == 0) * 1e9
    while len(chosen) < size and len(others):
        best = 0 if at_random else int(np.argmax(gain + new))
        chosen = [*chosen, int(others[best])]
        kept = np.arange(len(others)) != best
        others, gain, new = others[kept], gain[kept], new[kept]
        gain += _gains(view, chosen[-1], others)
    return chosen


def _gains(view: AnnotatorView, code: int, others: IntArray) -> FloatArray:
    """Return the expected information gain of comparing an item with each of the others."""
    beliefs = view.expected_beliefs
    one = np.full(len(others), code)
    return np.asarray(
        expected_gain(
            beliefs.mean[one] - beliefs.mean[others],
            beliefs.variance[one],
            beliefs.variance[others],
            beliefs.alpha[np.zeros(len(others), np.int64)],
            beliefs.beta[np.zeros(len(others), np.int64)],
            1.0,
        )
    )


_DRAW: dict[str, Callable[[Projection, Annotator, PendingState, np.random.Generator], DrawnQuestion]] = {
    "pair": _draw_pair,
    "rating": _draw_rating,
}
