"""What may be asked now: annotators who can be asked, and pairs that can be put to them."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from crowdrank.active.exclusions import EVERYONE, Excluded
from crowdrank.active.history import Asked, packed
from crowdrank.active.question import Question
from crowdrank.arrays import BoolArray, IntArray
from crowdrank.errors import NothingToAskError
from crowdrank.online import Beliefs, Posterior, Roll

MOST_LISTED = 200_000
"""Pairs up to which all are looked at; beyond, those of neighbours in the order of the beliefs."""
_NEIGHBOURS = 20
_AT_A_TIME = 64
_NONE = np.zeros(0, np.int64)


class Choice(NamedTuple):
    """Two items, the smaller code first, and an annotator; and how likely they were to be chosen."""

    one: int
    other: int
    annotator: int
    probability: float
    by: str
    """The name of the policy that chose them."""


class Pairs(NamedTuple):
    """Pairs in codes, the smaller first."""

    one: IntArray
    other: IntArray

    def take(self, rows: BoolArray | IntArray | slice) -> Pairs:
        return Pairs(self.one[rows], self.other[rows])


class Choices:
    """Everything a policy looks at: what is believed, what was asked, and what is left to ask."""

    def __init__(self, beliefs: Beliefs, asked: Asked | None = None, annotator: str | None = None) -> None:
        self.beliefs = beliefs
        self.asked = Asked(beliefs) if asked is None else asked
        self.asked.follow(beliefs)
        self.memo: dict[object, Any] = {}
        """What policies found out here, to be looked up when asked again."""
        self.only = None if annotator is None else beliefs.annotators.index(annotator, kind="annotator")
        self.patient = True
        """Whether pairs in the air are left alone: as long as there are others."""
        self.annotators = self._able()
        """Who can be asked something, in codes."""
        if not len(self.annotators):
            self.patient = False
            self.memo.clear()
            self.annotators = self._able()
        if not len(self.annotators):
            raise NothingToAskError(self._why_nobody(annotator))

    def _able(self) -> IntArray:
        asked = self.asked
        free = np.flatnonzero(asked.present & (asked.load < asked.quotas))
        if self.only is not None:
            free = free[free == self.only]
        if asked.pool is not None:
            return np.intersect1d(free, asked.pool.annotator[asked.pool.left])
        # no need to count, for most: there are more pairs than they were ever asked
        plenty = self._all_pairs - int(asked.load.max(initial=0)) - asked.waiting.total() - len(self._unheard) > len(
            self.beliefs.items
        )
        return np.array([k for k in free.tolist() if (plenty and k not in asked.own) or self.count(k)], np.int64)

    @cached_property
    def _all_pairs(self) -> int:
        sizes = np.bincount(self.beliefs.items.query, minlength=1)
        return int(np.sum(sizes * (sizes - 1) // 2))

    def count(self, annotator: int) -> int:
        """How many pairs can be put to an annotator."""
        if self.asked.pool is not None:
            return len(self.asked.pool.rows(annotator))
        own, kept = self.asked.own.get(annotator), self._kept_from(annotator)
        if own is None:
            return self._all_pairs - len(kept)
        query = self.beliefs.items.query
        sizes = np.bincount(query, minlength=1) - np.bincount(query[own], minlength=int(query.max()) + 1)
        elsewhere = ~np.isin(kept // 2**32, own) & ~np.isin(kept % 2**32, own)
        return int(np.sum(sizes * (sizes - 1) // 2)) - int(elsewhere.sum())

    def pairs(self, annotator: int) -> Pairs:
        """Pairs that can be put to an annotator: all, or where there are too many those worth a look."""
        if ("pairs", annotator) not in self.memo:
            self.memo["pairs", annotator] = self._pairs(annotator)
        pairs: Pairs = self.memo["pairs", annotator]
        return pairs

    def _pairs(self, annotator: int) -> Pairs:
        pool = self.asked.pool
        if pool is not None:
            rows = pool.rows(annotator)
            return Pairs(pool.one[rows], pool.other[rows])
        pairs = all_pairs(self.beliefs.items) if self.listed else self._neighbours
        return pairs.take(self._allowed(pairs, annotator))

    def partners_left(self, annotator: int) -> IntArray:
        """How many others each item can be shown beside, to an annotator."""
        size, query = len(self.beliefs.items), self.beliefs.items.query
        if self.asked.pool is not None:
            return np.bincount(np.concatenate(self.pairs(annotator)), minlength=size)
        judged = np.ones(size, bool)
        judged[self.asked.own.get(annotator, _NONE)] = False
        one, other = self._kept_from(annotator) // 2**32, self._kept_from(annotator) % 2**32
        both = judged[one] & judged[other]
        gone = np.bincount(np.concatenate((one[both], other[both])), minlength=size)
        alike = np.bincount(query, weights=judged, minlength=1).astype(np.int64)[query] - 1
        return np.where(judged, alike - gone, 0)

    def partners(self, annotator: int, item: int) -> IntArray:
        """Those that an item can be shown beside, to an annotator: first those that follow it."""
        if self.asked.pool is not None:
            one, other = self.pairs(annotator)
            return np.concatenate((other[one == item], one[other == item]))
        query, kept = self.beliefs.items.query, self._kept_from(annotator)
        free = query == query[item]
        free[self.asked.own.get(annotator, _NONE)] = free[item] = False
        free[kept[kept // 2**32 == item] % 2**32] = free[kept[kept % 2**32 == item] // 2**32] = False
        return np.concatenate((item + np.flatnonzero(free[item:]), np.flatnonzero(free[:item])))

    def excluded(self) -> Excluded:
        """What must not be put to whom, for a search over everything."""
        return self.asked.excluded(self.annotators).adding(
            EVERYONE, self._in_the_air // 2**32, self._in_the_air % 2**32
        )

    @cached_property
    def askable(self) -> BoolArray:
        """Items that a question can be about."""
        if (pool := self.asked.pool) is not None:
            rows = pool.rows()
            able = np.zeros(len(self.beliefs.items), bool)
            able[pool.one[rows]] = able[pool.other[rows]] = True
            return able
        query = self.beliefs.items.query
        return np.asarray(np.bincount(query, minlength=1)[query] > 1)

    def allows(self, one: int, other: int, annotator: int) -> bool:
        pair = Pairs(np.array([min(one, other)]), np.array([max(one, other)]))
        return bool(self._allowed(pair, annotator)[0])

    def _allowed(self, pairs: Pairs, annotator: int) -> BoolArray:
        keys, kept = packed(*pairs), self._kept_from(annotator)
        allowed = np.ones(len(keys), bool)
        if len(kept):
            allowed = kept[np.minimum(np.searchsorted(kept, keys), len(kept) - 1)] != keys
        if (own := self.asked.own.get(annotator)) is not None:
            allowed &= ~(np.isin(pairs.one, own) | np.isin(pairs.other, own))
        return allowed

    def _kept_from(self, annotator: int) -> IntArray:
        """What they had, and what is in the air."""
        if ("kept", annotator) not in self.memo:
            self.memo["kept", annotator] = np.union1d(self.asked.had_by(annotator), self._in_the_air)
        kept_from: IntArray = self.memo["kept", annotator]
        return kept_from

    @property
    def _in_the_air(self) -> IntArray:
        """Pairs whose answers the beliefs have not heard yet: they would be asked again and again."""
        if "in the air" not in self.memo:
            unheard = np.union1d(self.asked.awaited(), self._unheard)
            self.memo["in the air"] = unheard if self.patient else unheard[:0]
        in_the_air: IntArray = self.memo["in the air"]
        return in_the_air

    @cached_property
    def _unheard(self) -> IntArray:
        if not isinstance(self.beliefs, Posterior):
            return np.zeros(0, np.int64)
        return np.unique(packed(*self.beliefs.unheard.T.astype(np.int64)))

    def first_allowed(self, pairs: Pairs, annotator: int) -> tuple[int, int] | None:
        """The first of these pairs that can be put to an annotator; none where none can."""
        start, stop = 0, _AT_A_TIME
        while start < len(pairs.one):
            some = pairs.take(slice(start, stop))
            start, stop = stop, 4 * stop
            if (fine := np.flatnonzero(self._allowed(some, annotator))).size:
                return int(some.one[fine[0]]), int(some.other[fine[0]])
        return None

    @property
    def listed(self) -> bool:
        """Whether all pairs are looked at."""
        return self._all_pairs <= MOST_LISTED

    @cached_property
    def _neighbours(self) -> Pairs:
        """Each item with those that follow it in the order of its query."""
        order = np.lexsort((self.beliefs.mean, self.beliefs.items.query))
        found = [np.stack((order[:-step], order[step:])) for step in range(1, _NEIGHBOURS + 1) if step < len(order)]
        one, other = np.sort(np.concatenate(found, axis=1), axis=0)
        query = self.beliefs.items.query
        return Pairs(one, other).take(query[one] == query[other])

    def random_pair(self, annotator: int, rng: np.random.Generator) -> tuple[int, int]:
        """Any pair that can be put to an annotator, all as likely."""
        if self.asked.pool is not None or self.listed:
            pairs = self.pairs(annotator)
            row = int(rng.integers(len(pairs.one)))
            return int(pairs.one[row]), int(pairs.other[row])
        query = self.beliefs.items.query
        while True:  # there are far more pairs than were ever asked
            one, other = rng.integers(len(query), size=2).tolist()
            if one != other and query[one] == query[other] and self.allows(one, other, annotator):
                return min(one, other), max(one, other)

    def named(self, choice: Choice, rng: np.random.Generator) -> Question:
        """The question in names, the sides tossed."""
        one, other, annotator, probability, policy = choice
        left, right = (one, other) if rng.random() < 0.5 else (other, one)
        labels, query = self.beliefs.items.labels, self.beliefs.items.queries[one]
        return Question(
            left=labels[left],
            right=labels[right],
            annotator=self.beliefs.annotators.labels[annotator],
            query=query,
            probability=probability,
            policy=policy,
        )

    def _why_nobody(self, annotator: str | None) -> str:
        whom = "anyone" if annotator is None else repr(annotator)
        if not len(self.beliefs.annotators):
            return "There is nobody to ask: name annotators."
        asked = self.asked
        quota_left = asked.present & (asked.load < asked.quotas)
        if not quota_left.any() or (self.only is not None and not quota_left[self.only]):
            return f"Nothing may be asked of {whom}: not available, or the quota is used up."
        return f"No pair is left to ask {whom}: each was put before, or is awaited, or holds an item of their own."


@lru_cache(maxsize=8)
def all_pairs(items: Roll) -> Pairs:
    """All pairs within queries."""
    order = np.argsort(items.query, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(items.query))[:-1])
    found = [members[q][np.stack(np.triu_indices(len(members[q]), 1))] for q in range(len(members))]
    one, other = np.sort(np.concatenate(found, axis=1), axis=0)
    return Pairs(one, other)
