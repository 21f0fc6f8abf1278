"""Questions, the rules that limit them, and sets of pairs that must not be asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import SettingError
from crowdrank.online import Vocabulary

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
