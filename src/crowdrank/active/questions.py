"""Questions, the rules that limit them, and sets of pairs that must not be asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.online import Beliefs, Vocabulary
from crowdrank.online.moments import Triplet, fantasized

EVERYONE = -1
"""In place of an annotator's code: all annotators."""
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A pair of items to show to an annotator.

    Parameters
    ----------
    left, right : str
        The items, as they are to be shown.
    annotator : str
        The annotator to ask.
    query : str, default ""
        The query that both items belong to.
    probability : float
        Probability with which this pair was chosen for this annotator, whichever item is on the left.
    policy : str
        Name of the policy that chose it; ``"random"`` for questions drawn at random.

    Examples
    --------
    >>> question = Question(left="Rome", right="Oslo", annotator="ann", probability=0.1, policy="random")
    >>> question.answered("Oslo").winner
    'Oslo'
    """

    left: str
    right: str
    annotator: str
    query: str = ""
    probability: float
    policy: str

    def answered(self, winner: str) -> Comparison:
        """Return the judgment that this question becomes; `winner` is one of its items, or ``"tie"``."""
        return Comparison(self.left, self.right, winner, self.annotator, self.query)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """Limits that every policy respects.

    Parameters
    ----------
    available : collection of str, optional
        Annotators who can be asked now; all by default.
    quota : int or mapping of str to int, optional
        Maximum number of questions per annotator, for everyone or by name; unlimited by default.
    price : float or mapping of str to float, default 1.0
        Price of an answer, for everyone or by name. Annotators who are not named cost 1.
    own : mapping of str to collection of str, optional
        Items that an annotator must not judge, by annotator.
    repeats : bool, default False
        Whether an annotator may get the same pair again.
    pool : Comparisons, optional
        Ask only questions that these comparisons answer, each once.

    Examples
    --------
    >>> Rules(quota={"ann": 20}, price=0.05, own={"bob": ["Rome"]}).price
    0.05
    """

    available: Collection[str] | None = None
    quota: int | Mapping[str, int] | None = None
    price: float | Mapping[str, float] = 1.0
    own: Mapping[str, Collection[str]] = field(default_factory=dict)
    repeats: bool = False
    pool: Comparisons | None = None

    def __post_init__(self) -> None:
        prices = self.price.values() if isinstance(self.price, Mapping) else [self.price]
        if wrong := [price for price in prices if not 0 < price < np.inf]:
            raise SettingError(f"Prices must be above zero, got {wrong[0]!r}.")
        quotas = self.quota.values() if isinstance(self.quota, Mapping) else [self.quota or 0]
        if wrong_quotas := [quota for quota in quotas if not quota >= 0]:
            raise SettingError(f"Quotas must be zero or more, got {wrong_quotas[0]!r}.")

    def of(self, annotators: Vocabulary) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return price and quota of each annotator, and whether they can be asked now."""
        names = annotators.labels
        price, quota = self.price, np.inf if self.quota is None else self.quota
        prices = [price.get(name, 1.0) for name in names] if isinstance(price, Mapping) else [price] * len(names)
        quotas = [quota.get(name, np.inf) for name in names] if isinstance(quota, Mapping) else [quota] * len(names)
        can_be_asked = set(names if self.available is None else self.available)
        available = np.array([name in can_be_asked for name in names], dtype=bool)
        return np.array(prices, dtype=np.float64), np.array(quotas, dtype=np.float64), available


class Exclusions(NamedTuple):
    """Pairs and items that must not be put to an annotator, or to anyone.

    They are kept as sorted integer keys, so that a lookup is one binary search. With n items, the key of a pair is
    (annotator + 1)·n² + first·n + second, where first < second, and that of an item is (annotator + 1)·n + item. The
    annotator −1 stands for everyone.

    Parameters
    ----------
    n_items : int
        Number of items.
    pairs : array of int
        Keys of excluded pairs.
    items : array of int
        Keys of items about which an annotator must not be asked.
    """

    n_items: int
    pairs: IntArray = _NONE
    items: IntArray = _NONE

    def with_pairs(self, annotator: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike) -> Exclusions:
        """Exclude pairs for annotators, all in codes: numbers, or arrays of the same length."""
        keys = _pair_key(self.n_items, *map(_codes, (annotator, left, right)))
        return self._replace(pairs=_merge(self.pairs, keys))

    def with_items(self, annotator: npt.ArrayLike, item: npt.ArrayLike) -> Exclusions:
        """Exclude every pair with an item for annotators, all in codes."""
        return self._replace(items=_merge(self.items, (_codes(annotator) + 1) * self.n_items + _codes(item)))

    def allows(self, annotator: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike) -> BoolArray:
        """Return whether each pair may be put to each annotator."""
        who, one, other = np.broadcast_arrays(*map(_codes, (annotator, left, right)))
        excluded = np.zeros(who.shape, bool)
        for whose in (who, np.full_like(who, EVERYONE)):
            excluded |= _is_in(self.pairs, _pair_key(self.n_items, whose, one, other))
            excluded |= _is_in(self.items, (whose + 1) * self.n_items + one)
            excluded |= _is_in(self.items, (whose + 1) * self.n_items + other)
        return ~excluded


def _codes(given: npt.ArrayLike) -> IntArray:
    return np.asarray(given, np.int64)


def _pair_key(size: int, who: IntArray, one: IntArray, other: IntArray) -> Any:
    return ((who + 1) * size + np.minimum(one, other)) * size + np.maximum(one, other)


def _merge(keys: IntArray, more: IntArray) -> IntArray:
    merged = np.sort(np.concatenate((keys, np.atleast_1d(more))))
    return merged[np.append(True, merged[1:] != merged[:-1])] if len(merged) else merged


def _is_in(sorted_keys: IntArray, keys: Any) -> BoolArray:
    if not len(sorted_keys):
        return np.zeros(np.shape(keys), bool)
    return np.asarray(sorted_keys[np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)] == keys)


# The functions below are compiled into the search of `branch_and_bound`.


def has_key(sorted_keys: Any, key: int) -> Any:
    """Binary search for one key."""
    low, high = 0, len(sorted_keys)
    while low < high:
        middle = (low + high) // 2
        if sorted_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(sorted_keys) and sorted_keys[low] == key


def is_excluded(exclusions: Any, who: int, one: int, other: int) -> Any:
    """Whether the pair is excluded for exactly this annotator code."""
    size = exclusions.n_items
    if has_key(exclusions.pairs, ((who + 1) * size + min(one, other)) * size + max(one, other)):
        return True
    return has_key(exclusions.items, (who + 1) * size + one) or has_key(exclusions.items, (who + 1) * size + other)


def first_allowed(exclusions: Any, annotators: Any, one: int, other: int) -> int:
    """Return the first of the annotators who may be asked about the pair, or −1."""
    if not is_excluded(exclusions, -1, one, other):
        for who in annotators:
            if not is_excluded(exclusions, who, one, other):
                return int(who)
    return -1


FORMULAS = (has_key, is_excluded, first_allowed)
"""Functions that a compiled search calls."""


# The history of a collection: questions that were asked, their annotators, and pending answers.


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
