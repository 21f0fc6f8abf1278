"""The next question for the one who asks for it. It only looks: what was chosen is put by storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
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
from crowdrank.server.projection import Live, Person
from crowdrank.server.settings import Asking
from crowdrank.storage import Pending

GOLD, REPEAT = "gold", "repeat"
_FEW_TO_REPEAT = 5
"""Answers before someone is asked one of them again."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Two items by their numbers, as they are to be shown."""

    left: int
    right: int
    policy: str
    probability: float
    """Of this pair, whichever item is on the left."""
    gold: int | None = None
    """The item that is known to be better."""


class Outlook:
    """The questions that are out, and what will be believed once they are answered: the same for all who are asked now.

    What is chosen for one of them is added, so that the next is not sent the same.
    """

    def __init__(self, live: Live, pending: Iterable[Pending]) -> None:
        with live.lock:
            self._live, self.out = live, list(pending)
            self.triplets: list[Triplet] = []
            self.beliefs = whole = live.beliefs
            self._variance, self._alpha, self._beta = whole.variance.copy(), whole.alpha.copy(), whole.beta.copy()
            self._expect(self.out)

    @property
    def fantasized(self) -> Beliefs:
        whole = self.beliefs
        return whole.replace(
            item_columns={**whole.item_columns, "variance": self._variance.copy()},
            annotator_columns={**whole.annotator_columns, "alpha": self._alpha.copy(), "beta": self._beta.copy()},
        )

    def add(self, pending: Pending) -> None:
        self.out.append(pending)
        self._expect([pending])

    def _expect(self, pending: list[Pending]) -> None:
        fresh = [self._triplet(one) for one in pending]
        self.triplets += fresh
        if fresh:
            fantasize(np.array(fresh, np.int64), self.beliefs.mean, self._variance, self._alpha, self._beta)

    def without(self, annotator: int) -> Outlook:
        """As it is for someone who will not answer what they were asked last."""
        others = [one for one in self.out if one.annotator != annotator]
        return self if len(others) == len(self.out) else Outlook(self._live, others)

    def _triplet(self, one: Pending) -> Triplet:
        i, j = sorted(self._live.items[item].code for item in (one.left, one.right))
        return i, j, self._live.people[one.annotator].code


def choose(live: Live, person: Person, pending: Iterable[Pending] | Outlook, rng: np.random.Generator) -> Chosen:
    """A question that teaches most, or one of the shares that keep the rest honest.

    Raises NothingToAskError where no pair is left for this person.
    """
    with live.lock:
        asking, codes = live.settings.asking, _askable(live, person)
        gold, again = _gold_left(live, person, codes), _to_repeat(live, person, codes)
        shares = {
            GOLD: asking.gold_share if len(gold) else 0.0,
            REPEAT: asking.repeat_share if len(again) >= _FEW_TO_REPEAT else 0.0,
        }
        dice = rng.random()
        if dice < shares[GOLD]:
            better, worse = gold[int(rng.integers(len(gold)))]
            return _shown(live, person, better, worse, GOLD, shares[GOLD] / len(gold), rng, gold=better)
        if dice < shares[GOLD] + shares[REPEAT]:
            one, other = again[int(rng.integers(len(again)))]
            return _shown(live, person, one, other, REPEAT, shares[REPEAT] / len(again), rng)
        policy = _policy(asking)
        outlook = pending if isinstance(pending, Outlook) else Outlook(live, pending)
        part = _Part(live, person, codes, outlook.without(person.id))
    # from here on nothing changes any more that is looked at: others may choose meanwhile
    choice = part.pick(policy, rng)
    with live.lock:
        left_over = 1 - shares[GOLD] - shares[REPEAT]
        one, other = int(codes[choice.first]), int(codes[choice.second])
        return _shown(live, person, one, other, choice.policy, choice.probability * left_over, rng)


class _Part:
    """What one person may be asked about, in codes of its own: hidden items and their own are not in it."""

    def __init__(self, live: Live, person: Person, codes: IntArray, outlook: Outlook) -> None:
        self.beliefs, self.fantasized = (_of(whole, codes, person) for whole in (outlook.beliefs, outlook.fantasized))
        self.name, self.seen = person.name, live.seen[codes]
        self.had = np.fromiter(person.had, np.int64, len(person.had))
        out = np.array(outlook.triplets, np.int64).reshape(-1, 3)[:, :2].T
        if len(codes) < len(outlook.beliefs.items):
            place = np.full(len(outlook.beliefs.items), -1)
            place[codes] = np.arange(len(codes))
            out, (one, other) = place[out], place[np.stack((self.had // 2**32, self.had % 2**32))]
            out = out[:, (out >= 0).all(axis=0)]
            self.had = pack_pair(one, other)[(one >= 0) & (other >= 0)]
        self.had.sort()
        self.out = np.sort(out, axis=0)
        """Pairs that others hold, the smaller code first."""

    def pick(self, policy: BasePolicy, rng: np.random.Generator) -> Candidate:
        """Two items, how likely they were, and what chose them."""
        return policy.pick(CandidateSet(self.beliefs, _Ledger(self), self.name), rng)


class _Ledger(QuestionHistory):
    """The ledger of a part. Others stand in it only by the questions that they hold."""

    def __init__(self, part: _Part) -> None:
        super().__init__(part.beliefs)
        self.item_counts = part.seen + np.bincount(part.out.ravel(), minlength=len(part.seen))
        self.pending = Counter((i, j, EVERYONE) for i, j in part.out.T.tolist())  # of whom does not matter here
        self._me, self._mine = part.beliefs.annotators.index(part.name, kind="annotator"), part.had
        self._foreseen = part.fantasized
        self.annotator_counts[self._me] = len(part.had)

    def asked_pairs(self, annotator: int) -> IntArray:
        return self._mine if annotator == self._me else np.zeros(0, np.int64)

    def fantasized(self, beliefs: Beliefs) -> Beliefs:
        return self._foreseen


def _of(whole: Beliefs, codes: IntArray, person: Person) -> Beliefs:
    """What is believed of some items and one person."""
    every = len(codes) == len(whole.items)
    return Beliefs(
        items=whole.items if every else _roll(whole.items, codes.tobytes()),
        annotators=_roll_of(person.name),
        item_columns={name: column if every else column[codes] for name, column in whole.item_columns.items()},
        annotator_columns={name: column[[person.code]] for name, column in whole.annotator_columns.items()},
    )


@lru_cache(maxsize=4096)
def _roll_of(name: str) -> Vocabulary:
    return Vocabulary.of([name])


def _askable(live: Live, person: Person) -> IntArray:
    """Items that are shown, and are not this person's own, in codes."""
    kept = np.ones(len(live.items), bool)
    kept[list(live.hidden | live.owned.get(person.name, set()))] = False
    codes = np.flatnonzero(kept)
    if len(codes) < 2:
        raise NothingToAskError("There are no two items to compare.")
    return codes


@lru_cache(maxsize=256)
def _roll(items: Vocabulary, codes: bytes) -> Vocabulary:
    rows = np.frombuffer(codes, np.int64)
    return Vocabulary(tuple(items.labels[n] for n in rows), tuple(items.queries[n] for n in rows))


class _Searched(InformationGain):
    """By the compiled search from the first pair on: a server has it compiled anyway."""

    exhaustive_up_to = 0


def _policy(asking: Asking) -> BasePolicy:
    kind: Any = by_name(asking.policy)
    if kind is InformationGain:
        return _Searched()
    told = {"epsilon": asking.random_share, "floor": asking.floor, "best": _Searched()}
    chooser: BasePolicy = kind(**{f.name: told[f.name] for f in fields(kind) if f.name in told})
    return chooser


def _gold_left(live: Live, person: Person, codes: IntArray) -> list[tuple[int, int]]:
    """Gold pairs that this person has not had, the better item first, in codes."""
    if not live.settings.gold:
        return []
    by_label: dict[str, list[int]] = {}
    for thing in live.items.values():
        by_label.setdefault(thing.label, []).append(thing.code)
    askable, queries = set(codes.tolist()), live.folding.items.queries
    return [
        (better, worse)
        for good, bad in live.settings.gold
        for better in by_label.get(good, ())
        for worse in by_label.get(bad, ())
        if queries[better] == queries[worse]
        and {better, worse} <= askable
        and pack_pair(better, worse) not in person.had
    ]


def _to_repeat(live: Live, person: Person, codes: IntArray) -> list[tuple[int, int]]:
    """Pairs that this person decided on, once, some questions ago."""
    if not live.settings.asking.repeat_share or len(person.votes) <= _FEW_TO_REPEAT:
        return []
    folding, askable = live.folding, set(codes.tolist())
    rows = person.votes[:-_FEW_TO_REPEAT]
    pairs = [(int(folding.left[row]), int(folding.right[row])) for row in rows if folding.counts[row]]
    times = Counter(tuple(sorted(pair)) for pair in pairs)
    return [pair for pair in pairs if times[tuple(sorted(pair))] == 1 and set(pair) <= askable]


def _shown(
    live: Live,
    person: Person,
    one: int,
    other: int,
    policy: str,
    probability: float,
    rng: np.random.Generator,
    gold: int | None = None,
) -> Chosen:
    """On sides that even out, for this person, how often each item was on either; by lot where they are even."""
    lean = person.leaning[one] - person.leaning[other]
    swap = rng.random() < 0.5 if lean == 0 else lean > 0
    left, right = (other, one) if swap else (one, other)
    ids = live.ids
    return Chosen(
        left=ids[left],
        right=ids[right],
        policy=policy,
        probability=probability,
        gold=None if gold is None else ids[gold],
    )
