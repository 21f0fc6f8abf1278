"""The history of a collection: questions that were asked, their annotators, and pending answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from crowdrank.active.questions import Exclusions, Question, Rules
from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import DataError
from crowdrank.online import Beliefs, Vocabulary
from crowdrank.online.moments import Triplet, fantasized


def pack_pair(one: Any, other: Any) -> Any:
    """Encode pairs of codes as single integers, whichever item is named first; the encoding keeps their order."""
    return np.minimum(one, other) * 2**32 + np.maximum(one, other)


class QuestionHistory:
    """Record of the questions of a collection.

    A question is added when it is asked, and resolved when the beliefs include its answer. (Not earlier: a pair whose
    answer has come but has not changed the beliefs yet would look as informative as before.) The record uses the
    codes of the beliefs, which never change.

    Parameters
    ----------
    beliefs : Beliefs
        The beliefs that questions are chosen by.
    rules : Rules, optional
        Limits to what may be asked; none by default.
    comparisons : Comparisons, optional
        Judgments made before. Their items and annotators must be in the beliefs.

    Attributes
    ----------
    pending : Counter of Triplet
        Questions whose answers the beliefs do not include yet.
    item_counts, annotator_counts : array of int
        How often each item was asked about, and how many questions each annotator got.
    prices, quotas, available : array
        The rules, by annotator.
    own_items : dict of int to array
        Items that an annotator must not judge, in codes.
    pool : AnswerPool or None
        The answers left to ask for, if the rules name a pool.

    Examples
    --------
    >>> from crowdrank.online import CrowdBT
    >>> history = QuestionHistory(CrowdBT().start(["a", "b", "c"], ["ann"]))
    >>> question = Question(left="b", right="a", annotator="ann", probability=1.0, policy="random")
    >>> history.add(question)
    >>> history.item_counts.tolist(), history.pending
    ([1, 1, 0], Counter({(0, 1, 0): 1}))
    >>> history.resolve(question)
    >>> history.pending
    Counter()
    """

    def __init__(self, beliefs: Beliefs, rules: Rules | None = None, comparisons: Comparisons | None = None) -> None:
        self.rules = Rules() if rules is None else rules
        self.pending: Counter[Triplet] = Counter()
        self.item_counts = self.annotator_counts = np.zeros(0, np.int64)
        self.pool: AnswerPool | None = None
        self._pair_counts: dict[int, Counter[int]] = defaultdict(Counter)
        self._asked_pairs: dict[int, IntArray] = {}
        self.items, self.annotators = beliefs.items, beliefs.annotators
        self._apply_rules()
        self.extend(beliefs)
        self.pool = None if self.rules.pool is None else AnswerPool(*self._triplets(self.rules.pool))
        if comparisons is not None:
            self.add_comparisons(comparisons)

    def extend(self, beliefs: Beliefs) -> None:
        """Add the items and annotators that are new in the beliefs."""
        self.items, self.annotators = beliefs.items, beliefs.annotators
        if len(self.items) > len(self.item_counts) or len(self.annotators) > len(self.annotator_counts):
            self.item_counts = _zero_padded(self.item_counts, len(self.items))
            self.annotator_counts = _zero_padded(self.annotator_counts, len(self.annotators))
            self._apply_rules()

    def _apply_rules(self) -> None:
        self.prices, self.quotas, self.available = self.rules.of(self.annotators)
        self.own_items = self._find_own_items()

    def _find_own_items(self) -> dict[int, IntArray]:
        found = {}
        for name, labels in self.rules.own.items():
            if (annotator := self.annotators.find(name)) is not None:
                names = set(map(str, labels))
                found[annotator] = np.flatnonzero([label in names for label in self.items.labels])
        return found

    @property
    def spent(self) -> float:
        """Price of all questions that were asked."""
        return float(self.annotator_counts @ self.prices)

    def add_comparisons(self, comparisons: Comparisons) -> None:
        """Add judgments that were made before; the beliefs must know their items and annotators."""
        triplets, times = np.unique(np.stack(self._triplets(comparisons), axis=1), axis=0, return_counts=True)
        for (i, j, k), count in zip(triplets.tolist(), times.tolist(), strict=True):
            self._count((i, j, k), count)

    def _triplets(self, comparisons: Comparisons) -> tuple[IntArray, IntArray, IntArray]:
        anonymous = comparisons.annotator is None
        annotators = self.annotators.codes(Vocabulary.of([""] if anonymous else comparisons.annotators))
        pair = self.items.codes(Vocabulary.of(comparisons.items))[np.stack((comparisons.left, comparisons.right))]
        rows = np.zeros(len(comparisons), int) if comparisons.annotator is None else comparisons.annotator
        first, second = np.sort(pair, axis=0).astype(np.int64)
        return first, second, annotators[rows].astype(np.int64)

    def add(self, question: Question) -> None:
        """Record that a question was asked; its answer is pending."""
        triplet = self._codes(question)
        self.pending[triplet] += 1
        self._count(triplet, 1)

    def resolve(self, question: Question, withdrawn: bool = False) -> None:
        """Record that the beliefs include the answer of a question, or that it was withdrawn unanswered."""
        triplet = self._codes(question)
        if not self.pending[triplet]:
            pair = f"{question.left!r} and {question.right!r}"
            raise DataError(f"No answer of {question.annotator!r} about {pair} is pending: add the question first.")
        self.pending[triplet] -= 1
        self.pending += Counter()  # drops zero counts
        if withdrawn:
            self._count(triplet, -1)

    def asked_pairs(self, annotator: int) -> IntArray:
        """Pairs that must not be put to an annotator again, packed and sorted; none if the rules allow repeats."""
        if annotator not in self._asked_pairs:
            counts = self._pair_counts[annotator]
            pairs = () if self.rules.repeats else (pair for pair, times in counts.items() if times > 0)
            self._asked_pairs[annotator] = np.sort(np.fromiter(pairs, np.int64))
        return self._asked_pairs[annotator]

    def pending_pairs(self) -> IntArray:
        """Pairs whose answers are pending, packed and sorted."""
        return np.unique(np.array([i * 2**32 + j for i, j, _ in self.pending], np.int64))

    def fantasized(self, beliefs: Beliefs) -> Beliefs:
        """Return the beliefs expected once the pending answers have come."""
        return fantasized(beliefs, self.pending.elements())

    def exclusions(self, annotators: IntArray | None = None) -> Exclusions:
        """Pairs that some annotators (by default all) were asked, and the items that they must not judge."""
        codes = sorted(self._pair_counts) if annotators is None else annotators.tolist()
        asked = [self.asked_pairs(annotator) for annotator in codes]
        pairs = np.concatenate([np.zeros(0, np.int64), *asked])
        who = np.repeat(np.array(codes, np.int64), [len(some) for some in asked])
        exclusions = Exclusions(len(self.items)).with_pairs(who, pairs // 2**32, pairs % 2**32)
        for owner, items in self.own_items.items():
            exclusions = exclusions.with_items(owner, items)
        return exclusions

    def _codes(self, question: Question) -> Triplet:
        i, j = (self.items.index(label, question.query) for label in (question.left, question.right))
        return min(i, j), max(i, j), self.annotators.index(question.annotator, kind="annotator")

    def _count(self, triplet: Triplet, times: int) -> None:
        i, j, k = triplet
        self.item_counts[i] += times
        self.item_counts[j] += times
        self.annotator_counts[k] += times
        self._pair_counts[k][i * 2**32 + j] += times
        self._asked_pairs.pop(k, None)
        if self.pool is not None:
            self.pool.count(triplet, times)


class AnswerPool:
    """Recorded answers that can be asked for, each once.

    Parameters
    ----------
    first, second, annotator : array of int
        Codes of the items, the smaller first, and of the annotator of each answer.
    """

    def __init__(self, first: IntArray, second: IntArray, annotator: IntArray) -> None:
        self.first, self.second, self.annotator = first, second, annotator
        self.remaining = np.ones(len(first), bool)
        self._rows: dict[Triplet, list[int]] = defaultdict(list)
        for row, triplet in enumerate(zip(first.tolist(), second.tolist(), annotator.tolist(), strict=True)):
            self._rows[triplet].append(row)

    def rows(self, annotator: int | None = None) -> IntArray:
        """Rows that were not asked for yet, of one annotator or of all."""
        return np.flatnonzero(self.remaining if annotator is None else self.remaining & (self.annotator == annotator))

    def count(self, triplet: Triplet, times: int) -> None:
        """Remove `times` rows of a triplet, or give them back if negative."""
        rows = [row for row in self._rows.get(triplet, ()) if self.remaining[row] == (times > 0)]
        self.remaining[rows[: abs(times)]] = times < 0


def _zero_padded(counts: IntArray, size: int) -> IntArray:
    return np.append(counts, np.zeros(size - len(counts), np.int64))
