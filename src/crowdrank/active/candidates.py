"""The questions that may be asked now: annotators who can be asked, and pairs that can be put to them."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from crowdrank.active.questions import EVERYONE, Exclusions, Question, QuestionHistory, pack_pair
from crowdrank.arrays import BoolArray, IntArray
from crowdrank.errors import NothingToAskError
from crowdrank.online import Beliefs, Posterior, Vocabulary

MAX_ENUMERATED = 200_000
"""Number of pairs up to which all are considered; beyond, only pairs of neighbours in the order of the means."""
_N_NEIGHBOURS = 20
_FIRST_BLOCK = 64
_NONE = np.zeros(0, np.int64)


class Candidate(NamedTuple):
    """A possible question: codes of two items, the smaller first, and of an annotator.

    `probability` is that of choosing it, and `policy` the name of the policy that chose it.
    """

    first: int
    second: int
    annotator: int
    probability: float
    policy: str


class Pairs(NamedTuple):
    """Pairs of item codes, the smaller first."""

    first: IntArray
    second: IntArray

    def take(self, rows: BoolArray | IntArray | slice) -> Pairs:
        return Pairs(self.first[rows], self.second[rows])


class CandidateSet:
    """Everything that a policy chooses from: the beliefs, the history, and the remaining questions.

    Pairs whose answers are pending are avoided as long as there are others.

    Parameters
    ----------
    beliefs : Beliefs
        Current beliefs.
    history : QuestionHistory, optional
        Questions asked so far; none by default.
    annotator : str, optional
        Consider questions for this annotator only.

    Attributes
    ----------
    annotators : array of int
        Codes of the annotators who can be asked about at least one pair.
    cache : dict
        Results that policies store here to look them up again.

    Raises
    ------
    NothingToAskError
        If no question is left.
    """

    def __init__(self, beliefs: Beliefs, history: QuestionHistory | None = None, annotator: str | None = None) -> None:
        self.beliefs = beliefs
        self.history = QuestionHistory(beliefs) if history is None else history
        self.history.extend(beliefs)
        self.cache: dict[object, Any] = {}
        self.only_annotator = None if annotator is None else beliefs.annotators.index(annotator, kind="annotator")
        self._avoid_pending = True
        self.annotators = self._eligible_annotators()
        if not len(self.annotators):
            self._avoid_pending = False
            self.cache.clear()
            self.annotators = self._eligible_annotators()
        if not len(self.annotators):
            raise NothingToAskError(self._why_nothing(annotator))

    def _eligible_annotators(self) -> IntArray:
        history = self.history
        eligible = np.flatnonzero(history.available & (history.annotator_counts < history.quotas))
        if self.only_annotator is not None:
            eligible = eligible[eligible == self.only_annotator]
        if history.pool is not None:
            return np.intersect1d(eligible, history.pool.annotator[history.pool.remaining])
        # Usually there are many more pairs than anyone was asked, and nothing needs to be counted.
        highest_count = int(history.annotator_counts.max(initial=0))
        unavailable = highest_count + history.pending.total() + len(self._unprocessed_pairs)
        plenty = self._n_all_pairs - unavailable > len(self.beliefs.items)
        has_pairs = [k for k in eligible.tolist() if (plenty and k not in history.own_items) or self.n_pairs(k)]
        return np.array(has_pairs, np.int64)

    @cached_property
    def _n_all_pairs(self) -> int:
        sizes = np.bincount(self.beliefs.items.query, minlength=1)
        return int(np.sum(sizes * (sizes - 1) // 2))

    def n_pairs(self, annotator: int) -> int:
        """Number of pairs that can be put to an annotator."""
        if self.history.pool is not None:
            return len(self.history.pool.rows(annotator))
        own, excluded = self.history.own_items.get(annotator), self._excluded_pairs(annotator)
        if own is None:
            return self._n_all_pairs - len(excluded)
        query = self.beliefs.items.query
        sizes = np.bincount(query, minlength=1) - np.bincount(query[own], minlength=int(query.max()) + 1)
        of_others = ~np.isin(excluded // 2**32, own) & ~np.isin(excluded % 2**32, own)
        return int(np.sum(sizes * (sizes - 1) // 2)) - int(of_others.sum())

    def pairs(self, annotator: int) -> Pairs:
        """Pairs that can be put to an annotator: all, or if there are too many those of close items."""
        if ("pairs", annotator) not in self.cache:
            self.cache["pairs", annotator] = self._find_pairs(annotator)
        pairs: Pairs = self.cache["pairs", annotator]
        return pairs

    def _find_pairs(self, annotator: int) -> Pairs:
        pool = self.history.pool
        if pool is not None:
            rows = pool.rows(annotator)
            return Pairs(pool.first[rows], pool.second[rows])
        pairs = all_pairs(self.beliefs.items) if self.enumerable else self._neighbours
        return pairs.take(self._allowed(pairs, annotator))

    def partner_counts(self, annotator: int) -> IntArray:
        """Number of items that each item can be compared with by an annotator."""
        size, query = len(self.beliefs.items), self.beliefs.items.query
        if self.history.pool is not None:
            return np.bincount(np.concatenate(self.pairs(annotator)), minlength=size)
        may_judge = np.ones(size, bool)
        may_judge[self.history.own_items.get(annotator, _NONE)] = False
        excluded = self._excluded_pairs(annotator)
        first, second = excluded // 2**32, excluded % 2**32
        both = may_judge[first] & may_judge[second]
        n_excluded = np.bincount(np.concatenate((first[both], second[both])), minlength=size)
        n_others = np.bincount(query, weights=may_judge, minlength=1).astype(np.int64)[query] - 1
        return np.where(may_judge, n_others - n_excluded, 0)

    def partners(self, annotator: int, item: int) -> IntArray:
        """Items that an item can be compared with by an annotator: first those with a larger code."""
        if self.history.pool is not None:
            first, second = self.pairs(annotator)
            return np.concatenate((second[first == item], first[second == item]))
        query, excluded = self.beliefs.items.query, self._excluded_pairs(annotator)
        free = query == query[item]
        free[self.history.own_items.get(annotator, _NONE)] = free[item] = False
        free[excluded[excluded // 2**32 == item] % 2**32] = False
        free[excluded[excluded % 2**32 == item] // 2**32] = False
        return np.concatenate((item + np.flatnonzero(free[item:]), np.flatnonzero(free[:item])))

    def exclusions(self) -> Exclusions:
        """Everything that must not be asked, for a search over all pairs and annotators."""
        pending = self._pending_pairs
        return self.history.exclusions(self.annotators).with_pairs(EVERYONE, pending // 2**32, pending % 2**32)

    @cached_property
    def askable_items(self) -> BoolArray:
        """Which items a question can be about."""
        if (pool := self.history.pool) is not None:
            rows = pool.rows()
            askable = np.zeros(len(self.beliefs.items), bool)
            askable[pool.first[rows]] = askable[pool.second[rows]] = True
            return askable
        query = self.beliefs.items.query
        return np.asarray(np.bincount(query, minlength=1)[query] > 1)

    def allows(self, first: int, second: int, annotator: int) -> bool:
        """Whether a pair of one query may be put to an annotator."""
        pair = Pairs(np.array([min(first, second)]), np.array([max(first, second)]))
        return bool(self._allowed(pair, annotator)[0])

    def _allowed(self, pairs: Pairs, annotator: int) -> BoolArray:
        keys, excluded = pack_pair(*pairs), self._excluded_pairs(annotator)
        allowed = np.ones(len(keys), bool)
        if len(excluded):
            allowed = excluded[np.minimum(np.searchsorted(excluded, keys), len(excluded) - 1)] != keys
        if (own := self.history.own_items.get(annotator)) is not None:
            allowed &= ~(np.isin(pairs.first, own) | np.isin(pairs.second, own))
        return allowed

    def _excluded_pairs(self, annotator: int) -> IntArray:
        """Pairs that the annotator was asked, and pairs that are pending; packed and sorted."""
        if ("excluded", annotator) not in self.cache:
            self.cache["excluded", annotator] = np.union1d(self.history.asked_pairs(annotator), self._pending_pairs)
        excluded: IntArray = self.cache["excluded", annotator]
        return excluded

    @property
    def _pending_pairs(self) -> IntArray:
        """Pairs whose answers the beliefs do not include yet: they would be asked again and again."""
        if "pending" not in self.cache:
            pending = np.union1d(self.history.pending_pairs(), self._unprocessed_pairs)
            self.cache["pending"] = pending if self._avoid_pending else pending[:0]
        pending_pairs: IntArray = self.cache["pending"]
        return pending_pairs

    @cached_property
    def _unprocessed_pairs(self) -> IntArray:
        """Pairs that were answered since the chain of a sampled posterior ran last."""
        if not isinstance(self.beliefs, Posterior):
            return np.zeros(0, np.int64)
        return np.unique(pack_pair(*self.beliefs.pending_pairs.T.astype(np.int64)))

    def first_allowed(self, pairs: Pairs, annotator: int) -> tuple[int, int] | None:
        """Return the first of these pairs that can be put to an annotator, or None."""
        # blocks of growing size: usually one of the first few pairs is allowed
        start, stop = 0, _FIRST_BLOCK
        while start < len(pairs.first):
            block = pairs.take(slice(start, stop))
            start, stop = stop, 4 * stop
            if (allowed := np.flatnonzero(self._allowed(block, annotator))).size:
                return int(block.first[allowed[0]]), int(block.second[allowed[0]])
        return None

    @property
    def enumerable(self) -> bool:
        """Whether there are few enough pairs to consider all of them."""
        return self._n_all_pairs <= MAX_ENUMERATED

    @cached_property
    def _neighbours(self) -> Pairs:
        """Each item with those that follow it in the order of the means of its query."""
        order = np.lexsort((self.beliefs.mean, self.beliefs.items.query))
        steps = [step for step in range(1, _N_NEIGHBOURS + 1) if step < len(order)]
        pairs = [np.stack((order[:-step], order[step:])) for step in steps]
        first, second = np.sort(np.concatenate(pairs, axis=1), axis=0)
        query = self.beliefs.items.query
        return Pairs(first, second).take(query[first] == query[second])

    def random_pair(self, annotator: int, rng: np.random.Generator) -> tuple[int, int]:
        """Draw uniformly from the pairs that can be put to an annotator."""
        if self.history.pool is not None or self.enumerable:
            pairs = self.pairs(annotator)
            row = int(rng.integers(len(pairs.first)))
            return int(pairs.first[row]), int(pairs.second[row])
        query = self.beliefs.items.query
        while True:  # rejection sampling: there are far more pairs than were ever asked
            one, other = rng.integers(len(query), size=2).tolist()
            if one != other and query[one] == query[other] and self.allows(one, other, annotator):
                return min(one, other), max(one, other)

    def to_question(self, candidate: Candidate, rng: np.random.Generator) -> Question:
        """Return the candidate as a question with labels, the sides chosen at random."""
        first, second, annotator, probability, policy = candidate
        left, right = (first, second) if rng.random() < 0.5 else (second, first)
        labels, query = self.beliefs.items.labels, self.beliefs.items.queries[first]
        return Question(
            left=labels[left],
            right=labels[right],
            annotator=self.beliefs.annotators.labels[annotator],
            query=query,
            probability=probability,
            policy=policy,
        )

    def _why_nothing(self, annotator: str | None) -> str:
        whom = "any annotator" if annotator is None else repr(annotator)
        if not len(self.beliefs.annotators):
            return "There are no annotators to ask: name annotators when the beliefs are started."
        history = self.history
        has_quota = history.available & (history.annotator_counts < history.quotas)
        if not has_quota.any() or (self.only_annotator is not None and not has_quota[self.only_annotator]):
            return f"No question for {whom}: not available, or the quota is used up."
        return (
            f"No pair is left for {whom}: each was asked before, is pending, or contains an item that they may not "
            "judge."
        )


@lru_cache(maxsize=8)
def all_pairs(items: Vocabulary) -> Pairs:
    """All pairs of items of the same query."""
    order = np.argsort(items.query, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(items.query))[:-1])
    pairs = [codes[np.stack(np.triu_indices(len(codes), 1))] for codes in members]
    first, second = np.sort(np.concatenate(pairs, axis=1), axis=0)
    return Pairs(first, second)
