"""What was asked so far, of whom, and which answers are awaited."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from crowdrank.active.exclusions import Excluded
from crowdrank.active.pending import Triplet, expecting
from crowdrank.active.question import Question, Rules
from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import DataError
from crowdrank.online import Beliefs, Roll


def packed(one: Any, other: Any) -> Any:
    """A pair as one number, whichever item is named first; pairs in their order have numbers in theirs."""
    return np.minimum(one, other) * 2**32 + np.maximum(one, other)


class Asked:
    """A ledger: questions are noted when they are put, and settled when the beliefs have heard the answer.

    Not before: a pair whose answer has come, but changed no belief yet, would look as worth asking as ever. The ledger
    is kept in the codes of the beliefs that questions are chosen by, which never change.
    """

    def __init__(self, beliefs: Beliefs, rules: Rules | None = None, comparisons: Comparisons | None = None) -> None:
        self.rules = Rules() if rules is None else rules
        self.waiting: Counter[Triplet] = Counter()
        """Whose answers the beliefs await."""
        self.seen = self.load = np.zeros(0, np.int64)
        """How often each item was asked about, and each annotator asked."""
        self.pool: Pool | None = None
        self._had: dict[int, Counter[int]] = defaultdict(Counter)
        self._kept: dict[int, IntArray] = {}
        self.items, self.annotators = beliefs.items, beliefs.annotators
        self._read_rules()
        self.follow(beliefs)
        self.pool = None if self.rules.pool is None else Pool(*self._triplets(self.rules.pool))
        if comparisons is not None:
            self.take_in(comparisons)

    def follow(self, beliefs: Beliefs) -> None:
        """Items and annotators that joined the beliefs join here."""
        self.items, self.annotators = beliefs.items, beliefs.annotators
        if len(self.items) > len(self.seen) or len(self.annotators) > len(self.load):
            self.seen, self.load = _longer(self.seen, len(self.items)), _longer(self.load, len(self.annotators))
            self._read_rules()

    def _read_rules(self) -> None:
        self.prices, self.quotas, self.present = self.rules.of(self.annotators)
        self.own = self._own_items()
        """Items that an annotator must not judge, by the annotator's code."""

    def _own_items(self) -> dict[int, IntArray]:
        found = {}
        for name, labels in self.rules.own.items():
            if (who := self.annotators.find(name)) is not None:
                names = set(map(str, labels))
                found[who] = np.flatnonzero([label in names for label in self.items.labels])
        return found

    @property
    def spent(self) -> float:
        """What all that was asked costs."""
        return float(self.load @ self.prices)

    def take_in(self, comparisons: Comparisons) -> None:
        """Judgments that were made before, of items and annotators that the beliefs know."""
        triplets = np.stack(self._triplets(comparisons), axis=1)
        for (i, j, k), times in zip(*_counted(triplets), strict=True):
            self._count((i, j, k), times)

    def _triplets(self, comparisons: Comparisons) -> tuple[IntArray, IntArray, IntArray]:
        anonymous = comparisons.annotator is None
        people = self.annotators.codes(Roll.of([""] if anonymous else comparisons.annotators))
        pair = self.items.codes(Roll.of(comparisons.items))[np.stack((comparisons.left, comparisons.right))]
        speaker = np.zeros(len(comparisons), int) if comparisons.annotator is None else comparisons.annotator
        one, other = np.sort(pair, axis=0).astype(np.int64)
        return one, other, people[speaker].astype(np.int64)

    def note(self, question: Question) -> None:
        """The question was put: an answer is awaited."""
        triplet = self._codes(question)
        self.waiting[triplet] += 1
        self._count(triplet, 1)

    def settle(self, question: Question, withdrawn: bool = False) -> None:
        """The beliefs have heard its answer, or it will never be answered: nobody waits for it any more."""
        triplet = self._codes(question)
        if not self.waiting[triplet]:
            pair = f"{question.left!r} and {question.right!r}"
            raise DataError(f"No answer of {question.annotator!r} on {pair} is awaited.")
        self.waiting[triplet] -= 1
        self.waiting += Counter()  # drops what is zero
        if withdrawn:
            self._count(triplet, -1)

    def had_by(self, annotator: int) -> IntArray:
        """Pairs that were put to an annotator, and must not be again, packed and sorted; none where they may be."""
        if annotator not in self._kept:
            had = () if self.rules.repeats else (pair for pair, times in self._had[annotator].items() if times > 0)
            self._kept[annotator] = np.sort(np.fromiter(had, np.int64))
        return self._kept[annotator]

    def awaited(self) -> IntArray:
        """Pairs whose answers the beliefs await, packed and sorted."""
        return np.unique(np.array([i * 2**32 + j for i, j, _ in self.waiting], np.int64))

    def foreseen(self, beliefs: Beliefs) -> Beliefs:
        """What will be believed once the answers that are awaited have come."""
        return expecting(beliefs, self.waiting.elements())

    def excluded(self, annotators: IntArray | None = None) -> Excluded:
        """What some annotators had, or everyone, and items of their own, for a search over all pairs."""
        people = sorted(self._had) if annotators is None else annotators.tolist()
        had = [self.had_by(who) for who in people]
        pairs = np.concatenate([np.zeros(0, np.int64), *had])
        who = np.repeat(np.array(people, np.int64), [len(some) for some in had])
        out = Excluded(len(self.items)).adding(who, pairs // 2**32, pairs % 2**32)
        for owner, items in self.own.items():
            out = out.adding_items(owner, items)
        return out

    def _codes(self, question: Question) -> Triplet:
        i, j = (self.items.index(label, question.query) for label in (question.left, question.right))
        return min(i, j), max(i, j), self.annotators.index(question.annotator, kind="annotator")

    def _count(self, triplet: Triplet, times: int) -> None:
        i, j, k = triplet
        self.seen[i] += times
        self.seen[j] += times
        self.load[k] += times
        self._had[k][i * 2**32 + j] += times
        self._kept.pop(k, None)
        if self.pool is not None:
            self.pool.count(triplet, times)


class Pool:
    """Answers that are there to be asked for, each once."""

    def __init__(self, one: IntArray, other: IntArray, annotator: IntArray) -> None:
        self.one, self.other, self.annotator = one, other, annotator
        self.left = np.ones(len(one), bool)
        """Which of them were not asked for yet."""
        self._rows: dict[Triplet, list[int]] = defaultdict(list)
        for row, triplet in enumerate(zip(one.tolist(), other.tolist(), annotator.tolist(), strict=True)):
            self._rows[triplet].append(row)

    def rows(self, annotator: int | None = None) -> IntArray:
        """What is left to ask, of one annotator or of all."""
        return np.flatnonzero(self.left if annotator is None else self.left & (self.annotator == annotator))

    def count(self, triplet: Triplet, times: int) -> None:
        """So many rows of the triplet were asked for, or are given back."""
        rows = [row for row in self._rows.get(triplet, ()) if self.left[row] == (times > 0)]
        self.left[rows[: abs(times)]] = times < 0


def _counted(triplets: IntArray) -> tuple[list[list[int]], list[int]]:
    """Each once, and how often it was there."""
    found, times = np.unique(triplets, axis=0, return_counts=True)
    return found.tolist(), times.tolist()


def _longer(counts: IntArray, size: int) -> IntArray:
    return np.append(counts, np.zeros(size - len(counts), np.int64))
